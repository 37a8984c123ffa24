"""Engines for CuPy arrays: ``fused`` by kernels that NVRTC compiles, ``spectral`` by cuFINUFFT."""

from locpipe.engines.cuda.engine import FusedCuda
from locpipe.engines.cuda.spectral import SpectralCuda

__all__ = ["FusedCuda", "SpectralCuda"]
