"""Thumbnails of the gallery: a square out of each picture, chosen per script, and their order."""

from pathlib import Path

from PIL import Image
from sphinx.application import Sphinx

# In the order of the gallery. Left, top and side of a square, in pixels of the whole picture.
SQUARES = {
    "plot_reject_map": (404, 42, 370),
    "plot_outcome_map": (404, 40, 375),
    "plot_unknown_class": (103, 32, 325),
    "plot_certified_coverage": (100, 28, 362),
    "plot_areas": (100, 60, 425),
    "plot_classifiers": (0, 0, 445),
    "plot_cost_envelope": (0, 0, 345),
    "plot_reliability": (0, 0, 525),
    "plot_own_prior": (538, 40, 250),
    "plot_coarser": (75, 0, 375),
    "plot_paper_1_four_counts": (718, 20, 360),
    "plot_paper_2_operating_set": (45, 30, 300),
    "plot_paper_3_two_rejectors": (590, 42, 215),
    "plot_paper_4_measures": (0, 0, 345),
    "plot_paper_5_relative_optimality": (85, 25, 370),
    "plot_paper_6_indian_pines": (940, 30, 300),
    "plot_paper_7_joint_and_sequential": (0, 0, 345),
    "plot_paper_8_when_rejecting_pays": (70, 25, 300),
}
SIDE = 400


class InOrder:
    """Sort scripts as `SQUARES` lists them; one that is not listed comes last."""

    def __init__(self, folder: str) -> None:
        """Take the folder of the scripts, which sphinx-gallery gives and nobody needs."""

    def __call__(self, name: str) -> int:
        """Return the place of a script."""
        names = list(SQUARES)
        return names.index(Path(name).stem) if Path(name).stem in SQUARES else len(names)


def crop(app: Sphinx) -> None:
    """Replace the thumbnails, which sphinx-gallery has just made with white margins."""
    for name, (left, top, side) in SQUARES.items():
        for whole in Path(app.srcdir, "gallery").rglob(f"sphx_glr_{name}_001.png"):
            square = Image.open(whole).convert("RGB").crop((left, top, left + side, top + side))
            thumbnail = whole.parent / "thumb" / f"sphx_glr_{name}_thumb.png"
            square.resize((SIDE, SIDE), Image.Resampling.LANCZOS).save(thumbnail)


def setup(app: Sphinx) -> dict[str, bool]:
    """Crop after sphinx-gallery, which has the usual priority of 500."""
    app.connect("builder-inited", crop, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
