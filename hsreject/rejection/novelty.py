"""Novelty: how far pixels lie from the training pixels, and how that joins a confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hsreject import schema
from hsreject.confidence import label_map
from hsreject.errors import InputError
from hsreject.features.pixels import (
    SampleFunction,
    labelled_samples,
    map_pixels,
    on_the_grid_of,
)
from hsreject.registry import check_count
from hsreject.rejection.evidence import CLASS_DISTANCE, Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

N_QUANTILES = 201
"""Of a distribution that is kept: steps of half a percent, linear in between."""

JOINT_EXPONENT = 0.5
"""Of the p-value that divides the odds of failure in joint rejection.

Woods of Indian Pines held out, a quarter of the scene rejected: 14 % of them rejected without, 68,
72 and 71 % with 1/3, 1/2 and 1, of which the last costs half a point of kept accuracy.
"""

SMALLEST_P_VALUE = 0.5 / N_QUANTILES  # what the quantiles can tell from 0


class Novelty(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Distance of pixels to the training pixels, class by class, in the features of a classifier.

    Class probabilities say which of the known classes a pixel resembles most, not whether it
    resembles any: pixels of a class without training pixels are often as probable as others. Their
    features, however, lie far from the training pixels. :meth:`distance` is what rejectors with
    ``novelty=True`` look at beside the class probabilities.

    The p-value of a pixel is the share of the pixels of the training scene that lie at least as far
    from their nearest training pixel, of whatever class:

    .. math:: p(d) = \#\{i : e_i \ge d\} / n

    with :math:`e_1, ..., e_n` the distances of the n pixels of that scene. So on the training scene
    one pixel in a hundred has a p-value of at most 0.01, and as many on any scene that was drawn
    like it (Vovk, Gammerman and Shafer 2005, call this conformal). The :math:`e_i` are kept as 201
    quantiles, with lines between them.

    Parameters
    ----------
    n_per_class : int
        The most training pixels of a class that are kept. Where there are more, every second,
        third, ... of them is, so that the time per pixel stays bounded.

    Attributes
    ----------
    samples_ : ndarray (n_samples, n_features)
        The training pixels, class by class.
    classes_ : ndarray of int (n_classes,)
        Their label values, ascending.
    first_ : ndarray of int (n_classes,)
        The first sample of each class.
    nearest_ : ndarray (201,)
        Quantiles of the distance to the nearest training pixel over the training scene.

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(size=(2, 6, 6))
    >>> values[:, 0, 0] = 30.0  # like nothing else
    >>> features = xr.DataArray(values, dims=("band", "y", "x"))
    >>> training = xr.zeros_like(features[0], dtype="uint8")
    >>> training[:, 3], training[:, 5] = 1, 2
    >>> novelty = Novelty().fit(features, training)
    >>> novelty.distance(features).dims, novelty.p_value(features).values[0, 0]
    (('category', 'y', 'x'), np.float32(0.0))
    """

    def __init__(self, *, n_per_class: int = 200) -> None:
        self.n_per_class = n_per_class

    def fit(self, features: xr.DataArray, labels: xr.DataArray) -> Self:
        """Keep the training pixels, and how far the pixels of the scene lie from them.

        Parameters
        ----------
        features : DataArray (band, y, x)
            The features that the classifier sees.
        labels : DataArray (y, x) of integers
            The training pixels, 0 elsewhere.
        """
        check_count("n_per_class", self.n_per_class, least=1)
        labels = schema.check_labels(labels, name="training labels")
        usable = _usable(features)
        schema.check_same_grid(usable, labels, names=("features", "training labels"))
        samples, values = labelled_samples(usable, labels)
        self.classes_ = np.unique(values)
        kept = [_thinned(np.flatnonzero(values == one), self.n_per_class) for one in self.classes_]
        self.samples_ = samples[np.concatenate(kept)]
        self.first_ = np.cumsum([0, *map(len, kept[:-1])])
        self.nearest_ = quantiles(self.distance(features).min(schema.CATEGORY))
        return self

    def distance(self, features: xr.DataArray) -> xr.DataArray:
        """Return the Euclidean distance of every pixel to the nearest training pixel of each class.

        Parameters
        ----------
        features : DataArray (band, y, x)
            Features of this or another scene; lazy when dask-backed.

        Returns
        -------
        DataArray of float32 (category, y, x)
            Named `class_distance`, NaN where there is no data.
        """
        return self._of_pixels(features, self._distances, self.classes_).rename(CLASS_DISTANCE)

    def p_value(self, features: xr.DataArray) -> xr.DataArray:
        """Return the p-value of every pixel, small where it is like no training pixel.

        Parameters
        ----------
        features : DataArray (band, y, x)
            As for :meth:`distance`.

        Returns
        -------
        DataArray of float32 (y, x)
            Named `novelty_p_value`, in [0, 1], NaN where there is no data.
        """
        found = self._of_pixels(
            features, lambda samples: self.sample_p_value(samples)[:, None], np.zeros(1, int)
        )
        return found.isel({schema.CATEGORY: 0}, drop=True).rename("novelty_p_value")

    def sample_p_value(self, samples: NDArray[Any]) -> NDArray[np.float64]:
        """Return the p-values of samples (n, feature)."""
        return 1 - share_below(self._distances(samples).min(axis=1), self.nearest_)

    def _of_pixels(
        self, features: xr.DataArray, function: SampleFunction, categories: NDArray[Any]
    ) -> xr.DataArray:
        """Return a function of the features of every pixel, (category, y, x)."""
        check_is_fitted(self, "samples_")
        usable = _usable(features)
        n_features = usable.sizes[schema.BAND]
        if n_features != self.samples_.shape[1]:
            raise InputError(
                f"The novelty was fitted on {self.samples_.shape[1]} features but is given "
                f"{n_features}. Pass the features of the same transformers."
            )
        data = map_pixels(usable, function, n_outputs=len(categories), dtype=np.float32)
        coords = {schema.CATEGORY: categories}
        return on_the_grid_of(usable, data, dim=schema.CATEGORY, coords=coords)

    def _distances(self, samples: NDArray[Any]) -> NDArray[np.float64]:
        """Return the distances (n, class) of samples (n, feature)."""
        # Pair by pair, not through a matrix product, whose rounding depends on the blocks.
        pairs = cdist(samples, self.samples_)
        nearest: NDArray[np.float64] = np.minimum.reduceat(pairs, self.first_, axis=1)
        return nearest


