"""The transforms of cuFINUFFT, called as those of FINUFFT are: NumPy arrays in and out."""

from __future__ import annotations

from typing import Any

from locpipe.blocks import Array

__all__ = ["Plan"]


class Plan:
    """Stands in for ``finufft.Plan``, so that the engine ``spectral`` needs to know no device.

    Parameters
    ----------
    kind : {1, 2}
    modes : tuple of n_features ints
    eps, isign
        As of ``finufft.Plan``.
    nthreads, upsampfac
        Not used: the device has threads of its own, and its grids are twice as fine as the modes,
        the one ratio at which it has every accuracy.
    """

    def __init__(
        self,
        kind: int,
        modes: tuple[int, ...],
        *,
        eps: float,
        isign: int,
        nthreads: int,
        upsampfac: float,
    ) -> None:
        import cufinufft
        import cupy

        stream = cupy.cuda.get_current_stream().ptr
        options = {"upsampfac": 2.0, "gpu_stream": stream}
        self._plan: Any = cufinufft.Plan(
            kind, modes, eps=eps, isign=isign, dtype="complex128", **options
        )
        self._points: list[Array] = []

    def setpts(self, *angles: Array) -> None:
        """Move the points to the device and sort them."""
        import cupy

        self._points = [cupy.ascontiguousarray(cupy.asarray(angle)) for angle in angles]
        self._plan.setpts(*self._points)

    def execute(self, data: Array) -> Array:
        """One transform of complex128 data."""
        import cupy

        moved = cupy.ascontiguousarray(cupy.asarray(data))
        return cupy.asnumpy(self._plan.execute(moved))
