"""The picture of a map, and where its labels go."""

import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from locpipe.errors import InputError
from locpipe.plots import word_map
from locpipe.plots.labels import place_labels
from locpipe.plots.word_map import GREY, PALETTE

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
WORDS = [f"word{i}" for i in range(60)]


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(60, 2))


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 80))
def test_labels_never_overlap_and_stay_on_the_page(seed, n):
    rng = np.random.default_rng(seed)
    page = (300.0, 200.0)
    dots, sizes = rng.uniform(0, page, (n, 2)), rng.uniform((5, 5), (80, 20), (n, 2))
    low = place_labels(dots, sizes, page)
    placed = ~np.isnan(low[:, 0])
    a, b = low[placed], (low + sizes)[placed]
    assert (a >= 0).all()
    assert (b <= page).all()
    meet = ((a[:, None] < b[None]) & (a[None] < b[:, None])).all(axis=2)
    np.testing.assert_array_equal(meet, np.eye(len(a), dtype=bool))


def test_first_label_goes_first_and_beside_its_dot():
    low = place_labels([[100, 50], [101, 50]], [[40, 10], [40, 10]], (200, 100), gap=3)
    np.testing.assert_array_equal(low[0], [103, 45])
    np.testing.assert_array_equal(low[1], [58, 45])
    crowd = place_labels([[100, 50]] * 30, [[40, 10]] * 30, (200, 100))
    assert np.count_nonzero(~np.isnan(crowd[:, 0])) == 2  # left and right; others would overlap


def colour_at(image, point, points, right, bandwidth):
    """Colours of the picture near where a dot must be: four bandwidths from the sides, or more."""
    page, edge, head = np.array([14.0, 10.0]), 0.04, 0.09
    free = np.array([[edge, edge], [1 - edge - right, 1 - edge - head]])
    low, high = points.min(axis=0), points.max(axis=0)
    nearest = np.minimum(free.mean(axis=0), 1 - free.mean(axis=0)) * page
    unit = max(
        np.max((high - low) / ((free[1] - free[0]) * page)),
        np.max(((high - low) / 2 + 4 * bandwidth) / nearest),
    )
    x, y = 150 * ((point - (low + high) / 2) / unit + free.mean(axis=0) * page)
    row, column = image.shape[0] - round(y), round(x)
    return image[row - 2 : row + 3, column - 2 : column + 3, :3].reshape(-1, 3)


def test_dots_lie_in_place_in_the_colour_of_their_cluster(tmp_path):
    points = np.array([[0.0, 0.0], [1.0, 0.2], [2.0, 1.0], [0.1, 1.0], [1.5, 0.7], [0.7, 0.8]])
    labels = np.array([7, 7, 7, 4, 4, 9])
    word_map(tmp_path / "map.png", ["a"] * 6, points, labels=labels, bandwidth=0.01)
    image = imread(tmp_path / "map.png")
    assert image.shape == (1500, 2100, 4)
    for point, colour in zip(points, [PALETTE[0]] * 3 + [PALETTE[1]] * 2 + [GREY], strict=True):
        near = colour_at(image, point, points, right=0.0, bandwidth=0.01)
        # Three quarters opaque, over a background that is nearly white.
        assert np.abs(near - (0.75 * np.array(to_rgb(colour)) + 0.25 * 0.9)).sum(1).min() < 0.15


def test_clusters_beyond_the_legend_are_grey(tmp_path):
    points = np.random.default_rng(0).normal(size=(30, 2))
    labels, words = np.repeat(np.arange(15), 2), [""] * 30
    names = {i: f"c{i}" for i in range(15)}
    picture = tmp_path / "map.png"
    word_map(picture, words, points, labels=labels, cluster_names=names, bandwidth=0.01)
    image = imread(picture)
    for colours, dots in (([GREY], points[24:]), (PALETTE, points[:24])):
        wanted = 0.75 * np.array([to_rgb(colour) for colour in colours]) + 0.25
        for dot in dots:
            near = colour_at(image, dot, points, right=0.2, bandwidth=0.01)
            assert np.abs(near[:, None] - wanted).sum(axis=2).min() < 0.2


def test_clusters_of_one_word_need_no_legend(tmp_path):
    names = {i: f"c{i}" for i in range(4)}
    for name, named in (("a.png", names), ("b.png", None)):
        word_map(tmp_path / name, list("abcd"), SQUARE, labels=range(4), cluster_names=named)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_density_is_not_cut_at_the_frame(tmp_path):
    word_map(tmp_path / "map.png", [""] * 4, SQUARE, bandwidth=0.5)
    image = imread(tmp_path / "map.png")[..., :3]
    border = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
    assert border.min() > 0.98
    assert image.min() < 0.75


