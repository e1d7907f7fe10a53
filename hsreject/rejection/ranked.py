"""Rejectors that rank the pixels by a confidence and reject the lowest ones."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.confidence import Confidence, label_and_confidence, named_confidence
from hsreject.context.problem import valid_probability_pixels
from hsreject.errors import InputError
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.evidence import Evidence
from hsreject.rejection.novelty import UNKNOWN_BELOW, lowered_by_novelty
from hsreject.rejection.ranking import RANK, Ranking
from hsreject.rejection.rejector import Rejector, check_novelty
from hsreject.schema import CATEGORY, MAP_DIMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDING = 1e-6  # of a few operations in float32 on numbers up to 1


class RankedRejector(Rejector):
    """A rejector with one label map and one confidence: one sort gives every operating point.

    Subclasses implement :meth:`label_and_confidence`. Pixels with a confidence below a threshold
    are rejected; the threshold is given, or follows from what the user wants (`decide`).

    See Also
    --------
    hsreject.PixelwiseRejector : ranks by probabilities.
    hsreject.SequentialRejector : ranks by the hidden field.
    hsreject.JointRejector : does not rank.

    Examples
    --------
    A complete rejector, which trusts pixels whose neighbours look alike:

    >>> import numpy as np
    >>> from hsreject import RankedRejector
    >>> from hsreject.confidence import label_map
    >>> class NeighborRejector(RankedRejector):
    ...     '''Rejects pixels whose probability differs from that of their left neighbour.'''
    ...
    ...     def label_and_confidence(self, evidence, progress):
    ...         difference = evidence.probability - evidence.probability.shift(x=1)
    ...         alike = 1 - abs(difference).max("category").fillna(0)
    ...         return label_map(evidence.probability), alike
    >>> probability = np.array([[[0.9, 0.9, 0.2, 0.1]], [[0.1, 0.1, 0.8, 0.9]]])
    >>> NeighborRejector().reject(probability, fraction=0.25).label_with_rejection.values
    array([[1, 1, 0, 2]], dtype=uint8)
    """

    has_threshold: ClassVar[bool] = True

    @property
    def halo(self) -> int | None:
        """How many pixels around a block decide its labels and confidences; None: the whole scene.

        Only a rejector with such a number can map a scene in blocks.
        """
        return None

    @property
    def bytes_per_class(self) -> int:
        """Bytes per pixel and class that ranking a block takes, probabilities included."""
        return 24

    def guide(self, image: xr.DataArray) -> xr.DataArray | None:
        """Return what the rejector takes from the image of a whole scene, (layer, y, x), or None.

        Lazy where the image is. It is cut into blocks as the scene is, see :meth:`in_block`.
        """
        return None

    def in_block(self, layers: NDArray[np.floating[Any]]) -> RankedRejector:
        """Return this rejector for one block, with its part (layer, y, x) of the guide.

        Blocks run side by side, so each has one thread.
        """
        return self

    @abstractmethod
    def label_and_confidence(
        self, evidence: Evidence, progress: ProgressCallback
    ) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the label and the confidence of every pixel, both (y, x).

        Without data the label is ``schema.nodata_label`` and the confidence NaN. A rejector that
        may answer coarser gives the confidence of each answer, (level, y, x), the coarsest last.
        """

    def rank(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        *,
        fraction: float | None = None,
        reference: xr.DataArray | NDArray[Any] | None = None,
        progress: ProgressCallback = no_progress,
    ) -> Ranking:
        """Return label and confidence of every pixel: all that every rejection follows from.

        With p-values in the maps, and a rejector that looks at them, it has what is `unknown`.
        `fraction` and `reference` change nothing here: thresholds reach all that there is.
        """
        evidence = Evidence.of(maps)
        label, confidence = self.label_and_confidence(evidence, progress)
        label = schema.check_dims(label, MAP_DIMS, name="label").load()
        dims = schema.LEVEL_DIMS if schema.LEVEL in confidence.dims else MAP_DIMS
        values = np.asarray(schema.check_dims(confidence, dims, name="confidence").values)
        has_data = label.values != schema.nodata_label(label.dtype)
        values = np.where(has_data, values, values.dtype.type(np.nan))
        _check_ranking(has_data, values if dims == MAP_DIMS else values[-1], evidence)
        unknown = None
        if self.needs_p_value and evidence.novelty is not None:
            unknown = label.copy(data=evidence.novelty < UNKNOWN_BELOW)
        levels = xr.DataArray(values, label.coords, dims, attrs=confidence.attrs)
        return Ranking(label, levels, unknown, meaning=self.meaning(evidence))

    def meaning(self, evidence: Evidence) -> str:
        """Return what the confidence is: a rank, unless the rejector knows that it is more."""
        return RANK


