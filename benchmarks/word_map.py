"""How good the map of a novel is: `python benchmarks/word_map.py NOVEL.txt [SEED ...]`.

Runs `locpipe run embed-corpus` on the novel, once per seed, and prints the 20-neighbour lift over
chance of two lists of words that were fixed before any map was looked at: names of people, and
verbs of speech.  The lift is the share of a listed word's 20 nearest dots that are listed, over
the share that chance gives; with lists this long the best possible value is about 50.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import zarr

import locpipe as lp

NAMES = (
    "oliver fagin sikes nancy bumble brownlow rose monks claypole noah charlotte bates dodger "
    "grimwig losberne maylie sowerberry giles brittles corney harry toby crackit barney mann "
    "charley bill jack"
)
SPEECH = (
    "said replied cried exclaimed inquired rejoined asked answered whispered muttered interposed "
    "remarked observed demanded added retorted returned murmured continued urged shouted roared "
    "growled"
)
NEIGHBOURS = 20


def lift(embedding, words, listed):
    """Share of the listed words' nearest dots that are listed, over what chance gives."""
    member = np.isin(words, listed.split())
    _, near = lp.nearest(embedding, embedding, NEIGHBOURS, exclude_self=True)
    chance = (member.sum() - 1) / (len(words) - 1)
    return member[near[member]].mean() / chance


def make_map(novel, output, seed):
    """Run the flow as a user would; return the store and the seconds."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "locpipe", "run", "embed-corpus", "--direct"]
    settings = [f"--set=input={novel}", f"--set=random_state={seed}", f"--output={output}"]
    subprocess.run(command + settings, check=True, stdout=subprocess.DEVNULL)
    return zarr.open_group(output, mode="r"), time.perf_counter() - start


def main():
    """Print one line per seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("novel")
    parser.add_argument("seeds", nargs="*", type=int, default=[0, 1])
    arguments = parser.parse_args()
    print("seed  words  names  speech  overlap  by chance  spread  stress  start      seconds")
    with tempfile.TemporaryDirectory() as folder:
        for seed in arguments.seeds:
            store, seconds = make_map(arguments.novel, Path(folder, f"{seed}.zarr"), seed)
            words, dots = store["word"][:], store["embedding"][:]
            found = store.attrs
            print(
                f"{seed:4}  {len(words):5}  {lift(dots, words, NAMES):5.1f}"
                f"  {lift(dots, words, SPEECH):6.1f}  {found['neighbour_overlap']:7.3f}"
                f"  {found['neighbour_overlap_by_chance']:9.3f}  {found['radius_spread']:6.2f}"
                f"  {found['stress']:6.3f}  {found['start']:9}  {seconds:7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
