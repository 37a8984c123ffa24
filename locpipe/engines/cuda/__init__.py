"""The engine ``fused`` for CuPy arrays: CUDA kernels, compiled on first use by NVRTC."""

from locpipe.engines.cuda.engine import FusedCuda

__all__ = ["FusedCuda"]
