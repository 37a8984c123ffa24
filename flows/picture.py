"""The picture of a finished run, drawn from its store."""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from locpipe.errors import InputError
from locpipe.flows.results import Report, picture_path, read_arrays
from locpipe.flows.wording import counted

__all__ = ["check_picture", "draw", "is_drawn", "picture_text", "preview"]

if TYPE_CHECKING:
    from PIL.Image import Image

TITLES: Final = {
    "embed-corpus": "Words that are used alike lie together",
    "amds": "A map of dissimilarities",
}
SOFTWARE, RUN = ("Software", "locpipe"), "Run"  # tags by which a picture is known as ours
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
        tags={SOFTWARE[0]: SOFTWARE[1], RUN: report.fingerprint},
    )


def is_drawn(report: Report) -> bool:
    """Return whether the picture beside the store is there and shows this very run."""
    return _run_shown(report.picture) == report.fingerprint


def check_picture(output: str) -> None:
    """Look, before work, whether the picture of a store could be drawn.

    Raises
    ------
    InputError
        If something stands in its place that no run of locpipe has drawn.
    """
    path = picture_path(output)
    if os.path.lexists(path) and _run_shown(path) is None:
        raise InputError(
            f"The picture of the run must go to {path}, and what is there is not one that locpipe"
            " has drawn; move it, or choose another output."
        )


def _run_shown(path: Path) -> str | None:
    """Return the fingerprint of the run that a picture shows, or None if it shows none."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            tags = image.info
    except (OSError, SyntaxError, ValueError):  # no file, or no picture
        return None
    return str(tags[RUN]) if tags.get(SOFTWARE[0]) == SOFTWARE[1] and RUN in tags else None


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
