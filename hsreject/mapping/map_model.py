"""A map model: all that turns a scene into a map, and what tells it that a scene is foreign."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject.errors import DriftWarning, FileError, GuessWarning, InputError
from hsreject.features.pixels import labelled_samples, samples_of
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.decision import Decision, decide_by_points
from hsreject.rejection.hierarchical import HierarchicalRejector
from hsreject.rejection.novelty import UNKNOWN_BELOW, Novelty, p_value_of
from hsreject.schema import BAND, LEVEL, MAP_DIMS, OPERATING_POINT, total_halo

if TYPE_CHECKING:
    from hsreject.classify.scene_model import SceneModel
    from hsreject.measures.choosing import Goal
    from hsreject.rejection import RankedRejector
    from hsreject.schema.class_tree import ClassTree
    from hsreject.schema.classes import ClassTable

KEPT_AT_LEVEL, KEPT_AS_CLASS = "kept_at_level", "kept_as_class"
"""Columns of operating points with groups: the share of pixels with an answer of each level."""

FOREIGN = 0.5  # share of novel pixels above which a map would be about the others only
TOO_DARK = -2  # power of ten from which on a scene resembles any dark training pixel
N_WINDOWS, WINDOW = 3, 21  # along rows and columns that are looked at; their side in pixels
_VALUE_QUANTILES = (0.01, 0.5, 0.99)

HIGH_SCORE, LOW_AGREEMENT, FALLEN_AGREEMENT = 0.95, 0.80, 0.05
"""Mean novelty above which, and agreement of experts below which, thresholds held less often.

