"""Tests in this folder need a CUDA device; they are skipped only where there is none."""

import pytest


@pytest.fixture(scope="session")
def cupy():
    """Return CuPy, if it finds a device."""
    module = pytest.importorskip("cupy")
    if not module.cuda.is_available():
        pytest.skip("no CUDA device")
    return module


@pytest.fixture(scope="session")
def to_device(cupy):
    """Return a function that moves the arrays of a block to the device."""
    from dataclasses import fields, replace

    def moved(block):
        given = {f.name: getattr(block, f.name) for f in fields(block) if f.name != "start"}
        arrays = {name: cupy.asarray(a) for name, a in given.items() if a is not None}
        return replace(block, **arrays)

    return moved
