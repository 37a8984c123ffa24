"""The Gaussian local mean on a CUDA device against torch's attention and KeOps there.

`python benchmarks/gpu.py`: standard normal float32 data that is on the device already, bandwidth
0.3 sqrt(d), TF32 off for all.  A call ends when the device is done.  Needs `locpipe[cuda13]` and,
for the peers, torch and pykeops with CUDA.  `--only 64,64` takes one case.
"""

from functools import partial

import numpy as np
import oracle
from peer_torch import padded
from side_by_side import MISSING, Contender, arguments, compare, ratio, table

import locpipe as lp

SHAPES = ((1, 1), (2, 1), (2, 2), (3, 3), (8, 1), (16, 16), (64, 1), (64, 64), (784, 784))
COLUMNS = ("d", "outputs", "n", "seconds", "pairs/s", *("torch by ours", "KeOps by ours"), "error")


def ours(q, k, v, bandwidth):
    """A call of the public function with CuPy arrays."""
    import cupy

    rows = [cupy.asarray(array) for array in (q, k, v)]
    kernel = lp.kernels.Gaussian(bandwidth)

    def call():
        mean = lp.local_mean(*rows, kernel, engine="fused", rtol=1e-6)
        cupy.cuda.Device().synchronize()
        return mean

    return call


def by_torch(q, k, v, bandwidth):
    """Attention with one more key feature, as on the CPU (see peer_torch)."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    torch.backends.cuda.matmul.allow_tf32 = False
    # Its memory-saving kernels want widths that are multiples of 8.
    width = -(-max(q.shape[1] + 1, v.shape[1]) // 8) * 8
    queries = np.column_stack([q / bandwidth**2, np.ones(len(q))])
    keys = np.column_stack([k, -(k.astype(float) ** 2).sum(1) / 2 / bandwidth**2])
    tensors = [torch.from_numpy(padded(a, width)).cuda()[None, None] for a in (queries, keys, v)]

    def call():
        with torch.inference_mode():
            mean = scaled_dot_product_attention(*tensors, scale=1.0)[0, 0, :, : v.shape[1]]
        torch.cuda.synchronize()
        return mean

    return call


def by_keops(q, k, v, bandwidth):
    """A sum of weighted values and a sum of weights in one formula."""
    import torch
    from pykeops.torch import Genred

    d, n_values = q.shape[1], v.shape[1] + 1
    variables = [f"x = Vi({d})", f"y = Vj({d})", f"v = Vj({n_values})"]
    sums = Genred("Exp(-SqDist(x, y)) * v", variables, reduction_op="Sum", axis=1)
    scale = np.float32(np.sqrt(0.5) / bandwidth)
    with_one = np.column_stack([v, np.ones(len(v), np.float32)])
    tensors = [torch.from_numpy(array).cuda() for array in (q * scale, k * scale, with_one)]

    def call():
        total = sums(*tensors, backend="GPU")
        mean = total[:, :-1] / total[:, -1:]
        torch.cuda.synchronize()
        return mean

    return call


def measure(d, n_outputs, options, row) -> None:
    """Print one line."""
    n = options.n
    rng = np.random.default_rng(options.seed)
    q, k, v = (rng.standard_normal((n, c), np.float32) for c in (d, d, n_outputs))
    data = (q, k, v, 0.3 * d**0.5)
    contenders = {
        "ours": Contender(partial(ours, *data)),
        "torch": Contender(partial(by_torch, *data)),
    }
    if d <= options.keops_up_to:
        contenders["KeOps"] = Contender(partial(by_keops, *data))
    found = compare(contenders, n_threads=options.threads, rounds=options.rounds)
    mine = found["ours"]
    ratios = [ratio(found[name], mine) if name in found else MISSING for name in ("torch", "KeOps")]
    sample = rng.choice(n, 200, replace=False)
    true = oracle.truth(q[sample], k, v, data[-1])
    error = oracle.mean_error(mine.result.get()[sample], true)
    row(d, n_outputs, n, mine.median, f"{n * n / mine.median / 1e9:.1f} G", *ratios, error)


def device() -> str:
    """Name of the device, and the versions that matter."""
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return f"{name}, CuPy {cupy.__version__}, CUDA {cupy.cuda.runtime.runtimeGetVersion()}"


def main(argv=None) -> None:
    """Print the table."""
    options = arguments(__doc__, n=65_536, only="", keops_up_to=64).parse_args(argv)
    print(f"### Gaussian local mean on a GPU, float32, rtol 1e-6\n\n{device()}\n")
    row = table(COLUMNS)
    for shape in SHAPES:
        if options.only in ("", ",".join(map(str, shape))):
            measure(*shape, options, row)


if __name__ == "__main__":
    main()
