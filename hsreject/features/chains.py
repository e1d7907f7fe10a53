"""Chains: three ways from spectra to a few components; none of them suits every scene."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hsreject import schema
from hsreject.errors import InputError
from hsreject.features.components import MNF, PCA
from hsreject.features.diffusion import HALO, N_GUIDES, diffused, squared_steps
from hsreject.features.pixel_kernels import product
from hsreject.features.spectra import Normalize, Scale
from hsreject.features.windows import Window, each_window, windows_of, windows_with

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.features.transformer import SceneTransformer

CHAINS = ("mnf", "raw", "normalized")
"""Components in units of noise, of scaled bands, and of scaled spectra of unit length."""

_EVERY = -1.0  # the signal-to-noise ratio that every component has


@dataclass
class FittedChain:
    """A chain fitted to a scene, and what it sees of a block of any scene after diffusion."""

    steps: list[SceneTransformer]  # none: the bands as they are
    mean_step: float = 1.0  # squared, of neighbours in the scene it was fitted to
    whole: dict[float, NDArray[Any]] | None = None  # by t: what it sees of a scene of one window

    def transform(self, cube: xr.DataArray) -> xr.DataArray:
        """Return the features (band, y, x) of a scene without diffusion, lazy when it is."""
        if not self.steps:
            good = cube.isel({schema.BAND: np.flatnonzero(schema.good_bands(cube))})
            return good.astype(np.float32, copy=False)
        for step in self.steps:
            cube = step.transform(cube)
        return cube

    def look(self, block: xr.DataArray, times: Sequence[float]) -> dict[float, NDArray[Any]]:
        """Return the features (band, y, x) of a block at diffusion times t.

        A scene of one window has no other block: what was seen of it is remembered.
        """
        seen = {} if self.whole is None else self.whole
        if 0.0 not in seen:
            seen[0.0] = self.transform(block).values
        later = [t for t in times if t not in seen]
        if later:
            flowed = diffused(seen[0.0], later, mean_step=self.mean_step)
            seen |= zip(later, flowed, strict=True)
        return {t: seen[t] for t in times}


@dataclass(frozen=True, eq=False)
class Projection:
    """Fitted chains of one scene as one product in single precision, the fastest way to them all.

    A chain is linear in the spectrum x or, after :class:`hsreject.Normalize`, in x / ||x||, so the
    weights of several are stacked: W (x - c) - o, with a center c near their means, which keeps
    the digits.
    """

    names: tuple[str, ...]
    unit: bool  # whether spectra are scaled to unit length
    center: NDArray[np.float32]  # (band, 1)
    weights: NDArray[np.float32]  # (feature, band)
    offset: NDArray[np.float32]  # (feature, 1)
    ends: tuple[int, ...]  # of each chain among the features

    @classmethod
    def of(cls, chains: Mapping[str, Sequence[SceneTransformer]]) -> list[Self]:
        """Return the projections of chains: one of spectra, one of those of unit length."""
        are_unit = {name: isinstance(steps[0], Normalize) for name, steps in chains.items()}
        return [
            cls._stacked(
                {name: chains[name] for name in chains if are_unit[name] == unit}, unit=unit
            )
            for unit in sorted(set(are_unit.values()))
        ]

    @classmethod
    def _stacked(cls, chains: Mapping[str, Sequence[Any]], *, unit: bool) -> Self:
        weights, origins = [], []
        for *before, components in chains.values():
            rows, origin = components.components_, components.mean_
            if before:  # scaled bands (x - m) / s
                origin = before[-1].mean_ + before[-1].scale_ * origin
                rows = rows / before[-1].scale_
            weights.append(rows)
            origins.append(origin)
        center = origins[0].astype(np.float32)
        offsets = [rows @ (at - center) for rows, at in zip(weights, origins, strict=True)]
        return cls(
            tuple(chains),
            unit,
            center[:, None],
            np.concatenate(weights).astype(np.float32),
            np.concatenate(offsets).astype(np.float32)[:, None],
            tuple(np.cumsum([len(rows) for rows in weights]).tolist()),
        )

    def __call__(self, samples: NDArray[Any]) -> dict[str, NDArray[np.float32]]:
        """Return by chain the features (feature, pixel) of spectra (pixel, band) with data."""
        spectra = samples.T.astype(np.float32)
        if self.unit:  # scaled twice, or lengths of tiny values would underflow
            largest = np.abs(spectra).max(axis=0)
            spectra /= np.where(largest > 0, largest, 1)
            length = np.sqrt((spectra**2).sum(axis=0, dtype=np.float64))
            spectra /= np.where(length > 0, length, 1).astype(np.float32)
        spectra -= self.center
        features = product(self.weights, spectra) - self.offset
        parts = np.split(features, self.ends[:-1])
        return dict(zip(self.names, parts, strict=True))


def fit_chain(name: str, cube: xr.DataArray, n_components: int) -> tuple[FittedChain, xr.DataArray]:
    """Return a chain fitted to a scene and the features of the scene, lazy when `cube` is.

    A scene with fewer components than `n_components` gives all it has.
    """
    if name == "mnf":
        noise_units = MNF(None, min_snr=_EVERY).fit(cube)
        noise_units.components_ = noise_units.components_[:n_components]
        steps, features = [noise_units], noise_units.transform(cube)
    else:
        steps = [Scale(), PCA(n_components)]
        if name == "normalized":
            steps.insert(0, Normalize())
        features = cube
        for step in steps:
            features = step.fit(features).transform(features)
    total, count = squared_steps(features[:N_GUIDES])
    whole = None if len(windows_of(cube)) > 1 else {0.0: features.values}
    return FittedChain(steps, total / max(count, 1), whole), features


def fit_chains(
    cube: xr.DataArray, n_components: int
) -> Iterator[tuple[str, FittedChain, xr.DataArray]]:
    """Yield name, chain and features of every chain that a scene allows."""
    for name in CHAINS:
        try:
            yield name, *fit_chain(name, cube, n_components)
        except InputError:  # a scene without noise has no MNF
            if name != "mnf":
                raise


def diffused_samples(
    views: Mapping[str, FittedChain],
    cube: xr.DataArray,
    places: tuple[NDArray[np.intp], NDArray[np.intp]],
    times: Sequence[float],
) -> dict[str, dict[float, NDArray[np.float64]]]:
    """Return by chain and time the features (pixel, band) of the pixels at rows and columns."""
    samples: dict[str, dict[float, NDArray[np.float64]]] = {name: {} for name in views}

    def look(window: Window) -> None:
        inside, (rows, columns) = window.locate(*places, around=False)
        block = window.block(cube)
        for name, view in views.items():
            for t, seen in view.look(block, times).items():
                of_all = samples[name].setdefault(t, np.empty((len(inside), len(seen))))
                of_all[inside] = seen[:, rows, columns].T

    each_window(windows_with(places, cube, halo=HALO), look)
    return samples
