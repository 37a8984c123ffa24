"""How long a person waits: `python benchmarks/command_line.py`.

Seconds until `locpipe --help` is done, until the first line of a direct run, until a whole direct
run of the default corpus is done, and until a second one has recognised the finished store.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

LOCPIPE = [sys.executable, "-m", "locpipe"]


def seconds_until_first_line(command):
    """Start a run, wait for its first line, and stop it."""
    start = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        process.stderr.readline()
        seconds = time.perf_counter() - start
        process.terminate()
    return seconds


def seconds_until_done(command):
    """Run a command to its end."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def main():
    """Print one line per measurement."""
    with tempfile.TemporaryDirectory() as folder:
        run = [*LOCPIPE, "run", "embed-corpus", "--direct", "-o"]
        store = str(Path(folder, "map.zarr"))
        help_ = min(seconds_until_done([*LOCPIPE, "--help"]) for _ in range(3))
        first = min(seconds_until_first_line([*run, f"{folder}/{i}.zarr"]) for i in range(3))
        print(f"--help          {help_:6.2f} s")
        print(f"first line      {first:6.2f} s")
        print(f"direct run      {seconds_until_done([*run, store]):6.2f} s")
        print(f"finished store  {seconds_until_done([*run, store]):6.2f} s")


if __name__ == "__main__":
    main()
