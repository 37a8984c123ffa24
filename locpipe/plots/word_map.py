"""The picture of a map of words."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locpipe.errors import InputError
from locpipe.functions import log_density
from locpipe.kernels import Gaussian
from locpipe.plots.labels import place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.figure import Figure

__all__ = ["word_map"]

Floats = NDArray[np.float64]

SIZE = (14.0, 10.0)  # inches
DPI = 150
FONT = (12.0, 6.5)  # points, of the first word and of the last
GRID = 160  # cells of the background along the longer side
LEGEND = 12  # clusters that are named
LEGEND_WIDTH, HEAD, EDGE = 0.2, 0.09, 0.04  # parts of the page without dots
GREY = "#8a8a8a"
# Twelve hues, dark enough to read as text on the pale background.
PALETTE = (
    *("#1f5fa8", "#c8431b", "#2a7f3f", "#7b3fa0", "#b8860b", "#0e7c86"),
    *("#b0266c", "#5a5a1e", "#8c4a2f", "#4353c4", "#3f7d1f", "#a03a3a"),
)


def word_map(
    path: str | os.PathLike[str],
    words: Sequence[str],
    embedding: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    cluster_names: Mapping[int, str] | None = None,
    bandwidth: float | Sequence[float] | None = None,
    key_embedding: ArrayLike | None = None,
    title: str = "",
    subtitle: str = "",
) -> int:
    """Draw words where a map puts them, over their density.

    Parameters
    ----------
    path : path
        PNG to write, 2100 x 1500 pixels; replaced at once when all is drawn.
    words : sequence of n str
        The most important first: earlier words get larger labels, and get them first.
    embedding : (n, p)
        The dots; the first two columns are drawn. One column is drawn along a line.
    labels : (n,) int, optional
        Cluster of each word, its colour; clusters of one word are grey.
    cluster_names : mapping of int to str, optional
        Names for the legend, which shows the twelve largest clusters.
    bandwidth : float or pair, optional
        Gaussian bandwidth of the density in the background, in map units; default: Scott's
        rule with the mean spread of the axes.
    key_embedding : (n, p), optional
        Draws an arrow from each labelled dot to this point of the same word.
    title, subtitle : str

    Returns
    -------
    int
        Number of words that found room for a label; all have a dot.

    Raises
    ------
    InputError
        If the arrays do not fit each other or are not finite, or the picture cannot be written.

    Notes
    -----
    O(n (n_cells + n_labels)) time.  Same input, same pixels.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> png = Path(folder.name, "map.png")
    >>> word_map(png, ["north", "south", "east"], [[0, 1], [0, -1], [1, 0]], labels=[0, 0, 1])
    3
    >>> png.read_bytes()[1:4], folder.cleanup()
    (b'PNG', None)
    """
    words, n = list(words), len(words)
    points = _as_points(embedding, n, "embedding")
    heads = None if key_embedding is None else _as_points(key_embedding, n, "key_embedding")
    colours = _colours(labels, n)
    names = cluster_names if cluster_names and labels is not None else {}
    right = LEGEND_WIDTH if names else 0.0
    figure, axes = _canvas(title, subtitle, points, right)
    _draw_density(axes, points, bandwidth)
    axes.scatter(points[:, 0], points[:, 1], s=9, c=colours, lw=0, alpha=0.75, zorder=2)
    if names:
        _draw_legend(axes, np.asarray(labels), colours, names)
    with warnings.catch_warnings():
        # A script that the font lacks shows as boxes; the map is still right.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        placed = _draw_words(figure, axes, words, points, colours, right)
        if heads is not None:
            _draw_arrows(axes, points[placed], heads[placed])
        _save(figure, Path(path))
    return int(np.count_nonzero(placed))


def _as_points(array: ArrayLike, n: int, name: str) -> Floats:
    points = np.asarray(array, dtype=np.float64)
    if n == 0 or points.ndim != 2 or len(points) != n or points.shape[1] == 0:
        raise InputError(
            f"{name} must have a row per word, at least 1, got {n} words and shape {points.shape}"
        )
    if not np.isfinite(points).all():
        raise InputError(f"{name} must be finite, got NaN or infinity; drop those words first")
    flat = np.zeros((n, 1))
    return points[:, :2] if points.shape[1] > 1 else np.hstack([points, flat])


def _colours(labels: ArrayLike | None, n: int) -> list[str]:
    """A colour per word: the palette by falling size of cluster, and round again."""
    if labels is None:
        return [PALETTE[0]] * n
    clusters = np.asarray(labels)
    if clusters.shape != (n,):
        raise InputError(f"labels must be one per word, {n} in all, got shape {clusters.shape}")
    names, which, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    place = np.empty(len(names), dtype=np.int64)
    place[np.argsort(-sizes, kind="stable")] = np.arange(len(names))
    return [PALETTE[place[i] % len(PALETTE)] if sizes[i] > 1 else GREY for i in which]


def _canvas(title: str, subtitle: str, points: Floats, right: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    # parse_math: a dollar sign in a path or a word is a dollar sign.
    text: dict[str, Any] = {"parse_math": False, "ha": "left"}
    figure.text(0.02, 0.955, title, fontsize=20, fontweight="bold", color="#222222", **text)
    figure.text(0.02, 0.93, subtitle, fontsize=11, color="#555555", **text)
    axes.set_axis_off()
    (left, bottom), (far, top) = _window(points, right)
    axes.set(xlim=(left, far), ylim=(bottom, top), aspect="equal")
    return figure, axes


def _window(points: Floats, right: float) -> tuple[Floats, Floats]:
    """Corners of the page in map units, so that the points fill it but for head and edges."""
    page = np.array(SIZE)
    free_low, free_high = np.array([EDGE, EDGE]), np.array([1 - EDGE - right, 1 - EDGE - HEAD])
    low, high = points.min(axis=0), points.max(axis=0)
    unit = float(np.max((high - low) / ((free_high - free_low) * page))) or 1.0
    corner = (low + high) / 2 - (free_low + free_high) / 2 * page * unit
    return corner, corner + page * unit


def _draw_density(axes: Axes, points: Floats, bandwidth: float | Sequence[float] | None) -> None:
    if bandwidth is None:
        bandwidth = float(points.std(axis=0).mean()) * len(points) ** (-1 / 6) or 1.0
    kernel = Gaussian(bandwidth if isinstance(bandwidth, int | float) else tuple(bandwidth))
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    shape = np.array([right - left, top - bottom])
    n_x, n_y = np.maximum(1, np.round(GRID * shape / shape.max())).astype(int)
    x = left + (np.arange(n_x) + 0.5) * (right - left) / n_x
    y = bottom + (np.arange(n_y) + 0.5) * (top - bottom) / n_y
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    density = np.exp(log_density(grid, points, kernel)).reshape(n_y, n_x)
    # The square root keeps thin regions visible beside the peaks.
    axes.imshow(
        np.sqrt(density),
        extent=(left, right, bottom, top),
        origin="lower",
        cmap=_pale(),
        interpolation="bicubic",
        zorder=0,
    )


def _pale() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("pale", ["#ffffff", "#e8eef5", "#c9d8e8", "#a9c1da"])


def _draw_words(
    figure: Figure, axes: Axes, words: list[str], points: Floats, colours: list[str], right: float
) -> NDArray[np.bool_]:
    """Label as many words as fit, the first ones first; say which did."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.patheffects import withStroke
    from matplotlib.transforms import IdentityTransform

    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    fonts = _font_sizes(len(words))
    boxes = _text_sizes(renderer, words, fonts)
    room = (figure.bbox.width * (1 - right), figure.bbox.height * (1 - HEAD))
    dots = axes.transData.transform(points)
    low = place_labels(dots, boxes[:, :2], room)
    halo = [withStroke(linewidth=2.2, foreground="white", alpha=0.85)]
    for i in np.flatnonzero(~np.isnan(low[:, 0])):
        x, y = low[i] + (0.0, boxes[i, 2])
        axes.text(
            x,
            y,
            words[i],
            transform=IdentityTransform(),
            fontsize=fonts[i],
            color=colours[i],
            path_effects=halo,
            parse_math=False,
            zorder=4,
        )
    return ~np.isnan(low[:, 0])


