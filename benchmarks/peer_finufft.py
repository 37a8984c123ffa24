"""The two bare calls of FINUFFT that a spectral local mean cannot do without."""


def two_calls(grid, x, v, n_threads):
    """Type 1 of ``1 + i v`` at the keys and type 2 at the same points, on the engine's own grid.

    Angles are made outside the timing; precision, modes, upsampling and threads are the engine's.
    """
    import finufft

    angles, _ = grid.angles(x)
    forward, back = (getattr(finufft, f"nufft{len(angles)}d{kind}") for kind in (1, 2))
    how = {"eps": grid.tolerance, "nthreads": n_threads, "upsampfac": 2.0}
    strengths = 1 + 1j * v

    def call():
        modes = forward(*angles, strengths, grid.modes, isign=-1, **how)
        return back(*angles, modes, isign=1, **how)

    return call
