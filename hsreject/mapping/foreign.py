"""What a model remembers of its training scene, and how like that another scene is."""

from __future__ import annotations

import hashlib
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.errors import DriftWarning, FileError, GuessWarning, InputError
from hsreject.features.pixels import labelled_samples, samples_of
from hsreject.rejection.novelty import UNKNOWN_BELOW, Novelty, p_value_of
from hsreject.schema import BAND, MAP_DIMS

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.classify.scene_model import SceneModel

FOREIGN = 0.5
"""Share of novel pixels above which a map would be about the others only."""

HIGH_SCORE, LOW_AGREEMENT, FALLEN_AGREEMENT = 0.95, 0.80, 0.05
"""Mean novelty above which, and agreement of experts below which, thresholds held less often.

The agreement must also have fallen by the last figure since the training scene. On 24 halves of two
scenes it warned of 14, on which 45 % of the labels were right; on the others 59 % were. So a
warning means something, silence does not.
"""

TOO_DARK = -2
"""Power of ten from which on a scene is so dark that it resembles any dark training pixel."""

N_WINDOWS, WINDOW = 3, 21
"""Windows along rows and along columns that are looked at, and their side in pixels."""

_VALUE_QUANTILES = (0.01, 0.5, 0.99)


@dataclass(frozen=True, eq=False)
class TrainingScene:
    """What a model remembers of the scene that it was trained on."""

    novelty: Novelty  # how far pixels lie from the training pixels, in the bands that it needs
    values: NDArray[np.float64]  # (3, needed band): quantiles of the scene, 1 %, 50 % and 99 %
    fingerprint: str  # identifies the scene: the model has been tested on no other
    units: str = ""  # that the scene stated
    agreement: float | None = None  # share of its labels on which experts agree, where there are

    @classmethod
    def of(
        cls, cube: xr.DataArray, training: xr.DataArray, classifier: SceneModel
    ) -> TrainingScene:
        """Return what to remember of a scene and its training pixels (y, x), 0 elsewhere."""
        needed = needed_bands(cube, classifier)
        windows = look_at(cube, classifier, match_bands="exact")
        pixels = needed_bands(windows, classifier).values
        values, _ = samples_of(pixels)
        if not len(values):  # what has data lies between the windows
            values = labelled_samples(needed, training)[0]
        return cls(
            Novelty().fit(needed, training),
            np.quantile(values, _VALUE_QUANTILES, axis=0),
            _fingerprint(cube.shape, pixels),
            str(cube.attrs.get("units", "")),
            classifier.agreement(windows),
        )

    def compare(
        self, cube: xr.DataArray, classifier: SceneModel, *, match_bands: str
    ) -> Similarity:
        """Return how like the training scene another scene is; a few windows of it are read."""
        windows = look_at(cube, classifier, match_bands=match_bands)
        pixels = needed_bands(windows, classifier)
        values, valid = samples_of(pixels.values)
        if not len(values):
            return Similarity(0)
        mixed, plain = (score.values[valid] for score in self.novelty.scores(pixels))
        rise = np.array([np.median(mixed), np.median(plain)]) - self.novelty.medians_
        return Similarity(
            len(values),
            novel_share=float((p_value_of(np.maximum(mixed, plain)) < UNKNOWN_BELOW).mean()),
            mean_score=float(mixed.mean()),
            shift=tuple(np.maximum(rise, 0.0).tolist()),
            agreement=classifier.agreement(windows),
            usual_agreement=self.agreement,
            power=_power_of_ten(np.quantile(values, _VALUE_QUANTILES, axis=0), self.values),
            units=(str(cube.attrs.get("units", "")), self.units),
            is_training_scene=_fingerprint(cube.shape, pixels.values) == self.fingerprint,
        )


