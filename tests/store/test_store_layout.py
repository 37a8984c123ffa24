"""What reading takes, from metadata: never less than what is met."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from locpipe.store.layout import Layout


def sizes(most):
    return st.integers(1, most)


def met(size, chunk, start, n):
    """Chunks that ``start .. start + n`` touches."""
    stop = min(start + n, size)
    return -(-stop // chunk) - start // chunk


@given(size=sizes(60), chunk=sizes(70), n=sizes(70), columns=sizes(9), across=sizes(9))
def test_chunks_are_counted(size, chunk, n, columns, across):
    layout = Layout((size, columns), (chunk, across), 8, False)
    per_span = [met(size, chunk, start, n) for start in range(0, size, n)]
    n_across = -(-columns // across)
    assert layout.n_chunks((n,)) >= max(per_span) * n_across
    assert layout.chunks_of_spans(n) >= sum(per_span) * n_across
    assert layout.chunks_of_spans(size) == -(-size // chunk) * n_across


def test_bytes_grow_with_rows_chunks_and_shards():
    plain = Layout((10**6, 64), (1_000, 64), 4, False)
    assert plain.chunk_bytes == 256_000
    assert plain.read_bytes((10_000,)) > 2 * 10_000 * 256 + 20 * plain.chunk_bytes
    assert plain.read_bytes((50_000,)) > plain.read_bytes((10_000,))
    sharded = plain._replace(is_sharded=True)
    assert sharded.read_bytes((50_000,)) > plain.read_bytes((50_000,)) + 50_000 * 256
    wide = Layout((10**6, 64), (10**5, 64), 4, False)
    assert wide.read_bytes((10_000,)) > 2 * wide.chunk_bytes


def test_seconds_are_by_chunk_and_by_byte():
    small, large = (Layout((10**6, 4), (rows, 4), 8, False) for rows in (100, 10_000))
    assert small.read_seconds(100) > large.read_seconds(1)
    assert np.isclose(large.read_seconds(10), 10 * large.read_seconds(1))
