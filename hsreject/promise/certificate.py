"""Certificates: what is promised of a map, kept in a small file and applied to that map only."""

from __future__ import annotations

import json
import math
from dataclasses import KW_ONLY, asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from hsreject import __version__
from hsreject.errors import FileError, InputError
from hsreject.files import existing, replacing
from hsreject.promise.design import map_id
from hsreject.rejection.rejector import rejection_maps
from hsreject.schema import as_map

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FORMAT = "hsreject certificate"


@dataclass(frozen=True)
class TestedPoint:
    """One step of the sequence: an operating point and how its test came out."""

    threshold: float  # the smallest confidence kept, or the position of the map in its stack
    coverage: float  # share of the pixels that is kept
    n_kept: int  # sampled and kept
    n_errors: int  # of these
    p_value: float
    upper_bound: float  # of the share of wrong pixels, for this region alone


@dataclass(frozen=True)
class Certificate:
    """What is promised of a map, and why.

    Attributes
    ----------
    max_error, confidence_level : float in (0, 1)
        What was asked for: at most `max_error` of the kept pixels are wrong. Of all samples that
        could have been drawn, at least the share `confidence_level` leads to a promise that holds.
    threshold : float or None
        The smallest confidence to keep. For a stack of maps, the position of the certified one.
        None where nothing can be certified.
    coverage : float in [0, 1]
        Share of the pixels that is kept; 0 where nothing can be certified.
    n_kept, n_errors : int
        Sampled pixels that are kept, and how many of them are wrong.
    upper_bound : float
        Exact upper confidence bound of the share of wrong pixels among the kept, if this coverage
        had been the only one asked about. What is promised is `max_error`. NaN without a threshold.
    n_points : int
        Sampled pixels.
    n_pixels : int
        Pixels of the map that the promise speaks of.
    n_needed : int or None
        About how many points would be needed, where nothing can be certified; None otherwise, and
        where no sample is in sight that would do.
    drawn : str
        How the sample was drawn, in words.
    tests : tuple of TestedPoint
        The sequence as far as it was tested. Where some test failed, it is the last one.
    map_id : str
        Tells the map, labels and confidences, from any other one.
    shape : tuple of int
        Rows and columns of the map.
    stacked : bool
        Whether the sequence is a stack of maps instead of thresholds on one confidence.
    """

    _: KW_ONLY
    max_error: float
    confidence_level: float
    threshold: float | None
    coverage: float
    n_kept: int
    n_errors: int
    upper_bound: float
    n_points: int
    n_pixels: int
    n_needed: int | None
    drawn: str
    tests: tuple[TestedPoint, ...]
    map_id: str
    shape: tuple[int, int]
    stacked: bool = False

    @property
    def statement(self) -> str:
        """What is promised, for which pixels, from which sample: one sentence."""
        percent, level = f"{100 * self.max_error:g} %", f"{100 * self.confidence_level:g} %"
        if self.threshold is None:
            wish = f"Nothing can be certified with this sample of {self.n_points} pixels"
            if self.n_needed is not None:
                return f"{wish}; about n = {self.n_needed} would be needed."
            return (
                f"{wish}, and no larger one is in sight that would: even of its surest pixels too "
                f"many are wrong for a promise of {percent}."
            )
        return (
            f"With {level} confidence at most {percent} of the kept pixels are wrong: kept are "
            f"{100 * self.coverage:.1f} % of the {self.n_pixels} pixels that the sample was drawn "
            f"from, and of {self.n_points} sampled pixels ({self.drawn}) {self.n_kept} are kept "
            f"and {self.n_errors} of those wrong."
        )

    def to_json(self) -> str:
        """Return the certificate as JSON; :meth:`from_json` is the inverse."""
        entries = asdict(self)
        if math.isnan(self.upper_bound):
            entries["upper_bound"] = None
        head = {"format": _FORMAT, "hsreject": __version__, "statement": self.statement}
        return json.dumps(head | entries, indent=2, allow_nan=False) + "\n"

    def write(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the certificate into a small JSON file."""
        with replacing(Path(path), overwrite=overwrite) as work:
            work.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Return the certificate that :meth:`to_json` wrote."""
        entries = json.loads(text)
        if entries.pop("format") != _FORMAT:
            raise KeyError
        names = {field.name for field in fields(cls)}
        known = {name: value for name, value in entries.items() if name in names}
        known["tests"] = tuple(TestedPoint(**test) for test in known["tests"])
        known["shape"] = tuple(known["shape"])
        if known["upper_bound"] is None:
            known["upper_bound"] = math.nan
        return cls(**known)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Certificate:
        """Return the certificate in a JSON file."""
        try:
            return cls.from_json(existing(path).read_text(encoding="utf-8"))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise FileError(
                f"{path} is not a certificate. Give the certificate.json of 'hsreject certify'."
            ) from None

    @property
    def applicable_threshold(self) -> float:
        """The threshold, or an error where there is none to apply to a confidence."""
        if self.stacked:
            raise InputError(
                "The certificate is of one map in a sequence, not of a threshold on a confidence: "
                "take that map as it is."
            )
        if self.threshold is None:
            raise InputError(f"The certificate has no threshold. {self.statement}")
        return self.threshold

    def check_map(self, label: xr.DataArray, confidence: xr.DataArray) -> None:
        """Raise unless label and confidence (y, x) are those that the certificate was made for."""
        self.check_shape(label.shape)
        found = map_id(label, confidence)
        if found != self.map_id:
            raise InputError(
                f"The certificate is of another map ({self.map_id}, this one is {found}). It holds "
                "for the very same labels and confidences only: the same scene, model and block "
                "size. Certify this map with a sample of its own."
            )

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless a map has the size of the one that the certificate was made for."""
        if shape != self.shape:
            ours, theirs = (
                f"{rows} rows x {columns} columns" for rows, columns in (self.shape, shape)
            )
            raise InputError(
                f"The certificate is of another map: that one has {ours}, this one {theirs}."
            )

    def apply(
        self,
        label: xr.DataArray | NDArray[Any],
        confidence: xr.DataArray | NDArray[Any],
    ) -> xr.Dataset:
        """Return the maps of the certified rejection, as rejectors do.

        Parameters
        ----------
        label, confidence : DataArray or array, dims (y, x)
            The map that was certified; another one is refused.

        Returns
        -------
        Dataset
            `label`, `confidence`, `rejected` and `label_with_rejection` (y, x).
        """
        threshold = self.applicable_threshold
        on_map, sure = as_map(label, name="label"), as_map(confidence, name="confidence")
        self.check_map(on_map, sure)
        attrs = {"certificate": self.statement}
        return rejection_maps(on_map, sure, threshold=threshold, attrs=attrs)
