"""Novelty: how well a pixel fits the training samples, and how that lowers a confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hsreject import schema
from hsreject.errors import InputError
from hsreject.features.pixels import labelled_samples, map_pixels, on_the_grid_of
from hsreject.registry import check_count
from hsreject.rejection.evidence import Evidence
from hsreject.schema import CATEGORY

if TYPE_CHECKING:
    from numpy.typing import NDArray


DEFAULT_EXPONENT = 1 / 3
"""Separates unknown classes of Indian Pines nearly as well as the p-value alone does.

The plain product (exponent 1) separates them a little better, but costs a point of accuracy at 10 %
rejected when all classes are known; the cube root costs a third of that
(`examples/unknown_classes.py`).
"""


class Novelty(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Conformal p-value of the distance to the nearest training samples in feature space.

    Class probabilities say which of the known classes a pixel resembles most, not whether it
    resembles any: pixels of a class without training samples are as probable as others. Their
    features, however, lie far from all training samples.

    Let :math:`d` be the distance of a pixel to its `n_neighbors`-th nearest training sample, and
    :math:`e_1, ..., e_n` the same for each training sample with itself left out. The conformal
    p-value of the pixel is

    .. math:: p(d) = (1 + \#\{i : e_i \ge d\}) / (n + 1)

    If the pixel is drawn as the training samples were, p is at most :math:`\alpha` with a
    probability of at most about :math:`\alpha`, whatever the distribution of the features (Vovk,
    Gammerman and Shafer 2005; Laxhammar and Falkman 2010 for nearest neighbours). Where each class
    has as many training samples as the others, whatever its area, p ranks the pixels of a scene but
    does not guarantee that. Small values mean: like no training sample. Between the :math:`e_i` the
    step function is interpolated linearly, and beyond the largest, which m training samples share,
    it is :math:`(1 + m \max e / d) / (n + 1)`: never below the step function, and strictly
    decreasing, so that pixels can be ranked.

    The samples of all classes are pooled: with ten samples per class, a p-value for each class
    could not fall below 1/11.

    Parameters
    ----------
    n_neighbors : int
        Which nearest training sample counts; 1 separated unknown classes best on Indian Pines.

    Attributes
    ----------
    samples_ : ndarray (n_samples, n_features)
        The training samples.
    distances_ : ndarray (n_samples,)
        The distances :math:`e_i`, ascending.

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(size=(2, 6, 6))
    >>> values[:, 0, 0] = 30.0  # like nothing else
    >>> features = xr.DataArray(values, dims=("band", "y", "x"))
    >>> training = xr.zeros_like(features[0], dtype="uint8")
    >>> training[:, 3], training[:, 5] = 1, 2
    >>> p_value = Novelty().fit(features, training).p_value(features)
    >>> p_value.dims, bool(p_value[0, 0] == p_value.min()), bool(p_value.max() <= 1)
    (('y', 'x'), True, True)
    """

    def __init__(self, *, n_neighbors: int = 1) -> None:
        self.n_neighbors = n_neighbors

    def fit(self, features: xr.DataArray, labels: xr.DataArray) -> Self:
        """Keep the training samples and the distances between them.

        Parameters
        ----------
        features : DataArray (band, y, x)
            The features that the classifier sees.
        labels : DataArray (y, x) of integers
            The training pixels, 0 elsewhere.
        """
        features = _usable(features)
        labels = schema.check_labels(labels, name="training labels")
        schema.check_same_grid(features, labels, names=("features", "training labels"))
        samples, _ = labelled_samples(features, labels)
        return self.fit_samples(samples)

    def fit_samples(self, samples: NDArray[np.floating]) -> Self:
        """Keep training samples (n_samples, n_features), all finite, and the distances between."""
        check_count("n_neighbors", self.n_neighbors, least=1)
        samples = _sample_rows(samples)
        if len(samples) <= self.n_neighbors:
            raise InputError(
                f"n_neighbors must be below the number of training samples "
                f"(got {self.n_neighbors} and {len(samples)} samples)."
            )
        usable = np.isfinite(samples)
        if not usable.all():
            raise InputError(
                f"Training samples must be finite (found {(~usable).sum()} NaN or infinite of "
                f"{usable.size} values, in {(~usable).any(axis=0).sum()} of {samples.shape[1]} "
                "features). Leave out samples without data, and features that have none."
            )
        self.samples_ = samples
        # The nearest sample of each is itself, at distance 0.
        self.distances_ = np.sort(neighbor_distance(samples, samples, self.n_neighbors + 1))
        return self

    def p_value(self, features: xr.DataArray) -> xr.DataArray:
        """Return the p-value of every pixel, small where it is like no training sample.

        Parameters
        ----------
        features : DataArray (band, y, x)
            Features of this or another scene; lazy when dask-backed.

        Returns
        -------
        DataArray of float32 (y, x)
            Named `novelty_p_value`, in (0, 1], NaN where there is no data.
        """
        check_is_fitted(self, "samples_")
        features = _usable(features)
        self._check_features(features.sizes[schema.BAND])
        data = map_pixels(
            features,
            lambda samples: self.sample_p_value(samples)[:, None],
            n_outputs=1,
            dtype=np.float32,
        )
        stacked = on_the_grid_of(features, data, dim=schema.BAND, coords={})
        return stacked.isel({schema.BAND: 0}, drop=True).rename("novelty_p_value")

    def sample_p_value(self, samples: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the p-value of samples (n_samples, n_features)."""
        check_is_fitted(self, "samples_")
        samples = _sample_rows(samples)
        self._check_features(samples.shape[1])
        distance = neighbor_distance(samples, self.samples_, self.n_neighbors)
        return conformal_p_value(distance, self.distances_)

    def _check_features(self, n_features: int) -> None:
        if n_features != self.samples_.shape[1]:
            raise InputError(
                f"The novelty was fitted on {self.samples_.shape[1]} features but is given "
                f"{n_features}. Pass the features of the same transformers."
            )


def _sample_rows(samples: NDArray[np.floating]) -> NDArray[np.float64]:
    rows = np.asarray(samples, dtype=np.float64)
    if rows.ndim != 2 or not rows.shape[1]:
        raise InputError(
            f"samples must be an array (n_samples, n_features) (got the shape {rows.shape}). "
            "Write a single feature as samples[:, None], a single sample as samples[None, :]."
        )
    return rows


def _usable(features: xr.DataArray) -> xr.DataArray:
    features = schema.check_dims(features, schema.CUBE_DIMS, name="features")
    return features.isel({schema.BAND: np.flatnonzero(schema.good_bands(features))})


def neighbor_distance(
    queries: NDArray[np.floating], samples: NDArray[np.floating], rank: int
) -> NDArray[np.float64]:
    """Return the Euclidean distance of each query (n, d) to its `rank`-th nearest sample (m, d)."""
    # Pair by pair, not through a matrix product, whose rounding depends on the blocks.
    distances: NDArray[Any] = cdist(queries, samples)
    if rank == 1:
        nearest: NDArray[np.float64] = distances.min(axis=1)
        return nearest
    ranked: NDArray[np.float64] = np.partition(distances, rank - 1, axis=1)[:, rank - 1]
    return ranked


def conformal_p_value(
    distance: NDArray[np.float64], calibrating: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the interpolated conformal p-value of distances, given ascending calibrating ones."""
    n = calibrating.size
    knots, first = np.unique(calibrating, return_index=True)
    inside = np.interp(distance, knots, (1 + n - first) / (n + 1))
    at_end = 1 + n - first[-1]  # the samples that share the largest distance count together
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = (1 + (at_end - 1) * knots[-1] / distance) / (n + 1)
    return np.where(distance > knots[-1], beyond, inside)


def known_weight(evidence: Evidence, *, exponent: float) -> xr.DataArray | None:
    """Return how far each pixel counts as known, p-value ** exponent, or None without p-values."""
    p_value = evidence.novelty_p_value
    if p_value is None:
        return None
    if p_value.dtype.kind not in "fiub":
        raise InputError(f"novelty_p_value must hold real numbers (got {p_value.dtype}).")
    has_data = evidence.probability.notnull().all(CATEGORY)
    missing = p_value.isnull() & has_data
    outside = ((p_value < 0) | (p_value > 1)) & has_data
    if bool((missing | outside).any()):
        raise InputError(
            f"novelty_p_value must lie in [0, 1] wherever there are probabilities "
            f"({int(missing.sum())} values are missing, {int(outside.sum())} lie outside)."
        )
    return p_value**exponent


def lowered_by_novelty(
    confidence: xr.DataArray, evidence: Evidence, *, exponent: float, lowest: float
) -> xr.DataArray:
    """Return a confidence (y, x), lowered where the pixel looks like no training sample.

    That is ``b + w (c - b)`` with the known weight w and the lowest possible confidence b: the
    product w c where b is 0, and still a lowering where confidences c are negative.
    """
    weight = known_weight(evidence, exponent=exponent)
    if weight is None:
        return confidence
    lowered = lowest + weight.astype(confidence.dtype) * (confidence - lowest)
    return lowered.rename("confidence").assign_attrs(confidence.attrs)
