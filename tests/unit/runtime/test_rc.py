"""Test the presets of theanorc files, and the translation of old flags."""

import pytest
from theano_fast import rc


def test_the_preset_fastest_uses_a_gpu_if_there_is_one():
    assert rc.make_preset("fastest", 1)["device"] == "cuda"
    assert rc.make_preset("fastest", 1)["gpuarray.preallocate"] == "0.95"
    without_gpu = rc.make_preset("fastest", 0)
    assert without_gpu["device"] == "cpu"
    assert without_gpu["floatX"] == "float32"
    assert not [flag for flag in without_gpu if flag.startswith(("dnn.", "gpuarray."))]


def test_the_preset_development_uses_the_cpu():
    assert rc.make_preset("development", 4) == {"device": "cpu", "mode": "FAST_COMPILE"}


def test_the_preset_multi_gpu_names_each_gpu():
    assert rc.make_preset("multi-gpu", 3)["contexts"] == "dev0->cuda0;dev1->cuda1;dev2->cuda2"


@pytest.mark.parametrize("gpus", [0, 1])
def test_the_preset_multi_gpu_needs_two_gpus(gpus):
    with pytest.raises(rc.RcError, match=f"at least two devices, and Theano can use {gpus} here"):
        rc.make_preset("multi-gpu", gpus)


def test_each_old_flag_is_translated_with_a_message():
    old = {"device": "gpu0", "lib.cnmem": "0.8", "nvcc.fastmath": "True", "floatX": "float32"}
    flags, messages = rc.translate(old)
    assert flags == {"device": "cuda0", "gpuarray.preallocate": "0.8", "floatX": "float32"}
    assert messages == (
        "device=gpu0 is now device=cuda0",
        "lib.cnmem=0.8 is now gpuarray.preallocate=0.8",
        "nvcc.fastmath=True was removed: Theano 1.0.5 has no such flag",
    )


def test_old_device_names_in_contexts_are_translated():
    assert rc.translate({"contexts": "a->gpu0;b->gpu1"})[0] == {"contexts": "a->cuda0;b->cuda1"}


def test_an_old_flag_can_become_two_flags():
    flags, _ = rc.translate({"dnn.conv.algo_bwd": "deterministic"})
    assert flags == {
        "dnn.conv.algo_bwd_filter": "deterministic",
        "dnn.conv.algo_bwd_data": "deterministic",
    }


def test_current_flags_are_not_changed():
    flags = {"device": "cuda1", "dnn.conv.algo_fwd": "time_once"}
    assert rc.translate(flags) == (flags, ())


def test_a_rendered_file_is_parsed_to_the_same_flags():
    flags = rc.make_preset("fastest", 1)
    text = rc.render(flags)
    assert rc.parse(text) == flags
    assert text.startswith("[global]\n")
    assert "\n[dnn.conv]\nalgo_bwd_data = time_once\n" in text


def test_a_broken_file_is_an_error():
    with pytest.raises(rc.RcError, match="no section headers"):
        rc.parse("device = gpu\n")


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(rc.RcError, match=r"\.theanorc cannot be read: No such file"):
        rc.read(tmp_path / ".theanorc")
