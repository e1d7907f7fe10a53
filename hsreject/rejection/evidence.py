"""What a rejector looks at: class probabilities and what else is known of the pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROBABILITY = "probability"
HIDDEN_FIELD = "hidden_field"
P_VALUE = "p_value"
IMAGE = "image"
TOKEN = "token"  # noqa: S105 (a hash)
"""Attribute of a Dataset of maps: their identity, so that they need not be hashed."""
TRAIN = "train"


@dataclass(frozen=True, eq=False)
class Evidence:
    """The maps of one scene that rejectors look at, on one grid and in the order of the schema."""

    probability: xr.DataArray  # (category, y, x)
    hidden_field: xr.DataArray | None = (
        None  # (category, y, x), where the context is solved already
    )
    p_value: xr.DataArray | None = None  # (y, x), of `Novelty`
    image: xr.DataArray | None = None  # (band, y, x): what priors with image edges look at
    token: str | None = None  # what distinguishes these maps from others, where that is known
    train: xr.DataArray | None = None  # training labels (y, x), for priors that learn from them

    @classmethod
    def of(cls, maps: xr.Dataset | xr.DataArray | NDArray[Any]) -> Evidence:
        """Return the evidence in a Dataset of these names, or in class probabilities alone."""
        if not isinstance(maps, xr.Dataset):
            return cls(_field(maps, name=PROBABILITY))
        if PROBABILITY not in maps:
            raise InputError(
                f"A rejector needs the variable '{PROBABILITY}' (category, y, x) "
                f"(the Dataset has: {', '.join(map(str, maps)) or 'nothing'})."
            )
        return cls(
            _field(maps[PROBABILITY], name=PROBABILITY),
            _field(maps[HIDDEN_FIELD], name=HIDDEN_FIELD) if HIDDEN_FIELD in maps else None,
            _optional(maps, P_VALUE, schema.MAP_DIMS),
            _optional(maps, IMAGE, schema.CUBE_DIMS),
            maps.attrs.get(TOKEN),
            _optional(maps, TRAIN, schema.MAP_DIMS),
        )

    def __post_init__(self) -> None:
        schema.category_labels(self.probability)  # raises where they cannot be labels

    @property
    def novelty(self) -> NDArray[Any] | None:
        """The p-values (y, x), NaN without data, where they are given; raises if they cannot be."""
        if self.p_value is None:
            return None
        has_data = schema.valid_pixels(self.probability).values
        p_value = np.where(has_data, self.p_value.values, np.nan)
        wrong = ~((p_value > 0) & (p_value <= 1)) & has_data
        if wrong.any():
            raise InputError(
                f"'{P_VALUE}' must lie above 0 and up to 1 wherever there are probabilities (it "
                f"does not in {wrong.sum()} pixels). Make it of the same scene with "
                "hsreject.Novelty().fit_p_value(cube, training)."
            )
        return p_value

    def check_same_categories(self) -> None:
        """Raise where the hidden field has other categories than the class probabilities.

        A Dataset gives both all categories of either, so that one is NaN in those of the other.
        """
        if self.hidden_field is None:
            return
        likely = _categories_with_data(self.probability)
        hidden = _categories_with_data(self.hidden_field)
        if likely and hidden and likely != hidden:
            raise InputError(
                "hidden_field and probability have different categories: hidden_field has values "
                f"for {', '.join(hidden)}, probability for {', '.join(likely)}. "
                "Pass the probabilities from which this hidden field was computed."
            )


def _categories_with_data(field: xr.DataArray) -> list[str]:
    has_data = field.notnull().any(schema.MAP_DIMS).values
    return [str(label) for label in schema.category_labels(field)[has_data]]


def _optional(maps: xr.Dataset, name: str, dims: tuple[str, ...]) -> xr.DataArray | None:
    return schema.check_dims(maps[name], dims, name=name) if name in maps else None


def _field(values: xr.DataArray | NDArray[Any], *, name: str) -> xr.DataArray:
    if not isinstance(values, xr.DataArray):
        plain = schema.plain_field(values, name=name)
        if plain.ndim != len(schema.FIELD_DIMS):
            raise InputError(
                f"{name} must have the dims (category, y, x) (got an array of shape {plain.shape})."
            )
        values = xr.DataArray(plain, dims=schema.FIELD_DIMS)
    field = schema.check_dims(values, schema.FIELD_DIMS, name=name)
    if field.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold real numbers (got {field.dtype}).")
    if schema.CATEGORY not in field.coords:
        field = field.assign_coords(
            {schema.CATEGORY: np.arange(1, field.sizes[schema.CATEGORY] + 1)}
        )
    return field
