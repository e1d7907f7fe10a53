"""What a map says in numbers: the rejection, and how much of each class was kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import KW_ONLY, asdict, dataclass
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import tomli_w

from hsreject import __version__
from hsreject.class_tree import ClassTree, rows_of
from hsreject.rejection.novelty import UNKNOWN_BELOW
from hsreject.rejection.rejector import UNKNOWN_FLAG
from hsreject.schema import class_table

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.mapping.blocks import Blocks
    from hsreject.mapping.map_model import Similarity


@dataclass(frozen=True)
class ClassShare:
    """The pixels of a class or group: how many a map keeps as such, and where the others are."""

    value: int
    name: str
    n_kept: int
    n_rejected: int = 0
    n_as_group: int = 0
    level: str = "class"  # or "group", "group of level 2" and so on

    @property
    def n_pixels(self) -> int:
        """Pixels with this label, whatever the answer."""
        return self.n_kept + self.n_rejected + self.n_as_group


@dataclass(frozen=True)
class Rejection:
    """Where the threshold comes from."""

    asked: str  # "fraction", "threshold", "accuracy", "rejection_cost" or "certificate"
    value: float  # what was asked of it
    threshold: float  # the smallest confidence kept
    source: str  # where the threshold comes from, in words
    assumption: str = ""  # what was assumed and not measured, in a sentence


@dataclass(frozen=True)
class MapSummary:
    """What a map says in numbers."""

    rejection: Rejection
    classes: tuple[ClassShare, ...]
    groups: tuple[ClassShare, ...]  # where a map may answer coarser
    _: KW_ONLY
    n_without_data: int  # pixels
    n_unknown: int | None  # rejected pixels like no training pixel; None without novelty
    pixel_hectares: float | None  # None without a projected reference system
    scene: str  # what it is called, usually the path
    model: str  # the same
    similarity: Similarity | None  # to the training scene; None where the model has none
    blocks: Blocks
    n_continued: int  # blocks that were finished when stopped work was continued

    @property
    def n_pixels(self) -> int:
        """Pixels with data."""
        return sum(share.n_pixels for share in self.classes)

    @property
    def n_rejected(self) -> int:
        """Rejected pixels."""
        return sum(share.n_rejected for share in self.classes)

    @property
    def rejected_fraction(self) -> float:
        """The share of the pixels with data that is rejected."""
        return self.n_rejected / self.n_pixels

    @property
    def notes(self) -> list[str]:
        """What is known at which level, what is unknown, and what is assumed, in a line each."""
        notes = []
        if self.groups:
            known: Counter[str] = Counter()
            for share in (*self.classes, *self.groups):
                known[share.level] += share.n_kept
            shares = [f"{100 * known[one] / self.n_pixels:.1f} % as {one}" for one in sorted(known)]
            rejected = f"{100 * self.rejected_fraction:.1f} % rejected"
            notes.append(f"known: {', '.join(shares)}; {rejected}")
        if self.n_unknown is not None:
            notes.append(
                f"unknown: {100 * self.n_unknown / self.n_pixels:.2f} % of the pixels are like no "
                "training pixel and rejected for that (of pixels of known classes 1 to 3 % may be "
                "among them, of a class that varies more)"
            )
        return [*notes, self.rejection.assumption] if self.rejection.assumption else notes

    def hectares(self, n_pixels: int) -> float | None:
        """Return the area of a number of pixels, if it is known."""
        return None if self.pixel_hectares is None else n_pixels * self.pixel_hectares

    def to_toml(self) -> str:
        """Return the summary as TOML."""
        unknown, blocks = None, self.blocks
        if self.n_unknown is not None:
            unknown = {
                "pixels": self.n_unknown,
                "share": self.n_unknown / self.n_pixels,
                "flag": UNKNOWN_FLAG,
                "p_value_below": UNKNOWN_BELOW,
            }
        document = {
            "hsreject": __version__,
            "scene": self.scene,
            "model": self.model,
            "pixels_with_data": self.n_pixels,
            "pixels_without_data": self.n_without_data,
            "pixels_rejected": self.n_rejected,
            "rejected_fraction": self.rejected_fraction,
            "rejection": asdict(self.rejection),
            "unknown": unknown,
            "similarity": None if self.similarity is None else asdict(self.similarity),
            "blocks": {"number": len(blocks), "side": blocks.side, "halo": blocks.halo},
            "classes": [self._row(share) for share in self.classes],
            "groups": [self._row(group) for group in self.groups] or None,
        }
        return tomli_w.dumps(_without_gaps(document))

    def _row(self, share: ClassShare) -> dict[str, Any]:
        is_class = share.level == "class"
        return {
            "value": share.value,
            "name": share.name,
            "level": None if is_class else share.level,
            "pixels_kept": share.n_kept,
            "pixels_rejected": share.n_rejected if is_class else None,
            "pixels_as_group": share.n_as_group if is_class and self.groups else None,
            "hectares_kept": self.hectares(share.n_kept),
            "hectares_rejected": self.hectares(share.n_rejected) if is_class else None,
        }


def _without_gaps(part: Any) -> Any:
    """Return a document without what is not there, which TOML cannot say."""
    if isinstance(part, list):
        return [_without_gaps(one) for one in part]
    if not isinstance(part, dict):
        return part
    return {name: _without_gaps(one) for name, one in part.items() if one not in (None, "", ())}


def shares_of(maps: xr.Dataset) -> tuple[tuple[ClassShare, ...], tuple[ClassShare, ...]]:
    """Return how many pixels of each class a map keeps and rejects, and of each group it answers.

    Counted block by block: the rows of label and answer in their tables make one number.
    """
    label, answer = maps["label"], maps["label_with_rejection"]
    classes, nodes = class_table(label), class_table(answer)  # classes come first among the nodes
    n_classes, n_answers = len(classes), len(nodes) + 1  # the last: rejected, or without data

    def pairs(label: NDArray[Any], answer: NDArray[Any]) -> NDArray[np.intp]:
        return rows_of(classes, label) * n_answers + rows_of(nodes, answer)

    layers = (da.asanyarray(one.data) for one in (label, answer))
    both = da.map_blocks(pairs, *layers, dtype=np.intp)
    counts = da.bincount(both.ravel(), minlength=(n_classes + 1) * n_answers).compute()
    table = counts.reshape(-1, n_answers)[:-1]
    n_kept, n_rejected = table.diagonal(), table[:, -1]
    columns = (n_kept, n_rejected, table.sum(axis=1) - n_kept - n_rejected)
    shares = map(ClassShare, classes.values, classes.names, *(one.tolist() for one in columns))
    tree = ClassTree.from_attrs(answer.attrs)
    levels = [] if tree is None else [tree.level_names[level] for level in tree.levels]
    groups = zip(nodes.values, nodes.names, table.sum(axis=0).tolist(), levels, strict=False)
    return tuple(shares), tuple(
        ClassShare(value, name, n_pixels, level=level)
        for value, name, n_pixels, level in list(groups)[n_classes:]
    )
