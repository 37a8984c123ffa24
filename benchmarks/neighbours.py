"""Nearest neighbours of pictures: `python benchmarks/neighbours.py`.

20,000 of the pictures of Fashion-MNIST among its 60,000 (784 pixels, 0 to 255), k = 15, against
faiss and scikit-learn.  The pictures come with the Debian package ``dataset-fashion-mnist``.  As
pixels are whole numbers, float64 knows every distance exactly, and which keys are equally near:
all indices are checked.  scikit-learn takes so long that it has one round where others have three.
Three minutes.
"""

import gzip
from functools import partial
from pathlib import Path

import numpy as np
import peer_neighbours
from side_by_side import Contender, arguments, compare, heading, lines

import locpipe as lp

_BLOCK = 500
PICTURES = Path("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz")


def pictures(n: int) -> np.ndarray:
    """The first pictures, one a row, in float32."""
    pixels = np.frombuffer(gzip.decompress(PICTURES.read_bytes()), np.uint8, offset=16)
    return pixels.reshape(-1, 784)[:n].astype(np.float32)


def true_neighbours(q: np.ndarray, keys: np.ndarray, k: int) -> np.ndarray:
    """Indices of the k nearest keys of rows of whole numbers, the lower of two equals first."""
    keys = keys.astype(float)
    squares = np.square(keys).sum(axis=1)
    blocks = (q[start : start + _BLOCK] for start in range(0, len(q), _BLOCK))
    # Products and squares are whole numbers below 2^53, so nothing is rounded.
    gaps = (squares - 2 * (block.astype(float) @ keys.T) for block in blocks)
    return np.array([_least(row, k) for rows in gaps for row in rows])


def _least(row: np.ndarray, k: int) -> np.ndarray:
    """Places of the k least numbers, the first of equals first."""
    near = np.flatnonzero(row <= np.partition(row, k - 1)[k - 1])
    return near[np.argsort(row[near], kind="stable")[:k]]


def main(argv=None) -> None:
    """Print the table; its error is the share of rows with a wrong or misplaced index."""
    defaults = {"queries": 20_000, "keys": 60_000, "k": 15, "rounds": 3}
    parser = arguments(__doc__, **defaults, engine="auto", budget=25.0)
    options = parser.parse_args(argv)
    if not PICTURES.exists():
        print(f"{PICTURES} is missing; get it with: apt-get install dataset-fashion-mnist\n")
        return
    title = f"{options.k} nearest of {options.keys:,} pictures, {options.queries:,} queries"
    heading(f"{title}; error: share of all rows not as float64 has them", options.threads)
    keys = pictures(options.keys)
    rng = np.random.default_rng(options.seed)
    q = keys[rng.choice(len(keys), options.queries, replace=False)]
    run = {"engine": options.engine, "n_threads": options.threads}
    ours = partial(lp.nearest, k=options.k, **run)
    peers = {"faiss.knn": peer_neighbours.faiss, "scikit-learn": peer_neighbours.scikit_learn}
    contenders = {"ours": Contender(lambda: partial(ours, q, keys))}
    for name, peer in peers.items():
        contenders[name] = Contender(partial(peer, q, keys, options.k), warm=False)
    how = {"n_threads": options.threads, "rounds": options.rounds, "budget": options.budget}
    found = compare(contenders, **how)
    true = true_neighbours(q, keys, options.k)
    lines(found, list(contenders), lambda r: float((r[1] != true).any(axis=1).mean()))


if __name__ == "__main__":
    main()
