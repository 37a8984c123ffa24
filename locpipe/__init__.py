"""locpipe: kernel-weighted local means, and every method that is one, over data of any size."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from locpipe import config, errors, functions, kernels, plots, reductions, store
    from locpipe.bandwidths import abramson_bandwidths, neighbour_bandwidths
    from locpipe.functions import fold, local_mean, log_density, log_mass, nearest
    from locpipe.graph import Keys, Plan, Queries
    from locpipe.graph.prepare import prepare
    from locpipe.kernels import masks
    from locpipe.methods import AsymmetricMDS, KernelDensity, MeanShift
    from locpipe.planning import plan

__version__ = "0.1.0"

# Imported at first use, so that `import locpipe` and `locpipe --help` answer at once.
_HOMES = {
    "AsymmetricMDS": "locpipe.methods",
    "KernelDensity": "locpipe.methods",
    "Keys": "locpipe.graph",
    "MeanShift": "locpipe.methods",
    "Plan": "locpipe.graph",
    "Queries": "locpipe.graph",
    "abramson_bandwidths": "locpipe.bandwidths",
    "fold": "locpipe.functions",
    "local_mean": "locpipe.functions",
    "log_density": "locpipe.functions",
    "log_mass": "locpipe.functions",
    "nearest": "locpipe.functions",
    "neighbour_bandwidths": "locpipe.bandwidths",
    "plan": "locpipe.planning",
    "prepare": "locpipe.graph",
}
_MODULES = {
    "config": "locpipe.config",
    "errors": "locpipe.errors",
    "functions": "locpipe.functions",
    "kernels": "locpipe.kernels",
    "masks": "locpipe.kernels.masks",
    "plots": "locpipe.plots",
    "reductions": "locpipe.reductions",
    "store": "locpipe.store",
    "testing": "locpipe.testing",
}

__all__ = [
    "AsymmetricMDS",
    "KernelDensity",
    "Keys",
    "MeanShift",
    "Plan",
    "Queries",
    "abramson_bandwidths",
    "config",
    "errors",
    "fold",
    "functions",
    "kernels",
    "local_mean",
    "log_density",
    "log_mass",
    "masks",
    "nearest",
    "neighbour_bandwidths",
    "plan",
    "plots",
    "prepare",
    "reductions",
    "store",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'locpipe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
