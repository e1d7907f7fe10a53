"""What a map says in numbers: the rejection, and how much of each class was kept."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import tomli_w

from hsreject import __version__
from hsreject.rejection.novelty import UNKNOWN_BELOW
from hsreject.rejection.rejector import UNKNOWN_FLAG
from hsreject.schema import class_table

if TYPE_CHECKING:
    import xarray as xr

    from hsreject.mapping.foreign import Similarity


@dataclass(frozen=True)
class ClassShare:
    """How many pixels were labelled with a class, and how many of those were kept or rejected."""

    value: int
    name: str
    n_kept: int
    n_rejected: int

    @property
    def n_pixels(self) -> int:
        """Pixels with this label, rejected or not."""
        return self.n_kept + self.n_rejected


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
            "hectares_kept": self.hectares(share.n_kept),
            "hectares_rejected": self.hectares(share.n_rejected),
        }
        return {key: value for key, value in row.items() if value is not None}


def class_shares(maps: xr.Dataset) -> tuple[ClassShare, ...]:
    """Return how many pixels of each class a reject map keeps and rejects, block by block."""
    table = class_table(maps["label"])
    label = da.asanyarray(maps["label"].data)
    rejected = da.asanyarray(maps["rejected"].data)
    n_values = int(np.iinfo(label.dtype).max) + 1
    mixed = (label.astype(np.int64) + n_values * rejected).ravel()  # both in one number
    counts = da.bincount(mixed, minlength=2 * n_values).compute()
    return tuple(
        ClassShare(value, name, int(counts[value]), int(counts[n_values + value]))
        for value, name in zip(table.values, table.names, strict=True)
    )
