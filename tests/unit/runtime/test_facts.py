from theano_fast import facts

CPUINFO = "processor\t: 0\nmodel name\t: A CPU: of 2.5 GHz\nflags\t: fma\n"


def test_cpu_model():
    assert facts.cpu_model(CPUINFO) == "A CPU: of 2.5 GHz"
    assert facts.cpu_model("processor\t: 0\n") == "unknown"


def test_host_names_the_thread_variables(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert facts.host()["thread_variables"]["OMP_NUM_THREADS"] == "7"


def test_versions_of_what_is_not_installed(monkeypatch):
    monkeypatch.setattr(facts, "DISTRIBUTIONS", ("no-such-distribution",))
    assert facts.versions()["no-such-distribution"] == "not installed"


def test_fixes_are_told_by_package(tmp_path):
    assert facts.fixes(tmp_path) == {}
    lists = tmp_path / facts.FIXES
    lists.mkdir(parents=True)
    (lists / "zlib").write_text("# PATCH CVE...\na.patch CVE-2024-1000 CVE-2023-20000\nb.patch\n")
    (lists / "openssl").write_text("c.patch CVE-2024-999\nd.patch CVE-2024-1000 CVE-2024-999\n")
    found = facts.fixes(tmp_path)
    assert list(found) == ["openssl", "zlib"]
    assert found == {
        "openssl": ["CVE-2024-999", "CVE-2024-1000"],
        "zlib": ["CVE-2023-20000", "CVE-2024-1000"],
    }
