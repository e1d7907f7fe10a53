"""Foreign scenes: what a model remembers of its training scene, and whether another is its kin."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.base import compute

from hsreject.errors import DriftWarning, FileError, GuessWarning, InputError
from hsreject.features.pixels import labelled_samples, samples_of
from hsreject.rejection.novelty import Novelty
from hsreject.schema import BAND, MAP_DIMS, WAVELENGTH

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.classify.scene_classifier import SceneClassifier

NOVEL = 0.01
"""Rarity up to which a pixel is novel: one in a hundred of the training scene is."""

DRIFTED = 0.1
"""Share of novel pixels above which a scene drifted: ten times as many as where it was trained."""

FOREIGN = 0.5
"""Share above which most pixels are novel: a map would speak of the others only."""

TOO_DARK, TOO_ALIKE = 0.01, 0.1
"""Brightness and spread of the features, in parts of the training scene's, below which a scene has
shrunk to one point: numbers of other units, which the model takes for something dark. Such scales
differ by a hundred and more, and a scene of one dark class is rarely that dark and that even.
"""

ROUGHER = 2.0
"""How much rougher than the training scene's a median spectrum is where bands are in any order.

Roughness is the sum of the steps from band to band over the range: 4 to 7 for each class of Indian
Pines and of an EnMAP scene, crops, trees, roofs, soil and water, and 14 to 80 with shuffled bands.
"""

N_WINDOWS, WINDOW = 3, 21
"""Windows along rows and along columns that are looked at, and their side in pixels."""

SUN = 5_772.0
"""Effective temperature of the sun in kelvin."""

_RADIATION = 1.438777e7  # second radiation constant hc/k, in nm K
_VALUE_QUANTILES = (0.01, 0.5, 0.99)


@dataclass(frozen=True, eq=False)
class TrainingScene:
    """What a model remembers of the scene that it was trained on.

    Attributes
    ----------
    novelty : Novelty
        How far that scene's pixels lie from the training pixels.
    values : array (3, needed band)
        Their 1 %, 50 % and 99 % quantiles in each band that the model needs.
    spread : float
        Standard deviation of their features, root mean square over the features.
    units : str
        Units that the scene stated, "" if it did not.
    """

    novelty: Novelty
    values: NDArray[np.float64]
    spread: float
    units: str = ""

    @classmethod
    def of(
        cls, cube: xr.DataArray, training: xr.DataArray, classifier: SceneClassifier
    ) -> TrainingScene:
        """Return what to remember of a scene and its training pixels (y, x), 0 elsewhere."""
        novelty = Novelty().fit(classifier.transform(cube), training)
        features, values = sample_scene(cube, classifier, match_bands="exact")
        if not len(values):  # what has data lies between the windows
            needed = {BAND: np.flatnonzero(classifier.band_requirements_.needed)}
            features, values = novelty.samples_, labelled_samples(cube.isel(needed), training)[0]
        quantiles = np.quantile(values, _VALUE_QUANTILES, axis=0)
        return cls(novelty, quantiles, _spread(features), str(cube.attrs.get("units", "")))

    def compare(
        self, cube: xr.DataArray, classifier: SceneClassifier, *, match_bands: str
    ) -> Kinship:
        """Return how like the training scene another scene is; a few windows of it are read."""
        features, values = sample_scene(cube, classifier, match_bands=match_bands)
        if not len(features):
            return Kinship(0, 0.0)
        share = float((self.novelty.sample_rarity(features) <= NOVEL).mean())
        found = np.quantile(values, _VALUE_QUANTILES, axis=0)
        dark = np.median(found[2] <= TOO_DARK * self.values[2]) == 1
        shrunk = bool(dark and _spread(features) < TOO_ALIKE * self.spread)
        wanted = classifier.band_requirements_
        disorder = ""
        if wanted.wavelength is None or WAVELENGTH not in cube.coords:  # the order is a guess
            disorder = guess_disorder(found[1], self.values[1])
        kinship = Kinship(len(features), share, shrunk=shrunk, disorder=disorder)
        if not kinship.drifted:
            return kinship
        wavelength = None if wanted.wavelength is None else wanted.wavelength[wanted.needed]
        units = str(cube.attrs.get("units", "")), self.units
        return replace(kinship, reason=guess_reason(found, self.values, wavelength, units))


@dataclass(frozen=True)
class Kinship:
    """How like the training scene another scene is."""

    n_sampled: int  # pixels that were looked at
    novel_share: float  # of those
    shrunk: bool = False  # to one dark point, which may well lie near a training pixel
    disorder: str = ""  # how its bands seem to be ordered, if not as those of the training scene
    reason: str = ""  # what the values say of it, in sentences; "" where it has not drifted

    @property
    def drifted(self) -> bool:
        """Whether clearly more pixels are novel than in the training scene."""
        return self.foreign or self.novel_share > DRIFTED

    @property
    def foreign(self) -> bool:
        """Whether most pixels are novel, or none can be told."""
        return self.shrunk or bool(self.disorder) or self.novel_share > FOREIGN

    def check(self, foreign: str) -> None:
        """Raise where a scene is foreign and is to be refused, warn where it has drifted."""
        if not self.drifted or foreign == "allow":
            return
        seen = (
            f"{self.novel_share:.0%} of {self.n_sampled} pixels, looked at all over the scene, are "
            f"unlike the training pixels (in the training scene {NOVEL:.0%} are). {self.reason}"
        )
        if self.shrunk:
            seen = f"to the model its pixels are all alike. {self.reason}"
        if self.disorder:
            seen = f"{self.disorder}. Reorder them, or state their wavelengths."
        if self.foreign:
            raise InputError(
                f"The scene is not of the kind that the model was trained on: {seen} To map it all "
                "the same, say --foreign allow, or foreign='allow' in Python."
            )
        warnings.warn(
            f"The scene differs from the one that the model was trained on: {seen} "
            "Pixels unlike the training pixels are rejected.",
            DriftWarning,
            stacklevel=4,  # whoever called map_scene
        )


def _spread(features: NDArray[Any]) -> float:
    return float(np.sqrt(features.var(axis=0, dtype=np.float64).mean()))


# --------------------------------------------------------------------------- pixels to look at


def window_chunks(shape: tuple[int, int], halo: int | None) -> dict[str, Any]:
    """Return chunks (y, x) in which every window is read by itself, and nothing between them."""
    if halo is None:
        return dict.fromkeys(MAP_DIMS, -1)
    chunks = {}
    for dim, size in zip(MAP_DIMS, shape, strict=True):
        edges = {0, size}
        for start in _starts(size):
            edges |= {max(start - halo, 0), min(start + WINDOW + halo, size)}
        chunks[dim] = tuple(np.diff(sorted(edges)).tolist())
    return chunks


def sample_scene(
    cube: xr.DataArray, classifier: SceneClassifier, *, match_bands: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return features (sample, feature) and needed bands (sample, band) of pixels all over a scene.

    The pixels are those with data in 3 by 3 windows of 21 by 21 pixels, evenly spaced. They are
    read with the halo of the features around them, and pass through the features as one small
    scene; features that look at the whole scene are made for the whole scene.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuessWarning)  # told once, when the scene is mapped
        try:
            features, bands = compute(*_looked_at(cube, classifier, match_bands))
        except OSError as error:
            raise FileError(f"The scene cannot be read: {error}.") from None
    samples, _ = samples_of(np.concatenate([features.values, bands.values]))
    return samples[:, : len(features)], samples[:, len(features) :]


def _looked_at(
    cube: xr.DataArray, classifier: SceneClassifier, match_bands: str
) -> tuple[xr.DataArray, xr.DataArray]:
    """Return features and needed bands (band, y, x) of all windows, side by side."""
    wanted, halo = classifier.band_requirements_, classifier.halo
    inside: dict[str, Any] = {dim: _places(cube.sizes[dim], 0) for dim in MAP_DIMS}
    if halo is not None:
        around = {dim: _places(cube.sizes[dim], halo) for dim in MAP_DIMS}
        inside = {dim: np.searchsorted(around[dim], inside[dim]) for dim in MAP_DIMS}
        cube = cube.isel(around).compute()
    matched = wanted.match(cube, how=match_bands)
    needed = matched.isel({BAND: np.flatnonzero(wanted.needed)})
    return classifier.transform(matched).isel(inside), needed.isel(inside)


def _places(size: int, halo: int) -> NDArray[np.intp]:
    """Return the rows or columns that lie in a window or within `halo` of one, ascending.

    What is around a window in the scene is around it among these, too.
    """
    spans = [np.arange(start - halo, start + WINDOW + halo) for start in _starts(size)]
    places = np.unique(spans)
    return places[(places >= 0) & (places < size)]


def _starts(size: int) -> list[int]:
    """Return where windows start along a dimension: evenly, from one end to the other."""
    n_windows = min(N_WINDOWS, max(size // WINDOW, 1))
    starts = np.linspace(0, max(size - WINDOW, 0), n_windows).round().astype(int)
    return starts.tolist()  # type: ignore[no-any-return]  # NumPy does not say


# ------------------------------------------------------------------------------ what it may be


def guess_disorder(median: NDArray[np.float64], known: NDArray[np.float64]) -> str:
    """Return how bands without wavelengths seem to be ordered, if not as they were, or "".

    Other land cover, another season and noise change the medians of a scene, but leave them smooth
    along the bands, and do not make them a mirror image or the same values in other places: of the
    338 pairs of classes of Indian Pines and an EnMAP scene none is taken for another order.
    """
    if min(np.ptp(median), np.ptp(known)) == 0 or median.size < 3:
        return ""
    in_order, mirrored = (np.corrcoef(one, known)[0, 1] for one in (median, median[::-1]))
    if mirrored > 0.9 and mirrored > in_order + 0.2:
        return "its bands seem to be in reverse order"
    scaled = median * (np.abs(known).sum() / np.abs(median).sum())
    same_values = _apart(np.sort(scaled), np.sort(known)) < 0.05 and _apart(scaled, known) > 0.15
    if same_values or _roughness(median) > ROUGHER * _roughness(known):
        return "its bands seem to be in another order"
    return ""


def _roughness(spectrum: NDArray[np.float64]) -> float:
    return float(np.abs(np.diff(spectrum)).sum() / np.ptp(spectrum))


def _apart(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    """Return how far apart the values of two spectra are in most bands, in parts of the range."""
    return float(np.median(np.abs(one - two)) / np.ptp(two))


def guess_reason(
    values: NDArray[np.float64],
    known: NDArray[np.float64],
    wavelength: NDArray[np.float64] | None,
    units: tuple[str, str],
) -> str:
    """Return what quantiles (3, band) of values tell about why two scenes differ.

    A ratio of the medians beyond a half of a power of ten is taken for a scale factor. Radiance is
    reflectance times sunlight, so where the ratio follows the spectrum of a black body as hot as
    the sun, one scene is taken for radiance and the other for reflectance.
    """
    if all(units) and units[0] != units[1]:
        return f"It is in {units[0]}, and the training scene in {units[1]}: convert it."
    spans = (
        f"Its values go from {_short(values[0].min())} to {_short(values[2].max())}, those of the "
        f"training scene from {_short(known[0].min())} to {_short(known[2].max())}."
    )
    return f"{spans} {_guess(values, known, wavelength)}"


def _guess(
    values: NDArray[np.float64],
    known: NDArray[np.float64],
    wavelength: NDArray[np.float64] | None,
) -> str:
    """Return what may be wrong with a scene of these values."""
    logs = _log_ratio(values[1], known[1])
    slope = 0.0 if wavelength is None else _sunlight_slope(logs, wavelength)
    if slope > 0.5:
        return "They follow sunlight: is it radiance, and the model one of reflectance?"
    if slope < -0.5:
        return "Only those follow sunlight: is it reflectance, and the model one of radiance?"
    spread = _log_ratio(values[2] - values[0], known[2] - known[0])  # an offset leaves it alone
    power, same = (_power_of_ten(found) for found in (logs, spread))
    if power and power == same:
        factor = f"{10 ** abs(power):,}"
        return (
            f"They seem to be {factor} times {'larger' if power > 0 else 'smaller'}: "
            f"{'divide' if power > 0 else 'multiply'} the scene by {factor}."
        )
    return "Look for another sensor, another atmosphere or season, or other land cover."


def _log_ratio(values: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(values / known), NaN where one of them is not positive."""
    ratio = np.full(values.shape, np.nan)
    np.divide(values, known, out=ratio, where=(values > 0) & (known > 0))
    logs: NDArray[np.float64] = np.log(ratio)
    return logs


def _power_of_ten(logs: NDArray[np.float64]) -> int:
    return 0 if np.isnan(logs).all() else round(float(np.nanmedian(logs)) / math.log(10))


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _sunlight_slope(logs: NDArray[np.float64], wavelength: NDArray[np.float64]) -> float:
    """Return the slope of log ratios over the log of sunlight, 0 where it does not explain them."""
    known = np.isfinite(logs) & np.isfinite(wavelength)
    logs, wavelength = logs[known], wavelength[known]
    light = -5 * np.log(wavelength) - np.log(np.expm1(_RADIATION / (wavelength * SUN)))
    if light.size < 3 or np.std(light) == 0 or np.std(logs) == 0:
        return 0.0
    if abs(np.corrcoef(light, logs)[0, 1]) < 0.7:  # less than half of the variance
        return 0.0
    return float(np.polyfit(light, logs, 1)[0])
