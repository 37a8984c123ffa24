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
ONE_FONT = 9.0  # of all words, where none is the first
MARGIN = 4.0  # bandwidths around the dots; there the root of the density is 2% of its peak
GRID = 160  # cells of the background along the longer side
LEGEND_WIDTH, HEAD, EDGE = 0.2, 0.09, 0.04  # parts of the page without dots
GREY = "#8a8a8a"
# A hue for each cluster that is named, dark enough to read as text on the pale background.
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
    by_rank: bool = True,
    tags: Mapping[str, str] | None = None,
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
        Cluster of each word.  The twelve largest have a colour; the others, and clusters of one
        word, are grey.
    cluster_names : mapping of int to str, optional
        Names for the legend, which shows the clusters that have a colour.  Those without a name
        are grey.
    bandwidth : float or pair, optional
        Gaussian bandwidth of the density in the background, in map units; default: Scott's
        rule with the mean spread of the axes.
    key_embedding : (n, p), optional
        Draws an arrow from each labelled dot to this point of the same word.
    title, subtitle : str
    by_rank : bool, default True
        Whether labels shrink from word to word; if not, all have one size.
    tags : mapping of str to str, optional
        Text to store in the PNG file, by keyword.

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
    clusters = None if labels is None else _as_labels(labels, n)
    listed = [] if clusters is None else _listed(clusters, cluster_names)
    colours = [PALETTE[0]] * n if clusters is None else _colours(clusters, listed)
    names = cluster_names if cluster_names and listed else {}
    right = LEGEND_WIDTH if names else 0.0
    widths = _widths(points) if bandwidth is None else bandwidth
    figure, axes = _canvas(title, subtitle, points, right, MARGIN * float(np.max(widths)))
    _draw_density(axes, points, widths)
    axes.scatter(points[:, 0], points[:, 1], s=9, c=colours, lw=0, alpha=0.75, zorder=2)
    if names and clusters is not None:
        _draw_legend(axes, clusters, listed, names)
    with warnings.catch_warnings():
        # A script that the font lacks shows as boxes; the map is still right.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        fonts = _font_sizes(n) if by_rank else np.full(n, ONE_FONT)
        placed = _draw_words(figure, axes, words, points, colours, fonts, right)
        if heads is not None:
            _draw_arrows(axes, points[placed], heads[placed])
        _save(figure, Path(path), tags or {})
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


def _as_labels(labels: ArrayLike, n: int) -> NDArray[Any]:
    clusters = np.asarray(labels)
    if clusters.shape != (n,):
        raise InputError(f"labels must be one per word, {n} in all, got shape {clusters.shape}")
    return clusters


def _listed(clusters: NDArray[Any], names: Mapping[int, str] | None) -> list[int]:
    """Clusters that have a colour of their own, and a line in the legend if there is one."""
    found, sizes = np.unique(clusters, return_counts=True)
    by_size = [int(found[i]) for i in np.argsort(-sizes, kind="stable") if sizes[i] > 1]
    return [cluster for cluster in by_size if not names or cluster in names][: len(PALETTE)]


def _colours(clusters: NDArray[Any], listed: list[int]) -> list[str]:
    """A colour per word: one for each cluster that is listed, grey for the rest."""
    colour = dict(zip(listed, PALETTE, strict=False))
    return [colour.get(int(cluster), GREY) for cluster in clusters]


def _widths(points: Floats) -> float:
    """Scott's bandwidth."""
    return float(points.std(axis=0).mean()) * len(points) ** (-1 / 6) or 1.0


def _canvas(
    title: str, subtitle: str, points: Floats, right: float, margin: float
) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    # parse_math: a dollar sign in a path or a word is a dollar sign.
    text: dict[str, Any] = {"parse_math": False, "ha": "left"}
    figure.text(0.02, 0.955, title, fontsize=20, fontweight="bold", color="#222222", **text)
    figure.text(0.02, 0.93, subtitle, fontsize=11, color="#555555", **text)
    axes.set_axis_off()
    (left, bottom), (far, top) = _window(points, right, margin)
    axes.set(xlim=(left, far), ylim=(bottom, top), aspect="equal")
    return figure, axes


def _window(points: Floats, right: float, margin: float) -> tuple[Floats, Floats]:
    """Corners of the page in map units.

    The points fill it but for head and edges, at least `margin` map units from each side.
    """
    page = np.array(SIZE)
    free_low, free_high = np.array([EDGE, EDGE]), np.array([1 - EDGE - right, 1 - EDGE - HEAD])
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (free_low + free_high) / 2
    to_side = np.minimum(middle, 1 - middle) * page
    filling = (high - low) / ((free_high - free_low) * page)
    unit = float(np.max([filling, ((high - low) / 2 + margin) / to_side]))
    corner = (low + high) / 2 - middle * page * unit
    return corner, corner + page * unit


def _draw_density(axes: Axes, points: Floats, bandwidth: float | Sequence[float]) -> None:
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
    figure: Figure,
    axes: Axes,
    words: list[str],
    points: Floats,
    colours: list[str],
    fonts: Floats,
    right: float,
) -> NDArray[np.bool_]:
    """Label as many words as fit, the first ones first; say which did."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.patheffects import withStroke
    from matplotlib.transforms import IdentityTransform

    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
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
    axes: Axes, clusters: NDArray[Any], listed: list[int], names: Mapping[int, str]
) -> None:
    from matplotlib.lines import Line2D

    rest = int(np.count_nonzero(~np.isin(clusters, listed)))
    shown = [*PALETTE[: len(listed)], *([GREY] if rest else [])]
    handles = [Line2D([], [], ls="", marker="o", color=colour, ms=5) for colour in shown]
    texts = [f"{names[i]}  ({np.count_nonzero(clusters == i)})" for i in listed]
    texts += [f"in smaller clusters  ({rest})"] if rest else []
    legend = axes.legend(
        handles, texts, loc="upper right", fontsize=8, frameon=True, framealpha=0.85, edgecolor="w"
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _save(figure: Figure, path: Path, tags: Mapping[str, str]) -> None:
    """Write the picture in one move, so that nobody reads half of it."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None, **tags})
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(drawn.getbuffer())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(
            f"the picture must go where it can be written, but {path}: {error.strerror}"
        ) from None