def test_labels_have_one_size_where_no_word_is_the_first(tmp_path, monkeypatch):
    sizes = []
    draw = Axes.text
    monkeypatch.setattr(
        Axes, "text", lambda *args, **kw: sizes.append(kw["fontsize"]) or draw(*args, **kw)
    )
    for by_rank, different in ((True, 4), (False, 1)):
        sizes.clear()
        word_map(tmp_path / "map.png", list("abcd"), SQUARE, by_rank=by_rank)
        assert (len(sizes), len(set(sizes))) == (4, different)


def test_density_shades_the_background(tmp_path):
    points = np.array([[0.0, 0.0]] * 100 + [[1.0, 1.0]])
    word_map(tmp_path / "map.png", [""] * 101, points, bandwidth=0.1)
    image = imread(tmp_path / "map.png")
    crowd, empty = (
        colour_at(image, [x, 0.06], points, right=0.0, bandwidth=0.1).mean() for x in (0.06, 0.94)
    )
    assert crowd < 0.88
    assert empty > 0.99


def test_same_input_gives_the_same_bytes_and_no_global_figure(tmp_path, points):
    pyplot = sys.modules.get("matplotlib.pyplot")
    for name in ("a.png", "b.png"):
        word_map(tmp_path / name, WORDS, points, title="T", labels=np.arange(60) % 3)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert sys.modules.get("matplotlib.pyplot") is pyplot
    assert pyplot is None or not pyplot.get_fignums()


def test_nearly_all_words_of_a_small_map_are_labelled(tmp_path, points):
    assert word_map(tmp_path / "map.png", WORDS, points) > 55
    crowded = word_map(tmp_path / "crowded.png", WORDS * 9, np.repeat(points, 9, axis=0))
    assert 60 <= crowded < 500


def test_legend_arrows_and_titles_are_drawn(tmp_path, points):
    def drawn(**options):
        word_map(tmp_path / "map.png", WORDS, points, **options)
        return imread(tmp_path / "map.png")

    plain = drawn()
    told = drawn(title="A title", subtitle="stress 0.1", key_embedding=points + 0.5)
    assert not np.array_equal(told[45:75, :400], plain[45:75, :400])
    assert not np.array_equal(told[90:110, :400], plain[90:110, :400])
    assert not np.array_equal(told[150:], plain[150:])
    named = drawn(labels=np.arange(60) % 2, cluster_names={0: "even", 1: "odd"})
    corner = named[:150, -300:, :3]
    for colour in PALETTE[:2]:
        assert np.abs(corner - np.array(to_rgb(colour))).sum(axis=2).min() < 0.05


@pytest.mark.parametrize(
    "words",
    [
        ["$x^", "a$b", "%d {x}", "_"],
        ["北京", "नमस्ते", "שלום", "été"],
        ["\\frac", "", " ", "a" * 300],
    ],
)
def test_any_word_can_be_drawn(tmp_path, words):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        word_map(tmp_path / "map.png", words, np.eye(4)[:, :2], title="$5", subtitle="$_$")
    assert (tmp_path / "map.png").stat().st_size > 1000


@pytest.mark.parametrize(
    "embedding",
    [np.zeros((60, 2)), np.arange(60.0)[:, None], np.eye(60)[:, :3], np.ones((60, 2)) * 1e9],
)
def test_any_shape_of_map_can_be_drawn(tmp_path, embedding):
    assert word_map(tmp_path / "map.png", WORDS, embedding) >= 1


def test_one_word(tmp_path):
    assert word_map(tmp_path / "map.png", ["alone"], [[3.0, 4.0]], labels=[0]) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"words": []}, r"embedding must have a row per word, at least 1, got 0 words"),
        ({"words": ["a"]}, r"got 1 words and shape \(60, 2\)"),
        ({"embedding": np.full((60, 2), np.nan)}, "embedding must be finite, got NaN"),
        ({"embedding": np.ones(60)}, r"shape \(60,\)"),
        ({"key_embedding": np.ones((59, 2))}, "key_embedding must have a row per word"),
        ({"labels": [1, 2]}, r"labels must be one per word, 60 in all, got shape \(2,\)"),
    ],
)
def test_bad_input(tmp_path, points, options, message):
    given = {"words": WORDS, "embedding": points, **options}
    with pytest.raises(InputError, match=message):
        word_map(tmp_path / "map.png", **given)
    assert not list(tmp_path.iterdir())


def test_a_picture_that_cannot_be_written(tmp_path, points):
    with pytest.raises(InputError, match=r"where it can be written, but .*none/map.png: No such"):
        word_map(tmp_path / "none" / "map.png", WORDS, points)
    folder = tmp_path / "map.png"
    folder.mkdir()
    with pytest.raises(InputError, match=r"where it can be written, but .*map.png"):
        word_map(folder, WORDS, points)
    assert list(tmp_path.iterdir()) == [folder]