def _font_sizes(n: int) -> Floats:
    """Half points by rank: steep at first, as frequencies of words are."""
    ranks = np.log1p(np.arange(n)) / max(np.log(n), 1.0)
    points: Floats = np.round(2 * (FONT[0] + (FONT[1] - FONT[0]) * np.minimum(ranks, 1.0))) / 2
    return points


def _text_sizes(renderer: RendererAgg, words: list[str], fonts: Floats) -> Floats:
    """Width, height and depth below the line of each word, in pixels (n, 3)."""
    from matplotlib.font_manager import FontProperties

    styles = {size: FontProperties(size=size) for size in np.unique(fonts)}
    measure: Any = renderer.get_text_width_height_descent
    sizes = [measure(word, styles[size], False) for word, size in zip(words, fonts, strict=True)]
    return np.array(sizes, dtype=np.float64)


def _draw_arrows(axes: Axes, tails: Floats, heads: Floats) -> None:
    axes.quiver(
        *tails.T,
        *(heads - tails).T,
        angles="xy",
        scale_units="xy",
        scale=1,
        width=0.0008,
        headwidth=6,
        color="#444444",
        alpha=0.35,
        zorder=1,
    )


def _draw_legend(
    axes: Axes, labels: NDArray[Any], colours: list[str], names: Mapping[int, str]
) -> None:
    from matplotlib.lines import Line2D

    clusters, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    largest = [i for i in np.argsort(-sizes, kind="stable") if int(clusters[i]) in names][:LEGEND]
    handles = [Line2D([], [], ls="", marker="o", color=colours[first[i]], ms=5) for i in largest]
    texts = [f"{names[int(clusters[i])]}  ({sizes[i]})" for i in largest]
    legend = axes.legend(
        handles, texts, loc="upper right", fontsize=8, frameon=True, framealpha=0.85, edgecolor="w"
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _save(figure: Figure, path: Path) -> None:
    """Write the picture in one move, so that nobody reads half of it."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(drawn.getbuffer())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(
            f"the picture must go where it can be written, but {path}: {error.strerror}"
        ) from None