def _check_ranking(
    has_data: NDArray[np.bool_], confidence: NDArray[np.floating], evidence: Evidence
) -> None:
    """Raise where a pixel has a label and no confidence, or an infinite one."""
    without = has_data & ~np.isfinite(confidence)
    if without.any() or not has_data.any():
        evidence.check_same_categories()  # the likeliest reason, where a hidden field is given
    if not without.any():
        return
    if evidence.probability.isnull().any(CATEGORY).values[without].all():
        raise InputError(
            f"Pixels of the scene have a field but no class probabilities ({without.sum()} of "
            "them). Pass the probabilities from which this hidden field was computed."
        )
    what = "an infinite" if np.isinf(confidence[without]).all() else "no"
    raise InputError(
        f"Pixels of the scene have a label but {what} confidence ({without.sum()} of them), which "
        "a threshold cannot rank. Choose another confidence, clip it at a largest number, or give "
        "the pixels the label of no data."
    )


@dataclass(frozen=True)
class FieldRanking(RankedRejector):
    """Ranks by a field: the hidden field of its `context`, or class probabilities without one."""

    @property
    def halo(self) -> int | None:
        """That of the context; 0 where a pixel is decided by its own probabilities alone."""
        return 0 if self.context is None else self.context.halo

    @property
    def bytes_per_class(self) -> int:
        """Those of the context."""
        if self.context is None:
            return super().bytes_per_class
        return self.context.working_size * np.dtype(self.context.dtype).itemsize

    def guide(self, image: xr.DataArray) -> xr.DataArray | None:
        """Return what the priors of the context take from the image."""
        return None if self.context is None else self.context.guide(image)

    def in_block(self, layers: NDArray[np.floating[Any]]) -> RankedRejector:
        """Return this rejector with its context guided, and solved by one thread."""
        if self.context is None:
            return self
        context = replace(self.context.in_block(layers), n_threads=1)
        guided: RankedRejector = replace(cast("Any", self), context=context)
        return guided

    def field_of(self, evidence: Evidence, progress: ProgressCallback) -> xr.DataArray:
        """Return the field (category, y, x) that decides, or say what is wrong with it.

        A hidden field that is known already is taken as it is.
        """
        probability = evidence.probability
        if self.context is not None:
            if evidence.hidden_field is not None:
                return evidence.hidden_field
            return self.context.solve(
                probability, image=evidence.image, train=evidence.train, progress=progress
            ).hidden_field
        if probability.chunks is None:
            evidence.check_same_categories()  # otherwise some classes would have no value
            _checked(probability.values)
            return probability
        lazy = probability.chunk({CATEGORY: -1})  # checked when they are computed
        nothing = np.empty((0, 0, 0), lazy.dtype)
        return lazy.copy(data=lazy.data.map_blocks(_checked, meta=nothing))


def _checked(probability: NDArray[Any]) -> NDArray[Any]:
    """Return values (category, y, x), or say why the context would not take them.

    Unlike there, all pixels may lack data, and rounding may leave values a little below 0.
    """
    if not np.isnan(probability).all():
        rounded_below = -ROUNDING <= np.nanmin(probability) < 0
        valid_probability_pixels(np.maximum(probability, 0) if rounded_below else probability)
    return probability


@dataclass(frozen=True)
class FieldRejector(FieldRanking):
    """Rejects the pixels whose field is least certain.

    `confidence` measures how certain a pixel is, by a name in ``hsreject.confidence.CONFIDENCES``
    or an object. With `novelty`, where the maps hold a `p_value` (:class:`hsreject.Novelty`),
    pixels with p below 0.1 are rejected earlier: their doubt, 1 minus the rank of the confidence,
    counts (0.1 / p)^0.2 times. Pixels with p below 0.025 are unknown, and rejected in any case.
    """

    _: KW_ONLY
    confidence: str | Confidence = "maximum"
    novelty: bool = True

    def __post_init__(self) -> None:
        named_confidence(self.confidence)  # raises if there is no such confidence
        check_novelty(self.novelty)

    def label_and_confidence(
        self, evidence: Evidence, progress: ProgressCallback
    ) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the class with the largest value of the field, and its confidence."""
        field = self.field_of(evidence, progress)
        label, confidence = label_and_confidence(
            field, named_confidence(self.confidence), evidence.probability
        )
        if not self.novelty or evidence.novelty is None:
            return label, confidence
        confidence = confidence.compute()
        lowered = lowered_by_novelty(confidence.values, evidence.novelty)
        return label, confidence.copy(data=lowered)
