"""A map model: everything that turns a new scene into a map that says where it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject.errors import InputError
from hsreject.mapping.foreign import needed_bands
from hsreject.measures.point import COUNTS
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.hierarchical import HierarchicalRejector
from hsreject.rejection.novelty import below_all_others
from hsreject.schema import LEVEL, LEVEL_CONFIDENCE, OPERATING_POINT, total_halo

if TYPE_CHECKING:
    from hsreject.class_tree import ClassTree
    from hsreject.classes import ClassTable
    from hsreject.classify.scene_model import SceneModel
    from hsreject.mapping.foreign import TrainingScene
    from hsreject.measures.choosing import Goal
    from hsreject.rejection import Novelty, RankedRejector

KEPT_AT_LEVEL, KEPT_AS_CLASS = "kept_at_level", "kept_as_class"
"""Columns of operating points with groups: the share of pixels with an answer of each level."""


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
        The operating points of the rejector on the test pixels of the training scene, which the
        classifier has not seen: the variables of :func:`hsreject.rejection_curve`. Empty if there
        were none. They say which threshold a rejection cost or an accuracy asks for on the
        training scene; on another one nothing was measured.
    training_scene : TrainingScene, optional
        What the training scene looked like, so that other scenes and unknown land cover are
        recognised; without it every scene is mapped, and nothing on it is unknown.
    title : str
        What the configuration calls itself.
    configuration : str
        The configuration that the model was trained with, as TOML.

    See Also
    --------
    hsreject.train : makes one.
    hsreject.save_model : keeps it.
    hsreject.map_scene : maps with it.
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
    def lowest_confidence(self) -> float:
        """A lower bound of the confidences of pixels that are not unknown."""
        return self.rejector.lowest(len(self.classes.values))

    @property
    def n_calibration_pixels(self) -> int:
        """Number of test pixels behind `calibration`: the sum of the four counts of any point."""
        return int(sum(self.calibration[name][0] for name in COUNTS if name in self.calibration))

    @property
    def operating_points(self) -> xr.Dataset:
        """The calibration as a Dataset over `operating_point`, rejected fraction ascending."""
        return xr.Dataset({name: (OPERATING_POINT, one) for name, one in self.calibration.items()})

    def threshold_for(self, goal: Goal) -> float:
        """Return the threshold that met an accuracy or a rejection cost on the training scene."""
        if not self.calibration:
            raise InputError(
                f"The model cannot tell a threshold for {goal.kind}={goal.value:g}: it was trained "
                "without test pixels. Ask for a fraction or a threshold, or train with fewer "
                "training pixels."
            )
        points = self.operating_points
        return float(points["threshold"].values[self.rejector.chosen_point(points, goal)])

    def tested(
        self, maps: xr.Dataset, test: xr.DataArray, *, progress: ProgressCallback = no_progress
    ) -> MapModel:
        """Return the model with its operating points on the test pixels of the training scene.

        The maps are `probability` and `image`. As on maps, unknown pixels come below all others.
        """
        ranking = self.rejector.rank(maps, progress=progress)
        if self.rejector.needs_p_value:
            image = needed_bands(maps["image"], self.classifier)
            p_value = self.novelty.p_value(image, shift=(0, 0))
            for name in {"confidence", LEVEL_CONFIDENCE} & set(ranking):
                values = ranking[name].values
                lowered = below_all_others(values, p_value.values, lowest=self.lowest_confidence)
                ranking[name] = ranking[name].copy(data=lowered)
        curve = self.rejector.points(ranking, test)
        if KEPT_AT_LEVEL in curve:  # of which the first, the classes, are all that is asked for
            curve[KEPT_AS_CLASS] = curve[KEPT_AT_LEVEL].isel({LEVEL: 0})
        calibration = {
            str(name): np.asarray(column.values, dtype=np.float64)
            for name, column in curve.data_vars.items()
            if column.dims == (OPERATING_POINT,)
        }
        return replace(self, calibration=calibration)
