"""Compiled code is kept for the next process, wherever there is a place for it."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from locpipe.engines.fused import compiled

# Folds once and prints how many functions were compiled, and where code is kept.
FOLD = """
import numpy as np
from numba.core import compiler
from locpipe.engines.fused import compiled
{before}
count, plain = 0, compiler.compile_extra
def counted(*a, **k):
    global count
    count += 1
    return plain(*a, **k)
compiler.compile_extra = counted
import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines.fused import Fused
x = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
mean = lp.reductions.WeightedMean(1)
q, k = QueryBlock(x), KeyBlock(x, values=x[:, :1])
state = Fused(1e-6).fold(mean, mean.init(q), q, k, lp.kernels.Gaussian(0.4))
print(count, compiled.cache_folder(), float(state.moment.sum()))
"""


def start(before="", **env):
    command = [sys.executable, "-c", FOLD.format(before=before)]
    env = {**os.environ, **{name: str(value) for name, value in env.items()}}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


def answer(process):
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    count, folder, total = out.split()
    return int(count), folder, total


def test_the_second_process_compiles_nothing(tmp_path):
    first, second = (answer(start(NUMBA_CACHE_DIR=tmp_path)) for _ in range(2))
    assert first[0] > 0
    assert second == (0, *first[1:])
    assert Path(first[1]).is_relative_to(tmp_path)
    # A file cut short is as good as none.
    for file in tmp_path.rglob("*.nbc"):
        file.write_bytes(file.read_bytes()[:1000])
    third = answer(start(NUMBA_CACHE_DIR=tmp_path))
    assert third == first


# A ranking is compiled when it is first called, and for several signatures.
RANK = """
import numpy as np, locpipe as lp
x = np.random.default_rng(0).normal(size=(500, 3))
print(int(lp.nearest(x, x, 2, engine="fused")[1].sum()))
"""


def test_a_list_of_what_is_kept_that_cannot_be_read_is_begun_anew(tmp_path):
    def rank():
        env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", RANK], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = rank()
    lists = list(tmp_path.rglob("*.nbi"))
    assert lists
    # As a release leaves it whose types have other names: the version is right, the rest is not.
    spoiled = pickle.dumps(numba.__version__) + b"clocpipe.errors\nNoLonger\n."
    for file in lists:
        file.write_bytes(spoiled)
    assert rank() == first
    assert all(file.read_bytes() != spoiled for file in lists)


def test_processes_that_compile_at_once(tmp_path):
    both = [start(NUMBA_CACHE_DIR=tmp_path) for _ in range(2)]
    assert len({answer(process)[1:] for process in both}) == 1
    assert answer(start(NUMBA_CACHE_DIR=tmp_path))[0] == 0


def test_nowhere_to_write_but_the_temporary_folder(tmp_path):
    nowhere = Path(os.devnull) / "home"
    before = f"compiled.__file__ = {str(nowhere / 'compiled.py')!r}"
    env = {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "TMPDIR": tmp_path, "NUMBA_CACHE_DIR": ""}
    first, second = (answer(start(before, **env)) for _ in range(2))
    assert Path(first[1]).is_relative_to(tmp_path)
    assert first[0] > 0 == second[0]


def test_nowhere_to_write_at_all(tmp_path):
    count, folder, _ = answer(start("compiled._folders = lambda: iter(())"))
    assert count > 0
    assert folder == "None"


def test_a_folder_that_others_may_write_is_not_used(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert not compiled._usable(shared)
    assert not compiled._usable(shared / "inside")
    assert compiled._usable(tmp_path / "mine" / "inside")


def test_code_is_stale_once_a_file_changes(tmp_path, monkeypatch):
    here, other = tmp_path / "fused" / "compiled.py", tmp_path / "pruned" / "other.py"
    other.parent.mkdir()
    monkeypatch.setattr(compiled, "__file__", str(here))
    stamps = []
    for text in ("1", "2"):
        other.write_text(text)
        compiled._stamp.cache_clear()
        stamps.append(compiled._stamp())
    compiled._stamp.cache_clear()
    assert stamps[0] != stamps[1]


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_powers_and_logarithms(real):
    from numba import njit

    from locpipe.engines.fused.exponential import FLOOR, log2_of_1_plus, two_to_minus

    power, logarithm = two_to_minus(real), log2_of_1_plus(real)

    @njit
    def both(x):
        out = np.empty((2, x.size), x.dtype)
        for i in range(x.size):
            out[0, i], out[1, i] = power(x[i]), logarithm(x[i])
        return out

    t = np.concatenate([np.linspace(0, FLOOR[real], 5001), np.logspace(-30, 2, 999)]).astype(real)
    found = both(t)
    few = 4 * np.finfo(real).eps
    np.testing.assert_allclose(found[0], np.exp2(-t.astype(np.longdouble)), rtol=few)
    right = np.log1p(t.astype(np.longdouble)) / np.log(np.longdouble(2))
    np.testing.assert_allclose(found[1], right, rtol=few)
    far = both(np.array([1e30, np.inf], real))
    np.testing.assert_allclose(far[0], 2.0 ** -FLOOR[real], rtol=few)
    assert np.all(np.isfinite(far))
