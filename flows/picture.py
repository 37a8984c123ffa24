"""The picture of a finished run, drawn from its store."""

import io
from typing import Final

from locpipe.flows.results import Report, read_arrays

__all__ = ["draw", "preview"]

TITLES: Final = {
    "embed-corpus": "Words that are used alike lie together",
    "amds": "A map of dissimilarities",
}
PREVIEW_BYTES: Final = 75_000  # as text in a data URL a third more: below 100 KB


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
        subtitle=_subtitle(report),
    )


def _subtitle(report: Report) -> str:
    text = f"{report.n_dots:,} dots, {len(report.clusters)} clusters, stress"
    return f"{text} {report.attrs['stress']:.3f}"


def preview(report: Report) -> bytes:
    """Return the picture as a PNG file small enough to lie inside a page."""
    from PIL import Image

    with Image.open(report.picture) as image:
        picture = image.convert("RGB")
        while True:
            file = io.BytesIO()
            # Few colours, chosen to span the picture's, keep text readable in a small file.
            few = picture.quantize(64, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            few.save(file, format="PNG", optimize=True)
            if file.tell() <= PREVIEW_BYTES:
                return file.getvalue()
            size = (picture.width * 4 // 5, picture.height * 4 // 5)
            picture = picture.resize(size, Image.Resampling.LANCZOS)
