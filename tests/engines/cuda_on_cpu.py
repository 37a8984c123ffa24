"""The CUDA sources run on the CPU: the same text, compiled as C++, a fiber per thread.

A block's threads take turns in one thread of the process and hand over at __syncthreads(), so
shared memory, barriers and indices work as on a device; exp and its like are the C library's.
"""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from locpipe.engines.cuda import device

COMMAND = ("g++", "-std=c++17", "-O1", "-march=native", "-ffp-contract=off", "-shared", "-fPIC")

BEFORE = r"""
#include <cmath>
#include <ucontext.h>
#include <utility>
using std::cos, std::exp, std::fma, std::fmax, std::fmin, std::isinf, std::log, std::log1p;
using std::sqrt;
#define __global__
#define __device__
#define __shared__ static
struct Index { int x, y; };
static Index threadIdx, blockIdx;
static ucontext_t scheduler, fibers[1024];
static bool done[1024];
static char stacks[1024][65536];
static void (*kernel)();
static void** arguments;

static void __syncthreads() { swapcontext(&fibers[threadIdx.x], &scheduler); }
static void fiber() {
  kernel();
  done[threadIdx.x] = true;
  __syncthreads();
}
static void run_block(int n_threads) {
  for (int t = 0; t < n_threads; ++t) {
    getcontext(&fibers[t]);
    fibers[t].uc_stack.ss_sp = stacks[t];
    fibers[t].uc_stack.ss_size = sizeof stacks[t];
    makecontext(&fibers[t], fiber, 0);
    done[t] = false;
  }
  for (bool more = true; more;) {
    more = false;
    for (threadIdx.x = 0; threadIdx.x < n_threads; ++threadIdx.x)
      if (!done[threadIdx.x]) {
        swapcontext(&scheduler, &fibers[threadIdx.x]);
        more = true;
      }
  }
}
template <auto Kernel> struct Entry;
template <typename... A, void (*Kernel)(A...)> struct Entry<Kernel> {
  template <size_t... I> static void pass(std::index_sequence<I...>) {
    Kernel(*static_cast<A*>(arguments[I])...);
  }
  static void call() { pass(std::index_sequence_for<A...>{}); }
  static bool fits(const int* sizes, int n) {
    const int expected[] = {int(sizeof(A))...};
    for (int i = 0; i < n && n == sizeof...(A); ++i)
      if (sizes[i] != expected[i]) return false;
    return n == sizeof...(A);
  }
};
"""
AFTER = r"""
extern "C" bool run(void** given, const int* sizes, int n, int blocks_x, int blocks_y,
                    int threads) {
  using Chosen = Entry<&%s>;
  if (!Chosen::fits(sizes, n)) return false;
  arguments = given;
  kernel = Chosen::call;
  for (blockIdx.y = 0; blockIdx.y < blocks_y; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < blocks_x; ++blockIdx.x) run_block(threads);
  return true;
}
"""


class Emulator:
    """Stands in for `device.launch`, with NumPy arrays; compiles each kernel once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.libraries: dict[tuple[str, str], ctypes.CDLL] = {}
        self.launched: list[str] = []

    def launch(self, file, expression, grid, n_threads, arguments) -> None:
        self.launched.append(expression)
        library = self._library(file, expression)
        # The addresses of values: numbers as they are, arrays as pointers to their data.
        held = [np.uintp(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments]
        assert all(a.flags.c_contiguous for a in arguments if isinstance(a, np.ndarray))
        boxes = [np.asarray(value) for value in held]
        pointers = (ctypes.c_void_p * len(boxes))(*(box.ctypes.data for box in boxes))
        sizes = (ctypes.c_int * len(boxes))(*(box.itemsize for box in boxes))
        assert library.run(pointers, sizes, len(boxes), *grid, n_threads), "sizes of parameters"

    def _library(self, file: str, expression: str) -> ctypes.CDLL:
        key = (file, expression)
        if key not in self.libraries:
            stem = self.folder / f"kernel{len(self.libraries)}"
            text = BEFORE + device.source(file) + AFTER % expression
            stem.with_suffix(".cpp").write_text(text)
            target = str(stem.with_suffix(".so"))
            subprocess.run([*COMMAND, str(stem.with_suffix(".cpp")), "-o", target], check=True)
            self.libraries[key] = ctypes.CDLL(target)
        return self.libraries[key]
