"""What a map says in numbers: the rejection, and how much of each class was kept."""

from __future__ import annotations

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

    from hsreject.mapping.foreign import Similarity


@dataclass(frozen=True)
class ClassShare:
    """How many pixels were labelled with a class, and how many of those were kept or rejected."""

    value: int
    name: str
    n_kept: int
    n_rejected: int
    n_as_group: int = 0  # answered with a group that holds the class

    @property
    def n_pixels(self) -> int:
        """Pixels with this label, whatever the answer."""
        return self.n_kept + self.n_rejected + self.n_as_group


@dataclass(frozen=True)
class GroupShare:
    """How many pixels were answered with a group of classes."""

    value: int
    name: str
    level: str  # "group", "group of level 2" and so on
    n_kept: int


@dataclass(frozen=True)
class Rejection:
    """How the threshold came about."""

    asked: str  # "fraction", "threshold", "accuracy", "rejection_cost" or "certificate"
    value: float  # what was asked of it
    threshold: float  # the smallest confidence kept
    source: str  # where the threshold comes from, in words
    reachable: tuple[float, float] | None = None  # the fractions nearest to the wanted one
    assumption: str = ""  # what nobody has measured, in a sentence


@dataclass(frozen=True)
class MapSummary:
    """What a map says in numbers."""

    rejection: Rejection
    classes: tuple[ClassShare, ...]
    _: KW_ONLY
    n_without_data: int  # pixels
    pixel_hectares: float | None  # None without a projected reference system
    side: int  # of a block, in pixels
    halo: int  # around a block, in pixels
    n_blocks: int
    n_continued: int  # blocks that were finished when the work went on after it had been stopped
    n_workers: int  # how many blocks were worked on at once
    scene: str  # what it is called, usually the path
    model: str  # the same
    similarity: Similarity | None = None  # to the training scene; None where the model has none
    n_unknown: int | None = None  # rejected pixels like no training pixel; None without novelty
    groups: tuple[GroupShare, ...] = ()  # where a map may answer coarser

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
        return self.n_rejected / self.n_pixels if self.n_pixels else 0.0

    @property
    def levels(self) -> dict[str, int]:
        """How many pixels are known as a class, as a group of each level, or rejected."""
        levels = {"class": sum(share.n_kept for share in self.classes)}
        for group in self.groups:
            levels[group.level] = levels.get(group.level, 0) + group.n_kept
        return dict(sorted(levels.items())) | {"rejected": self.n_rejected}

    @property
    def levels_in_words(self) -> str:
        """How much is known at which level, in a line; nothing without groups."""
        if not self.groups:
            return ""
        *parts, rejected = (
            f"{100 * number / self.n_pixels:.1f} % as {level}"
            for level, number in self.levels.items()
        )
        gone = rejected.replace(" as ", " ")
        return f"known: {', '.join(parts)}; {gone}"

    @property
    def unknown_in_words(self) -> str:
        """How many pixels are unlike the training pixels, in a line."""
        if self.n_unknown is None:
            return ""
        return (
            f"unknown: {100 * self.n_unknown / self.n_pixels:.2f} % of the pixels are like no "
            "training pixel and rejected for that (of pixels of known classes about 6 % may be "
            "among them, of a class that varies more)"
        )

    def hectares(self, n_pixels: int) -> float | None:
        """Return the area of a number of pixels, if it is known."""
        return None if self.pixel_hectares is None else n_pixels * self.pixel_hectares

    def to_toml(self) -> str:
        """Return the summary as TOML."""
        rejection = {
            key: value for key, value in asdict(self.rejection).items() if value not in {None, ""}
        }
        document = {
            "hsreject": __version__,
            "scene": self.scene,
            "model": self.model,
            "pixels_with_data": self.n_pixels,
            "pixels_without_data": self.n_without_data,
            "pixels_rejected": self.n_rejected,
            "rejected_fraction": self.rejected_fraction,
            "rejection": rejection,
            "unknown": {} if self.n_unknown is None else self._unknown(self.n_unknown),
            "similarity": self._similarity(),
            "blocks": {"number": self.n_blocks, "side": self.side, "halo": self.halo},
            "classes": [self._row(share) for share in self.classes],
        }
        if self.groups:
            document["levels"] = self.levels
            document["groups"] = [self._group_row(group) for group in self.groups]
        return tomli_w.dumps(document)

    def _unknown(self, n_unknown: int) -> dict[str, Any]:
        return {
            "pixels": n_unknown,
            "share": n_unknown / self.n_pixels,
            "flag": UNKNOWN_FLAG,
            "p_value_below": UNKNOWN_BELOW,
        }

    def _similarity(self) -> dict[str, Any]:
        if self.similarity is None:
            return {}
        row = {
            "is_training_scene": self.similarity.is_training_scene,
            "pixels_looked_at": self.similarity.n_sampled,
            "novel_share_of_these": self.similarity.novel_share,
            "mean_novelty": self.similarity.mean_score,
            "agreement_of_experts": self.similarity.agreement,
        }
        return {key: value for key, value in row.items() if value is not None}

    def _row(self, share: ClassShare) -> dict[str, Any]:
        row = {
            "value": share.value,
            "name": share.name,
            "pixels_kept": share.n_kept,
            "pixels_rejected": share.n_rejected,
            "pixels_as_group": share.n_as_group if self.groups else None,
            "hectares_kept": self.hectares(share.n_kept),
            "hectares_rejected": self.hectares(share.n_rejected),
        }
        return {key: value for key, value in row.items() if value is not None}

    def _group_row(self, group: GroupShare) -> dict[str, Any]:
        row = {
            "value": group.value,
            "name": group.name,
            "level": group.level,
            "pixels_kept": group.n_kept,
            "hectares_kept": self.hectares(group.n_kept),
        }
        return {key: value for key, value in row.items() if value is not None}


def shares_of(maps: xr.Dataset) -> tuple[tuple[ClassShare, ...], tuple[GroupShare, ...]]:
    """Return how many pixels of each class a map keeps and rejects, and of each group it answers.

    Counted block by block: the rows of label and answer in their tables make one number.
    """
    label, answer = maps["label"], maps["label_with_rejection"]
    classes, nodes = class_table(label), class_table(answer)
    n_answers = len(nodes) + 1  # the last is none: rejected, or without data

    def pairs(label: NDArray[Any], answer: NDArray[Any]) -> NDArray[np.intp]:
        return rows_of(classes, label) * n_answers + rows_of(nodes, answer)

    both = da.map_blocks(
        pairs, *(da.asanyarray(one.data) for one in (label, answer)), dtype=np.intp
    )
    counts = da.bincount(both.ravel(), minlength=(len(classes) + 1) * n_answers).compute()
    table = counts.reshape(-1, n_answers)[:-1]
    kept, rejected = table.diagonal(), table[:, -1]  # classes come first among the nodes
    as_group = table.sum(axis=1) - kept - rejected
    columns = (kept.tolist(), rejected.tolist(), as_group.tolist())
    shares = map(ClassShare, classes.values, classes.names, *columns)
    tree = ClassTree.from_attrs(answer.attrs)
    if tree is None:
        return tuple(shares), ()
    n = len(classes)
    levels = [tree.level_names[level] for level in tree.levels[n:]]
    per_group = table.sum(axis=0)[n:-1].tolist()
    groups = map(GroupShare, nodes.values[n:], nodes.names[n:], levels, per_group)
    return tuple(shares), tuple(groups)
