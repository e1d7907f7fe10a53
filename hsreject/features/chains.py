"""Chains: three ways from spectra to a few components; none of them suits every scene."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hsreject.features.components import MNF, PCA
from hsreject.features.spectra import Normalize, Scale

if TYPE_CHECKING:
    import xarray as xr

    from hsreject.features.transformer import SceneTransformer

CHAINS = ("mnf", "raw", "normalized")
"""Components in units of noise, of scaled bands, and of scaled spectra of unit length."""

_EVERY = -1.0  # the signal-to-noise ratio that every component has


def fit_chain(
    name: str, cube: xr.DataArray, n_components: int
) -> tuple[list[SceneTransformer], xr.DataArray]:
    """Return the fitted steps of a chain and the features of the scene, lazy when `cube` is.

    A scene with fewer components than `n_components` gives all it has.
    """
    if name == "mnf":
        noise_units = MNF(None, min_snr=_EVERY).fit(cube)
        noise_units.components_ = noise_units.components_[:n_components]
        return [noise_units], noise_units.transform(cube)
    steps: list[SceneTransformer] = [Scale(), PCA(n_components)]
    if name == "normalized":
        steps.insert(0, Normalize())
    features = cube
    for step in steps:
        features = step.fit(features).transform(features)
    return steps, features
