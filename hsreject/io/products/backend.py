"""The engine for xarray: ``xr.open_dataset(path, engine="hsreject")``.

xarray imports this module whenever it lists its engines, so it imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import xarray as xr
from xarray.backends import BackendEntrypoint


class HsrejectBackend(BackendEntrypoint):
    """Open what :func:`hsreject.open_scene` opens, lazily: a dataset with the variable `cube`.

    Examples
    --------
    >>> import xarray as xr
    >>> from hsreject.io.products.backend import HsrejectBackend
    >>> import numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "scene.npy")
    ...     np.save(path, np.ones((4, 4, 30), dtype="uint16"))
    ...     cube = xr.open_dataarray(path, engine=HsrejectBackend)
    >>> dict(cube.sizes)
    {'band': 30, 'y': 4, 'x': 4}
    """

    description = "Hyperspectral scenes: EMIT, EnMAP, PRISMA and other products, ENVI, GeoTIFF"
    open_dataset_parameters: ClassVar[Any] = (
        "filename_or_obj", "drop_variables", "variable", "band_axis", "masks",
    )  # fmt: skip

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        variable: str | None = None,
        band_axis: int | None = None,
        masks: bool = True,
    ) -> xr.Dataset:
        """Return the scene; the last three options as for :func:`hsreject.open_scene`."""
        from hsreject.io.arrays.stored_pixels import unread  # noqa: PLC0415
        from hsreject.io.remote import as_path  # noqa: PLC0415
        from hsreject.io.scene import open_scene  # noqa: PLC0415

        cube = open_scene(
            filename_or_obj, chunks="auto", variable=variable, band_axis=band_axis, masks=masks
        )
        pixels = unread(cube.data, as_path(filename_or_obj))
        dataset = xr.Dataset({"cube": (cube.dims, pixels, cube.attrs)}, cube.coords)
        return dataset.drop_vars(drop_variables or [], errors="ignore")