@dataclass(frozen=True)
class Similarity:
    """How like the training scene another scene is."""

    n_sampled: int  # pixels that were looked at
    novel_share: float = 0.0  # of those, as they are
    mean_score: float = 0.0  # of their novelty, 0 in a scene like the training pixels
    shift: tuple[float, ...] = (0.0, 0.0)  # of the medians of z_1 and z_2
    agreement: float | None = None  # of experts about the label, if the classifier has several
    usual_agreement: float | None = None  # on the training scene, if the model remembers it
    power: int = 0  # of ten by which its values are larger
    units: tuple[str, str] = ("", "")  # of this scene and of the training scene, if they say
    is_training_scene: bool = False

    def check(self, foreign: str) -> None:
        """Raise where a scene is foreign and is to be refused, warn where it is doubtful."""
        if foreign == "allow" or self.is_training_scene:
            return
        if self.power <= TOO_DARK or self.novel_share > FOREIGN:
            reason = "Look for another sensor, atmosphere, season or land cover."
            if all(self.units) and len(set(self.units)) > 1:
                here, there = self.units
                reason = f"It is in {here}, and the training scene in {there}: convert it."
            elif self.power:
                how, remedy = ("larger", "divide") if self.power > 0 else ("smaller", "multiply")
                factor = f"{10 ** abs(self.power):,}"
                reason = (
                    f"Its values seem to be {factor} times {how}: {remedy} the scene by {factor}."
                )
            raise InputError(
                "The scene is not of the kind that the model was trained on: "
                f"{self.novel_share:.0%} of {self.n_sampled} pixels, looked at all over the scene, "
                f"are unlike the training pixels. {reason} To map it all the same, say "
                "--foreign allow, or foreign='allow' in Python."
            )
        doubts = []
        if self.mean_score > HIGH_SCORE:
            doubts.append(f"its pixels are novel on average ({self.mean_score:.2f} deviations)")
        usual = 1.0 if self.usual_agreement is None else self.usual_agreement
        least = min(LOW_AGREEMENT, usual - FALLEN_AGREEMENT)
        if self.agreement is not None and self.agreement < least:
            doubts.append(f"the experts of the model agree on {self.agreement:.0%} of the labels")
        if doubts:
            warnings.warn(
                f"The scene is less like the training scene than models usually cope with: "
                f"{' and '.join(doubts)}. Labels and confidences may be worse than there: check "
                "the map with a sample of this scene ('hsreject sample').",
                DriftWarning,
                stacklevel=4,  # the caller of map_scene
            )


def needed_bands(cube: xr.DataArray, classifier: SceneModel) -> xr.DataArray:
    """Return the bands of a matched scene that the model needs."""
    return cube.isel({BAND: np.flatnonzero(classifier.band_requirements_.needed)})


def window_chunks(shape: tuple[int, int]) -> dict[str, Any]:
    """Return chunks (y, x) in which every window is read by itself, and nothing between them."""
    chunks = {}
    for dim, size in zip(MAP_DIMS, shape, strict=True):
        inside = np.isin(np.arange(size), _places(size))
        edges = [0, *np.flatnonzero(np.diff(inside)) + 1, size]
        chunks[dim] = tuple(np.diff(edges).tolist())
    return chunks


def look_at(cube: xr.DataArray, classifier: SceneModel, *, match_bands: str) -> xr.DataArray:
    """Return 3 by 3 windows all over a scene, side by side, in the bands of the training scene."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuessWarning)  # warned about once, when the scene is mapped
        try:
            windows = cube.isel({dim: _places(cube.sizes[dim]) for dim in MAP_DIMS}).compute()
        except OSError as error:
            raise FileError(f"The scene cannot be read: {error}.") from None
        return classifier.band_requirements_.match(windows, how=match_bands)


def _places(size: int) -> NDArray[np.intp]:
    """Return the rows or columns of the windows: evenly, from one end to the other."""
    n_windows = min(N_WINDOWS, max(size // WINDOW, 1))
    starts = np.linspace(0, max(size - WINDOW, 0), n_windows).round().astype(np.intp)
    places = np.unique(starts[:, None] + np.arange(WINDOW))
    return places[places < size]


def _fingerprint(shape: tuple[int, ...], values: NDArray[Any]) -> str:
    single = np.ascontiguousarray(values, dtype=np.float32)
    return hashlib.sha256(repr(shape[1:]).encode() + single.tobytes()).hexdigest()


def _power_of_ten(values: NDArray[np.float64], trained: NDArray[np.float64]) -> int:
    """Return the power of ten by which both medians and ranges are larger, 0 where they differ."""
    powers = set()
    for one, other in ((values[1], trained[1]), (np.ptp(values, axis=0), np.ptp(trained, axis=0))):
        usable = (one > 0) & (other > 0)
        ratio = np.median(one[usable] / other[usable]) if usable.any() else 1.0
        powers.add(round(math.log10(ratio)))
    return powers.pop() if len(powers) == 1 else 0
