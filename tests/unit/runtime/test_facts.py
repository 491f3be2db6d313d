"""Test the facts of hosts and environments: CPU, threads, versions, CVEs and AMD's functions."""

from theano_fast import facts

CPUINFO = "processor\t: 0\nmodel name\t: A CPU: of 2.5 GHz\nflags\t: fma\n"


def test_the_cpu_model_is_parsed_from_cpuinfo():
    assert facts.parse_cpu_model(CPUINFO) == "A CPU: of 2.5 GHz"
    assert facts.parse_cpu_model("processor\t: 0\n") == "unknown"


def test_the_host_facts_have_the_thread_variables(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert facts.describe_host()["thread_variables"]["OMP_NUM_THREADS"] == "7"


def test_a_missing_package_has_no_version(monkeypatch):
    monkeypatch.setattr(facts, "DISTRIBUTIONS", ("no-such-distribution",))
    assert facts.list_versions()["no-such-distribution"] == "not installed"


def test_cves_of_fixes_are_sorted_by_package_and_number(tmp_path):
    assert facts.read_fixes(tmp_path) == {}
    lists = tmp_path / facts.FIXES
    lists.mkdir(parents=True)
    (lists / "zlib").write_text("# PATCH CVE...\na.patch CVE-2024-1000 CVE-2023-20000\nb.patch\n")
    (lists / "openssl").write_text("c.patch CVE-2024-999\nd.patch CVE-2024-1000 CVE-2024-999\n")
    fixes = facts.read_fixes(tmp_path)
    assert list(fixes) == ["openssl", "zlib"]
    assert fixes == {
        "openssl": ["CVE-2024-999", "CVE-2024-1000"],
        "zlib": ["CVE-2023-20000", "CVE-2024-1000"],
    }


def test_functions_of_amds_library_are_grouped_by_the_reason_of_their_rejection(tmp_path):
    assert facts.read_amdlibm(tmp_path) == {}
    record = tmp_path / facts.AMDLIBM
    record.parent.mkdir(parents=True)
    rows = (
        "amd_exp\texp\t1\t0.52\t",
        "amd_vrs8_expf\texpf\t8\t1.257\t",
        "amd_vrd2_log\tlog\t2\t3e+14\tis -709, not -inf, at (0)",
        "amd_vrd2_erfc\terfc\t2\t0\tis missing",
        "amd_vrd8_exp\texp\t8\t0\twas not run",
    )
    record.write_text("\n".join(rows) + "\n")
    assert facts.read_amdlibm(tmp_path) == {
        "functions": "2 functions of AMD's library, with errors of at most 1.26 ulp",
        "AMD's is missing": ["erfc of 2 lanes"],
        "AMD's is wrong": {"log of 2 lanes": "AMD's is -709, not -inf, at (0)"},
        "AMD's was not run": ["exp of 8 lanes"],
    }
