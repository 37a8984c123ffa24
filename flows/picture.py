"""The picture of a finished run, drawn from its store."""

import io
from typing import TYPE_CHECKING, Final

from locpipe.flows.results import Report, read_arrays
from locpipe.flows.wording import counted

__all__ = ["draw", "picture_text", "preview"]

if TYPE_CHECKING:
    from PIL.Image import Image

TITLES: Final = {
    "embed-corpus": "Words that are used alike lie together",
    "amds": "A map of dissimilarities",
}
PREVIEW_BYTES: Final = 74_900  # as text in a data URL a third more: below 100 KB
PREVIEW_WIDTH: Final = 1100
PREVIEW_COLOURS: Final = 32  # more cost width


def draw(report: Report) -> None:
    """Draw the picture beside the store, in one step: a reader never sees half of it.

    Parameters
    ----------
    report
        Of a finished run.
    """
    from locpipe.plots import word_map

    dots = "word" if report.flow == "embed-corpus" else "row"
    found = read_arrays(report.output, dots, "embedding", "label", "cluster_name")
    word_map(
        report.picture,
        [str(name) for name in found[dots]],
        found["embedding"],
        labels=found["label"],
        cluster_names={i: str(name) for i, name in enumerate(found["cluster_name"])},
        bandwidth=report.attrs["bandwidth"],
        title=TITLES[report.flow],
        subtitle=picture_text(report),
        by_rank=report.flow == "embed-corpus",
    )


def picture_text(report: Report) -> str:
    """Return what the picture shows, in one line."""
    sizes = f"{counted(report.n_dots, 'dot')}, {counted(len(report.clusters), 'cluster')}"
    return f"{sizes}, stress {report.attrs['stress']:.3f}"


def preview(report: Report) -> bytes:
    """Return the picture as a PNG file small enough to lie inside a page."""
    from PIL import Image

    with Image.open(report.picture) as image:
        whole = Image.new("RGB", image.size, "white")
        whole.paste(image, mask=image.convert("RGBA").getchannel("A"))
    width = min(PREVIEW_WIDTH, whole.width)
    while len(file := _few_colours(whole, width)) > PREVIEW_BYTES:
        width = width * 19 // 20
    return file


def _few_colours(picture: "Image", width: int) -> bytes:
    """Return a picture of some width as a PNG file with a palette, dithered."""
    from PIL import Image

    height = round(picture.height * width / picture.width)
    small = picture.resize((width, height), Image.Resampling.LANCZOS)
    few = small.quantize(PREVIEW_COLOURS, method=Image.Quantize.MAXCOVERAGE)
    dithered = small.quantize(palette=few, dither=Image.Dither.FLOYDSTEINBERG)
    file = io.BytesIO()
    dithered.save(file, format="PNG", optimize=True)
    return file.getvalue()
