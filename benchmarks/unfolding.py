"""How exactly unfolding finds a known configuration: `python benchmarks/unfolding.py`.

120 row points and 90 column points in the plane, their distances without noise; the Procrustes
disparity of what is found, from the spectral start and from the best of ten random starts.
"""

import time

import numpy as np
from scipy.spatial import procrustes

import locpipe as lp

SHAPE, SEEDS = (120, 90), range(5)


def main():
    """Print one line per configuration and start."""
    lp.AsymmetricMDS().fit(np.arange(12.0).reshape(3, 4))  # imports are not what is measured
    print("seed  start      disparity  sweeps  seconds")
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        rows, columns = (rng.normal(size=(n, 2)) for n in SHAPE)
        delta = np.linalg.norm(rows[:, None] - columns[None], axis=2)
        for init in ("spectral", "random"):
            start = time.perf_counter()
            found = lp.AsymmetricMDS(init=init, max_iter=1000).fit(delta)
            seconds = time.perf_counter() - start
            ours = np.vstack([found.embedding_, found.key_embedding_])
            disparity = procrustes(np.vstack([rows, columns]), ours)[2]
            rising = (np.diff(found.stress_history_) > 0).any()
            print(
                f"{seed:4}  {init:9}  {disparity:9.1e}  {found.n_iter_:6}  {seconds:7.2f}"
                + ("  STRESS ROSE" if rising else "")
            )


if __name__ == "__main__":
    main()
