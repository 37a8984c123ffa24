"""`locpipe doctor`: does this installation work? Each check does the real thing, in small."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from locpipe.errors import LocpipeError
from locpipe.flows.server import check_server, configured_server

__all__ = ["examine"]

PACKAGES: Final = ("locpipe", "numpy", "scipy", "scikit-learn", "dask", "zarr", "prefect")
OPTIONAL: Final = ("pyarrow", "xarray")


def examine() -> bool:
    """Print what was found; return whether all is well."""
    checks = {
        "Python": _python,
        "packages": _packages,
        "optional": _optional,
        "machine": _machine,
        "temporary files": _temporary,
        "Dask": _dask,
        "store": _store,
        "Prefect": _prefect,
    }
    well = [_report(name, check) for name, check in checks.items()]
    return all(well)


def _report(name: str, check: Callable[[], str]) -> bool:
    try:
        found, well = check(), True
    except LocpipeError as error:  # says it in one sentence
        found, well = str(error), False
    except Exception as error:  # a doctor reports any illness
        found, well = f"{type(error).__name__}: {error}", False
    print(f"{'ok  ' if well else 'FAIL'} {name:<16} {found}")
    return well


def _python() -> str:
    return f"{sys.version.split()[0]} at {sys.executable}"


def _packages() -> str:
    return ", ".join(f"{name} {version(name)}" for name in PACKAGES)


def _optional() -> str:
    found = []
    for name in OPTIONAL:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def _machine() -> str:
    import psutil

    available = psutil.virtual_memory().available / 2**30
    return f"{len(os.sched_getaffinity(0))} cores for us, {available:.1f} GiB of memory free"


def _temporary() -> str:
    folder = tempfile.gettempdir()
    return f"{folder}, {shutil.disk_usage(folder).free / 2**30:.1f} GiB free"


def _dask() -> str:
    from locpipe.cluster import connect

    with connect("threads", threads_per_worker=2) as client:
        answer = client.submit(sum, [20, 22]).result(timeout=30)
    if answer != 42:
        raise ArithmeticError(f"a worker finds 20 + 22 to be {answer}")
    return "a worker started and computed"


def _store() -> str:
    import numpy as np

    from locpipe.store import ArraySpec, open_run

    with tempfile.TemporaryDirectory() as folder:
        url = f"{folder}/test.zarr"
        with open_run(url, flow="doctor", parameters={}, fingerprint="0" * 16, plan={}) as run:
            run.put(ArraySpec("answer", ("item",), (1,), (1,), np.int64), np.array([42]))
            run.finish()
            if run.read("answer").tolist() != [42]:
                raise OSError("what was written to a store came back changed")
    return "written and read back"


def _prefect() -> str:
    url = configured_server()
    if url is None:
        return "no server configured: each run starts its own"
    check_server(url)
    return f"{url} answers"
