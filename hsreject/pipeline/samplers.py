"""How a run divides the labelled pixels into training and test pixels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import xarray as xr

from hsreject.io.labels import open_labels
from hsreject.registry import Registry
from hsreject.sampling import given_split, sample_blocks, sample_fraction, sample_per_class


class Sampler(ABC):
    """A rule that divides labels into training and test pixels."""

    @abstractmethod
    def split(self, labels: xr.DataArray, *, seed: int) -> tuple[xr.DataArray, xr.DataArray]:
        """Return (train, test): label arrays, 0 where a pixel is not used."""


@dataclass(frozen=True)
class PerClass(Sampler):
    """So many random training pixels of each class; see `hsreject.sample_per_class`."""

    n: int = 10

    def split(self, labels: xr.DataArray, *, seed: int) -> tuple[xr.DataArray, xr.DataArray]:
        """Return (train, test)."""
        return sample_per_class(labels, self.n, seed=seed)


@dataclass(frozen=True)
class Fraction(Sampler):
    """A share of the pixels of each class for training; see `hsreject.sample_fraction`."""

    fraction: float = 0.1

    def split(self, labels: xr.DataArray, *, seed: int) -> tuple[xr.DataArray, xr.DataArray]:
        """Return (train, test)."""
        return sample_fraction(labels, self.fraction, seed=seed)


@dataclass(frozen=True)
class Blocks(Sampler):
    """Spatially disjoint blocks with a gap between training and test; see `sample_blocks`."""

    block_size: int = 16
    fraction: float = 0.3
    buffer: int = 4
    n_per_class: int | None = None

    def split(self, labels: xr.DataArray, *, seed: int) -> tuple[xr.DataArray, xr.DataArray]:
        """Return (train, test)."""
        return sample_blocks(
            labels,
            block_size=self.block_size,
            fraction=self.fraction,
            buffer=self.buffer,
            n_per_class=self.n_per_class,
            seed=seed,
        )


@dataclass(frozen=True)
class Given(Sampler):
    """A split that was published as two label files on the grid of the scene."""

    train: str
    test: str

    def split(self, labels: xr.DataArray, *, seed: int) -> tuple[xr.DataArray, xr.DataArray]:
        """Return (train, test)."""
        return given_split(
            open_labels(self.train, like=labels), open_labels(self.test, like=labels)
        )


SAMPLERS: Registry[Sampler] = Registry(
    "sampling", {"per_class": PerClass, "fraction": Fraction, "blocks": Blocks, "given": Given}
)
