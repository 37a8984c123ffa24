"""Nearest neighbours of pictures: `python benchmarks/neighbours.py`.

20,000 of the pictures of Fashion-MNIST among its 60,000 (784 pixels, 0 to 255), k = 15, against
faiss and scikit-learn.  The pictures come with the Debian package ``dataset-fashion-mnist``.  As
pixels are whole numbers, float64 knows every distance exactly, and which keys are equally near.
"""

import gzip
from functools import partial
from pathlib import Path

import numpy as np
import oracle
import peer_neighbours
from side_by_side import Contender, arguments, compare, heading, lines

import locpipe as lp

PICTURES = Path("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz")


def pictures(n: int) -> np.ndarray:
    """The first pictures, one a row, in float32."""
    pixels = np.frombuffer(gzip.decompress(PICTURES.read_bytes()), np.uint8, offset=16)
    return pixels.reshape(-1, 784)[:n].astype(np.float32)


def main(argv=None) -> None:
    """Print the table; its error is the share of rows with a wrong or misplaced index."""
    defaults = {"queries": 20_000, "keys": 60_000, "k": 15, "checked": 200, "rounds": 3}
    parser = arguments(__doc__, **defaults, engine="auto", budget=60.0)
    options = parser.parse_args(argv)
    if not PICTURES.exists():
        print(f"{PICTURES} is missing; get it with: apt-get install dataset-fashion-mnist\n")
        return
    title = f"{options.k} nearest of {options.keys:,} pictures, {options.queries:,} queries"
    heading(f"{title}; error: share of rows not as the oracle's", options.threads)
    keys = pictures(options.keys)
    rng = np.random.default_rng(options.seed)
    q = keys[rng.choice(len(keys), options.queries, replace=False)]
    run = {"engine": options.engine, "n_threads": options.threads}
    ours = partial(lp.nearest, k=options.k, **run)
    peers = {"faiss.knn": peer_neighbours.faiss, "scikit-learn": peer_neighbours.scikit_learn}
    contenders = {"ours": Contender(lambda: partial(ours, q, keys), warm=False)}
    for name, peer in peers.items():
        contenders[name] = Contender(partial(peer, q, keys, options.k), warm=False)
    ours(q[:100], keys[:2000])  # what it compiles
    how = {"n_threads": options.threads, "rounds": options.rounds, "budget": options.budget}
    found = compare(contenders, **how)
    sample = rng.choice(len(q), min(len(q), options.checked), replace=False)
    true = oracle.neighbours(q[sample], keys, options.k)
    lines(found, list(contenders), lambda r: float((r[1][sample] != true).any(axis=1).mean()))


if __name__ == "__main__":
    main()