def _thinned(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return at most `most` of these places, evenly spaced."""
    return places[:: -(-places.size // most)]


def _usable(features: xr.DataArray) -> xr.DataArray:
    features = schema.check_dims(features, schema.CUBE_DIMS, name="features")
    return features.isel({schema.BAND: np.flatnonzero(schema.good_bands(features))})


def quantiles(values: ArrayLike) -> NDArray[np.float64]:
    """Return the quantiles that stand for a distribution, ascending; NaN counts as no value."""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return np.quantile(known, np.linspace(0, 1, N_QUANTILES))


def share_below(values: ArrayLike, reference: Sequence[float] | NDArray[Any]) -> NDArray[Any]:
    """Return which share of a distribution, given by its quantiles, lies below values.

    Of values equal to them half counts; NaN stays NaN.
    """
    knots, first, count = np.unique(reference, return_index=True, return_counts=True)
    share = (first + (count - 1) / 2) / (len(reference) - 1)
    return np.interp(np.asarray(values, dtype=np.float64), knots, share)


@dataclass(frozen=True)
class RankReference:
    """What the ranks of confidences and distances refer to: quantiles of both over one scene.

    With it a pixel is ranked by itself, and so in blocks as in the whole, and on another scene as
    on its own.
    """

    confidence: tuple[float, ...]
    distance: tuple[float, ...]  # to the nearest training pixel of the class of the label

    @classmethod
    def of(cls, confidence: ArrayLike, distance: ArrayLike) -> RankReference:
        """Return the reference that a scene is for itself and others; NaN is no data."""
        return cls(tuple(quantiles(confidence)), tuple(quantiles(distance)))

    def mean_rank(self, confidence: ArrayLike, distance: ArrayLike) -> NDArray[np.float64]:
        """Return the mean of the ranks of confidence and nearness, in [0, 1]."""
        nearness = 1 - share_below(distance, self.distance)
        known: NDArray[np.float64] = (share_below(confidence, self.confidence) + nearness) / 2
        return known


def check_novelty(novelty: object) -> None:
    """Raise unless it says whether and how novelty counts."""
    if not isinstance(novelty, bool | RankReference):
        raise InputError(f"novelty must be true or false (got {novelty!r}).")


def distance_at_label(evidence: Evidence, label: xr.DataArray) -> NDArray[np.float32]:
    """Return the distance (y, x) to the nearest training pixel of the class of the label."""
    if evidence.class_distance is None:
        raise InputError(
            f"novelty needs the variable '{CLASS_DISTANCE}' (category, y, x) beside 'probability'. "
            "Make it with hsreject.Novelty().fit(features, training).distance(features)."
        )
    distance = evidence.class_distance.values
    found = np.full(label.shape, np.nan, np.float32)
    for plane, value in zip(distance, schema.category_labels(evidence.class_distance), strict=True):
        np.copyto(found, plane, where=label.values == value, casting="same_kind")
    missing = np.isnan(found) & (label.values != schema.nodata_label(label.dtype))
    if missing.any():
        raise InputError(
            f"'{CLASS_DISTANCE}' is missing for {missing.sum()} pixels that have a label. It must "
            "come from the training pixels and the features that the probabilities come from."
        )
    return found


def with_novelty(
    label: xr.DataArray,
    confidence: xr.DataArray,
    evidence: Evidence,
    reference: RankReference | None,
) -> xr.DataArray:
    """Return a confidence (y, x) joined by how near the training pixels of the label's class are.

    It is the mean of both ranks, those in this scene unless there is a reference.
    """
    if not confidence.notnull().any():
        return confidence
    distance = distance_at_label(evidence, label)
    reference = reference or RankReference.of(confidence, distance)
    known = reference.mean_rank(confidence.values, distance)
    return confidence.copy(data=known.astype(confidence.dtype))


def known_weight(evidence: Evidence) -> NDArray[np.float64]:
    """Return how far each pixel (y, x) counts as known in joint rejection, above 0 and up to 1."""
    distance = distance_at_label(evidence, label_map(evidence.probability).compute())
    p_value = 1 - share_below(distance, quantiles(distance))
    weight: NDArray[np.float64] = np.maximum(p_value, SMALLEST_P_VALUE) ** JOINT_EXPONENT
    return weight