The agreement must also have fallen by the last figure since the training scene. A warning means
something (45 % of the labels right on 14 half scenes, 59 % on 10 others), silence does not.
"""


@dataclass(frozen=True, eq=False)
class MapModel:
    """A fitted classifier, its context and confidence, and what thresholds reach.

    Parameters
    ----------
    classifier : SceneModel
        A classifier of scenes, fitted.
    rejector : RankedRejector
        Gives label and confidence of every pixel; it holds the context and the groups of classes,
        if there are any.
    calibration : mapping of str to array (operating_point,)
        The operating points of the rejector on the test pixels of the training scene, if there
        were any: the variables of :func:`hsreject.rejection_curve`. They say which threshold a
        rejection cost or an accuracy asks for there; on another scene nothing was measured.
    training_scene : TrainingScene, optional
        What the training scene looked like. Without it every scene is mapped, and nothing on it
        is unknown.
    title : str
        What the configuration calls itself.
    configuration : str
        The configuration that the model was trained with, as TOML.

    See Also
    --------
    hsreject.train : makes one.
    hsreject.save_model : keeps it.
    hsreject.map_scene : maps with it.

    Examples
    --------
    >>> import hsreject as hr
    >>> cube, labels = hr.synthetic_scene(rows=16, columns=16, n_bands=4)
    >>> classifier = hr.SceneClassifier("lda").fit(cube, labels)
    >>> model = hr.MapModel(classifier, hr.PixelwiseRejector())
    >>> scene_map = hr.map_scene(cube, model, hr.Goal(fraction=0.25))
    >>> scene_map.summary.n_rejected, scene_map.summary.n_pixels
    (62, 250)
    """

    classifier: SceneModel
    rejector: RankedRejector
    _: KW_ONLY
    calibration: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    training_scene: TrainingScene | None = None
    title: str = ""
    configuration: str = ""

    @property
    def classes(self) -> ClassTable:
        """The classes that it knows."""
        return self.classifier.class_table_

    @property
    def tree(self) -> ClassTree | None:
        """The groups of classes that its maps may answer with; None without."""
        if not isinstance(self.rejector, HierarchicalRejector):
            return None
        return self.rejector.tree(self.classes)

    @property
    def halo(self) -> int | None:
        """How many pixels around a pixel decide its label; None: the whole scene does."""
        return total_halo([self.classifier.halo, self.rejector.halo])

    @property
    def novelty(self) -> Novelty:
        """How far pixels lie from its training pixels."""
        if self.training_scene is None:
            raise InputError("Novelty needs a model with a training_scene. Make one with train.")
        return self.training_scene.novelty

    @property
    def operating_points(self) -> xr.Dataset:
        """The calibration as a Dataset over `operating_point`, rejected fraction ascending."""
        return xr.Dataset({name: (OPERATING_POINT, one) for name, one in self.calibration.items()})

    @property
    def tells_unknown(self) -> bool:
        """Whether it tells which pixels are like no training pixel."""
        return self.training_scene is not None and self.rejector.needs_p_value

    def decide(self, goal: Goal) -> Decision:
        """Return what met an accuracy or a rejection cost on the training scene."""
        if not self.calibration:
            raise InputError(
                f"The model cannot tell a threshold for {goal.kind}={goal.value:g}: it was trained "
                "without test pixels. Ask for a fraction or a threshold, or train with fewer "
                "training pixels."
            )
        cost = self.rejector.coarse_cost
        return decide_by_points(self.operating_points, goal, coarse_cost=cost)

    def tested(
        self, maps: xr.Dataset, test: xr.DataArray, *, progress: ProgressCallback = no_progress
    ) -> MapModel:
        """Return the model with its operating points on test pixels of its `image`."""
        ranking = self.rejector.rank(maps, progress=progress)
        if self.tells_unknown:
            image = needed_bands(maps["image"], self.classifier)
            p_value = self.novelty.p_value(image, shift=(0, 0)).values
            unknown = ranking.label.copy(data=p_value < UNKNOWN_BELOW)
            ranking = replace(ranking, unknown=unknown)
        curve = ranking.points(test)
        if KEPT_AT_LEVEL in curve:  # of which the first, the classes, are all that is asked for
            curve[KEPT_AS_CLASS] = curve[KEPT_AT_LEVEL].isel({LEVEL: 0})
        calibration = {
            str(name): np.asarray(column.values, dtype=np.float64)
            for name, column in curve.data_vars.items()
            if column.dims == (OPERATING_POINT,)
        }
        return replace(self, calibration=calibration)


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
        cls,
        cube: xr.DataArray,
        training: xr.DataArray,
        classifier: SceneModel,
        *,
        novelty: Novelty | None = None,
    ) -> Self:
        """Return what to remember of a scene and its training pixels (y, x), 0 elsewhere.

        A `novelty` that was fitted to them in all bands serves where the model needs all bands.
        """
        needed = needed_bands(cube, classifier)
        windows = look_at(cube, classifier, match_bands="exact")
        pixels = needed_bands(windows, classifier).values
        values, _ = samples_of(pixels)
        if not len(values):  # what has data lies between the windows
            values = labelled_samples(needed, training)[0]
        if novelty is None or needed.sizes[BAND] < cube.sizes[BAND]:
            novelty = Novelty().fit(needed, training)
        return cls(
            novelty,
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
        units = str(cube.attrs.get("units", "")), self.units
        return Similarity(
            len(values),
            novel_share=float((p_value_of(np.maximum(mixed, plain)) < UNKNOWN_BELOW).mean()),
            mean_score=float(mixed.mean()),
            shift=tuple(np.maximum(rise, 0.0).tolist()),
            agreement=classifier.agreement(windows),
            usual_agreement=self.agreement,
            power=_power_of_ten(np.quantile(values, _VALUE_QUANTILES, axis=0), self.values),
            units=units if all(units) and len(set(units)) > 1 else (),
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
    units: tuple[str, ...] = ()  # of this scene and of the training scene, where they differ
    is_training_scene: bool = False

    def check(self, foreign: str) -> None:
        """Raise where a scene is foreign and is to be refused, warn where it is doubtful."""
        if foreign == "allow" or self.is_training_scene:
            return
        if self.power <= TOO_DARK or self.novel_share > FOREIGN:
            reason = "Look for another sensor, atmosphere, season or land cover."
            if self.units:
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
                f"{100 * self.novel_share:.0f} % of {self.n_sampled} pixels, looked at all over "
                f"the scene, are unlike the training pixels. {reason} To map it all the same, say "
                "--foreign allow, or Reading(foreign='allow') in Python."
            )
        doubts = []
        if self.mean_score > HIGH_SCORE:
            doubts.append(f"its pixels are novel on average ({self.mean_score:.2f} deviations)")
        usual = 1.0 if self.usual_agreement is None else self.usual_agreement
        least = min(LOW_AGREEMENT, usual - FALLEN_AGREEMENT)
        if self.agreement is not None and self.agreement < least:
            doubts.append(
                f"the experts of the model agree on {100 * self.agreement:.0f} % of the labels"
            )
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
