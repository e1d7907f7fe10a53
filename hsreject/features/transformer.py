"""The interface of features: fitted on one scene, applied to any other, chunk by chunk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hsreject import schema
from hsreject.errors import InputError
from hsreject.features.pixels import feature_dtype, map_pixels, on_the_grid_of
from hsreject.threads import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SceneTransformer(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """A step from a cube (band, y, x) to another cube of features on the same grid.

    Bands marked bad (`good_band` False) are left out when fitted and stay left out; a pixel without
    data in any other band is NaN in every feature and is never used. Dask-backed cubes give
    dask-backed features: nothing is computed before it is asked for, except what `fit` learns.

    A subclass sets its options in ``__init__`` the scikit-learn way and writes two methods, which
    see a cube that has only the bands in use:

    - ``_learn_scene(cube)`` sets the learned attributes, whose names end in ``_``;
    - ``_transform_scene(cube)`` returns the features as a DataArray (band, y, x).

    See Also
    --------
    hsreject.SceneClassifier : chains them in front of a classifier.
    hsreject.load_plugins : makes yours known by name.

    Examples
    --------
    A whole transformer: every band minus its darkest value in the scene it was fitted on.

    >>> import numpy as np
    >>> import xarray as xr
    >>> from hsreject import SceneTransformer
    >>> class SubtractDarkest(SceneTransformer):
    ...     halo = 0  # the features of a pixel need none of its neighbours
    ...
    ...     def _learn_scene(self, cube):
    ...         self.darkest_ = cube.min(("y", "x")).values
    ...
    ...     def _transform_scene(self, cube):
    ...         return cube - xr.DataArray(self.darkest_, dims="band")
    >>> scene = xr.DataArray(np.arange(3.0, 11.0).reshape(2, 2, 2), dims=("band", "y", "x"))
    >>> SubtractDarkest().fit(scene).transform(scene).values.max()
    np.float64(3.0)
    """

    n_features_in_: int
    bands_used_: NDArray[np.intp]

    @abstractmethod
    def _learn_scene(self, cube: xr.DataArray) -> None:
        """Set the learned attributes from a cube of good bands."""

    @abstractmethod
    def _transform_scene(self, cube: xr.DataArray) -> xr.DataArray:
        """Return the features of a cube that has the bands in use."""

    @property
    def halo(self) -> int | None:
        """How many pixels around a pixel decide its features; None if its place or all pixels do.

        Mapping a scene in blocks needs this number; the default is None.
        """
        return None

    def fit(self, X: xr.DataArray, y: object = None) -> Self:
        """Learn from a scene.

        Parameters
        ----------
        X : DataArray (band, y, x)
            The scene.
        y : ignored
            Here because scikit-learn's pipelines pass it.
        """
        cube = schema.check_dims(X, schema.CUBE_DIMS, name="cube")
        bands = np.flatnonzero(schema.good_bands(cube))
        if not bands.size:
            raise InputError(
                f"{type(self).__name__} needs at least one good band (all "
                f"{cube.sizes[schema.BAND]} are marked bad). Correct the coordinate "
                "'good_band' of the cube."
            )
        self.n_features_in_ = cube.sizes[schema.BAND]
        self.bands_used_ = bands
        with one_blas_thread():
            self._learn_scene(self._in_use(cube))
        return self

    def transform(self, X: xr.DataArray) -> xr.DataArray:
        """Return the features of a scene.

        Parameters
        ----------
        X : DataArray (band, y, x)
            A scene with the bands of the one that was fitted.

        Returns
        -------
        DataArray (band, y, x)
            The features, NaN where there is no data; lazy when the scene is.
        """
        return self._transform_scene(self.bands_of(X))

    def bands_of(self, X: xr.DataArray) -> xr.DataArray:
        """Return the bands in use of a scene that has the bands of the one that was fitted."""
        check_is_fitted(self, "n_features_in_")
        cube = schema.check_dims(X, schema.CUBE_DIMS, name="cube")
        if cube.sizes[schema.BAND] != self.n_features_in_:
            raise InputError(
                f"{type(self).__name__} was fitted on {self.n_features_in_} bands but the cube has "
                f"{cube.sizes[schema.BAND]}. Select those bands, or match them by wavelength: "
                "SceneClassifier.predict_proba(cube, match_bands='nearest')."
            )
        return self._in_use(cube)

    def fit_transform(self, X: xr.DataArray, y: object = None) -> xr.DataArray:
        """Fit to a scene and return its features."""
        return self.fit(X, y).transform(X)

    def _in_use(self, cube: xr.DataArray) -> xr.DataArray:
        if self.bands_used_.size < self.n_features_in_:
            cube = cube.isel({schema.BAND: self.bands_used_})
        return cube.drop_vars(schema.GOOD_BAND, errors="ignore")


class SampleTransformer(TransformerMixin, SceneTransformer):  # type: ignore[misc]  # same reason
    """A feature of each spectrum by itself: a scene transformer that also takes plain samples.

    Given an array (n_samples, n_features) it is an ordinary scikit-learn transformer, which works
    in pipelines; given a cube it returns a cube. Beside ``_learn_scene(cube)`` a subclass writes
    ``_transform_samples(samples)``, which returns the features (n_samples, n_outputs) of samples
    (n_samples, n_bands_in_use).
    """

    @abstractmethod
    def _transform_samples(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return the features of samples."""

    @property
    def halo(self) -> int:
        """Zero: the neighbours of a pixel do not matter, or only for the fit."""
        return 0

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn from a scene (band, y, x) or from samples (n_samples, n_features)."""
        return super().fit(X if isinstance(X, xr.DataArray) else self._in_a_row(X, reset=True))

    def transform(self, X: Any) -> Any:
        """Return the features of a scene (band, y, x), or of samples (n_samples, n_features)."""
        if isinstance(X, xr.DataArray):
            return super().transform(X)
        check_is_fitted(self, "n_features_in_")
        return super().transform(self._in_a_row(X, reset=False)).values[:, 0].T

    def _in_a_row(self, samples: Any, *, reset: bool) -> xr.DataArray:
        """Return samples as a scene of one row."""
        options = {"dtype": (np.float64, np.float32), "ensure_min_samples": 2 if reset else 1}
        values = validate_data(self, samples, reset=reset, **options)
        return xr.DataArray(values.T[:, np.newaxis], dims=schema.CUBE_DIMS)

    def _names(self) -> NDArray[Any] | None:
        """Return what the features are called; None if they are the bands."""
        return None

    def _transform_scene(self, cube: xr.DataArray) -> xr.DataArray:
        names, dtype = self._names(), feature_dtype(cube.dtype)
        n_outputs = len(cube if names is None else names)
        data = map_pixels(cube, self._transform_samples, n_outputs=n_outputs, dtype=dtype)
        return on_the_grid_of(cube, data, coords=None if names is None else {schema.BAND: names})
