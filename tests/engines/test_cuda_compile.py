"""Every CUDA kernel that a fold may ask for compiles for two generations of GPUs, without one."""

import re

import pytest

from locpipe.engines.cuda import device, small, wide
from locpipe.engines.cuda.profiles import DOT

ARCHITECTURES = (80, 90)  # A100; H100 and H200
NUMBERS = range(DOT + 1)


def compiled(file, names, architecture):
    """Size of the machine code, and the compiler's log; the one place that names a private API."""
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc", exc_type=ImportError)
    try:
        nvrtc.getVersion()
    except RuntimeError as error:  # CuPy is here, the compiler is not
        pytest.skip(str(error))
    program = nvrtc.createProgram(device.source(file), file, (), ())
    try:
        for name in names:
            nvrtc.addNameExpression(program, name)
        options = (*device.OPTIONS, f"-arch=sm_{architecture}", "--ptxas-options=-v")
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError:
            pytest.fail(nvrtc.getProgramLog(program))
        assert all(nvrtc.getLoweredName(program, name) for name in names)
        return nvrtc.getCUBIN(program), nvrtc.getProgramLog(program)
    finally:
        nvrtc.destroyProgram(program)


def check(file, names, architecture):
    code, log = compiled(file, names, architecture)
    assert code[:4] == b"\x7fELF"
    assert "warning" not in log
    spills = re.findall(r"(\d+) bytes spill", log)
    assert len(spills) >= 2 * len(names), log  # stores and loads
    assert set(spills) == {"0"}, log  # all fits into registers


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("number", [n for n in NUMBERS if n != DOT])
def test_kernels_of_few_features(number, architecture):
    check("small.cu", small.shipped(number), architecture)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_of_many_features(architecture):
    names = dict.fromkeys(name for number in NUMBERS for name in wide.shipped(number))
    check("wide.cu", list(names), architecture)


def test_a_fault_in_a_source_is_reported(monkeypatch):
    monkeypatch.setattr(device, "source", lambda file: "__global__ void f() { missing(); }")
    with pytest.raises(pytest.fail.Exception, match="missing"):
        compiled("small.cu", ["f"], 90)
