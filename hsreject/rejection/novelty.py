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
from hsreject.rejection.evidence import CLASS_P_VALUE, Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

N_QUANTILES = 201
"""Of a distribution that is kept: steps of half a percent, linear in between."""

NOVELTY_WEIGHT = 0.35
"""Of the p-value beside the cube root of the rank of the confidence, 0.65.

The root is steep where the rank is low: what is least sure is rejected first whatever its p-value,
which keeps the accuracy. With the rank itself, products of both or sums of their logarithms, a
strong classifier lost more where nothing was unknown, or unknown classes were told less well.
"""


class Novelty(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""How well pixels fit the training pixels of each class, in the features of a classifier.

    Class probabilities say which of the known classes a pixel resembles most, not whether it
    resembles any: pixels of a class without training pixels are often as probable as others. Their
    features, however, lie far from the training pixels. Rejectors with ``novelty=True`` look at
    both.

    Let :math:`d_k` be the distance of a pixel to the nearest training pixel of class k, and
    :math:`e_1, ..., e_n` that of each training pixel to the nearest other one of its own class. The
    conformal p-value of class k is

    .. math:: p_k = (1 + \#\{i : e_i \ge d_k\}) / (n + 1)

    A pixel of class k that was drawn as the training pixels were has :math:`p_k \le \alpha` with a
    probability of about :math:`\alpha` at most (Vovk, Gammerman and Shafer 2005; Laxhammar and
    Falkman 2010 for nearest neighbours). Where the classes have as many training pixels as each
    other, whatever their areas, it ranks the pixels of a scene but does not guarantee that. The
    distances of all classes are pooled: with ten training pixels per class, a p-value from those
    of one class could not fall below 1/10. Between the :math:`e_i` the step function is
    interpolated linearly, and beyond the largest, which m of them share, it is
    :math:`(1 + m \max e / d) / (n + 1)`: never below the step function, and strictly decreasing, so
    that pixels can be ranked.

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
    left_out_ : ndarray (n,)
        The distances :math:`e_i`, ascending; a class of one training pixel has none.
    nearest_ : ndarray (201,)
        Quantiles of the distance to the nearest training pixel of any class over the training
        scene.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from hsreject import Novelty
    >>> values = np.random.default_rng(0).normal(size=(2, 6, 6))
    >>> values[:, 0, 0] = 30.0  # like nothing else
    >>> features = xr.DataArray(values, dims=("band", "y", "x"))
    >>> training = xr.zeros_like(features[0], dtype="uint8")
    >>> training[:, 3], training[:, 5] = 1, 2
    >>> p_value = Novelty().fit(features, training).p_value(features)
    >>> p_value.dims, bool((p_value[:, 0, 0] < 0.1).all())  # 12 training pixels
    (('category', 'y', 'x'), True)
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
        self.left_out_ = self._left_out(np.repeat(np.arange(len(kept)), list(map(len, kept))))
        nearest = self._of_pixels(
            usable, lambda pixels: self._distances(pixels).min(axis=1)[:, None], n_outputs=1
        )
        self.nearest_ = quantiles(nearest)
        return self

    def _left_out(self, codes: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the distance of each training pixel to the nearest other one of its class."""
        pairs: NDArray[np.float64] = cdist(self.samples_, self.samples_)
        np.fill_diagonal(pairs, np.inf)
        of_class = np.where(codes[:, None] == codes, pairs, np.inf).min(axis=1)
        known = of_class[np.isfinite(of_class)]
        # where every class has a single training pixel, other classes must do
        return np.sort(known if known.size else pairs.min(axis=1))

    def p_value(self, features: xr.DataArray) -> xr.DataArray:
        """Return the p-value of every pixel for each class, small where it does not fit.

        Parameters
        ----------
        features : DataArray (band, y, x)
            Features of this or another scene; lazy when dask-backed.

        Returns
        -------
        DataArray of float32 (category, y, x)
            Named `class_p_value`, in (0, 1], NaN where there is no data.
        """
        data = self._of_pixels(
            features,
            lambda pixels: conformal_p_value(self._distances(pixels), self.left_out_),
            n_outputs=len(self.classes_),
        )
        coords = {schema.CATEGORY: self.classes_}
        found = on_the_grid_of(features, data, dim=schema.CATEGORY, coords=coords)
        return found.rename(CLASS_P_VALUE)

    def rarity(self, features: xr.DataArray) -> xr.DataArray:
        """Return the share of the training scene that lies as far from every training pixel.

        So one pixel in a hundred of the training scene has a rarity of 0.01 at most, its pixels of
        unknown classes included, and about as many of any scene that is like it.

        Parameters
        ----------
        features : DataArray (band, y, x)
            As for :meth:`p_value`.

        Returns
        -------
        DataArray of float32 (y, x)
            Named `rarity`, in [0, 1], NaN where there is no data.
        """
        data = self._of_pixels(
            features, lambda pixels: self.sample_rarity(pixels)[:, None], n_outputs=1
        )
        found = on_the_grid_of(features, data, dim=schema.CATEGORY, coords={})
        return found.isel({schema.CATEGORY: 0}).rename("rarity")

    def sample_rarity(self, samples: NDArray[Any]) -> NDArray[np.float64]:
        """Return the rarity of samples (n, feature)."""
        return 1 - share_below(self._distances(samples).min(axis=1), self.nearest_)

    def _of_pixels(
        self, features: xr.DataArray, function: SampleFunction, *, n_outputs: int
    ) -> Any:
        """Return a function of the features of every pixel, (n_outputs, y, x)."""
        check_is_fitted(self, "samples_")
        usable = _usable(features)
        n_features = usable.sizes[schema.BAND]
        if n_features != self.samples_.shape[1]:
            raise InputError(
                f"The novelty was fitted on {self.samples_.shape[1]} features but is given "
                f"{n_features}. Pass the features of the same transformers."
            )
        return map_pixels(usable, function, n_outputs=n_outputs, dtype=np.float32)

    def _distances(self, samples: NDArray[Any]) -> NDArray[np.float64]:
        """Return the distances (n, class) of samples (n, feature)."""
        # Pair by pair, not through a matrix product, whose rounding depends on the blocks.
        pairs = cdist(samples, self.samples_)
        nearest: NDArray[np.float64] = np.minimum.reduceat(pairs, self.first_, axis=1)
        return nearest


def conformal_p_value(
    distance: NDArray[np.float64], calibrating: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the interpolated conformal p-value of distances, given ascending calibrating ones."""
    n = calibrating.size
    knots, first = np.unique(calibrating, return_index=True)
    inside = np.interp(distance, knots, (1 + n - first) / (n + 1))
    at_end = 1 + n - first[-1]  # those that share the largest distance count together
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = (1 + (at_end - 1) * knots[-1] / distance) / (n + 1)
    return np.where(distance > knots[-1], beyond, inside)


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
    """What ranks of confidences refer to: quantiles of those of one scene.

    With it a pixel is ranked by itself, and so in blocks as in the whole, and on another scene as
    on its own.
    """

    quantiles: tuple[float, ...]

    @classmethod
    def of(cls, confidence: ArrayLike) -> RankReference:
        """Return the reference that a scene is for itself and others; NaN is no data."""
        return cls(tuple(quantiles(confidence).tolist()))

    def rank(self, confidence: ArrayLike) -> NDArray[np.float64]:
        """Return which share of the scene is less sure, in [0, 1]."""
        return share_below(confidence, self.quantiles)


def check_novelty(novelty: object) -> None:
    """Raise unless it says whether and how novelty counts."""
    if not isinstance(novelty, bool | RankReference):
        raise InputError(f"novelty must be true or false (got {novelty!r}).")


def p_value_of_label(evidence: Evidence, label: xr.DataArray) -> NDArray[np.float32]:
    """Return the p-value (y, x) of the class of the label."""
    if evidence.class_p_value is None:
        raise InputError(
            f"novelty needs the variable '{CLASS_P_VALUE}' (category, y, x) beside 'probability'. "
            "Make it with hsreject.Novelty().fit(features, training).p_value(features)."
        )
    found = np.full(label.shape, np.nan, np.float32)
    categories = schema.category_labels(evidence.class_p_value)
    for plane, value in zip(evidence.class_p_value.values, categories, strict=True):
        np.copyto(found, plane, where=label.values == value, casting="same_kind")
    wrong = ~((found > 0) & (found <= 1)) & (label.values != schema.nodata_label(label.dtype))
    if wrong.any():
        raise InputError(
            f"'{CLASS_P_VALUE}' must lie above 0 and up to 1 wherever there is a label (it does "
            f"not in {wrong.sum()} pixels). Make it from the training pixels and the features "
            "that the probabilities come from."
        )
    return found


def with_novelty(
    label: xr.DataArray,
    confidence: xr.DataArray,
    evidence: Evidence,
    reference: RankReference | None,
) -> xr.DataArray:
    """Return 0.65 times the cube root of the rank of the confidence + 0.35 times the p-value.

    The rank (y, x) is that in this scene unless there is a reference.
    """
    if not confidence.notnull().any():
        return confidence
    reference = reference or RankReference.of(confidence)
    rank, p_value = reference.rank(confidence), p_value_of_label(evidence, label)
    joined = (1 - NOVELTY_WEIGHT) * np.cbrt(rank) + NOVELTY_WEIGHT * p_value
    return confidence.copy(data=joined.astype(confidence.dtype))


def known_weight(evidence: Evidence) -> NDArray[np.float32]:
    """Return (1 + p) / 2 (y, x), by which the classes of a pixel are less likely in the joint rule.

    Half hangs on the fit. All p-values count: with the low ones alone (ratio p / 0.07, up to 1) the
    AUROC of classes held out rose by 0.01 instead of 0.07 (Indian Pines, pool, one draw).
    """
    p_value = p_value_of_label(evidence, label_map(evidence.probability).compute())
    return np.asarray((1 + p_value) / 2)
