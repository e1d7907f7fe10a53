"""Files made by other software, and ENVI files made byte by byte, for the readers to read."""

from pathlib import Path

import h5py
import numpy as np
import rasterio
import spectral.io.envi
from rasterio.transform import Affine

import hsreject as hr

ENVI_TYPES = {
    "uint8": 1, "int16": 2, "int32": 3, "float32": 4, "float64": 5, "complex64": 6, "complex128": 9,
    "uint16": 12, "uint32": 13, "int64": 14, "uint64": 15,
}  # fmt: skip
UTM = Affine(30.0, 0.0, 364095.0, 0.0, -30.0, 5809965.0)


def random_cube(dtype: str = "uint16", shape: tuple[int, int, int] = (5, 4, 3), seed: int = 0):
    """Return values (band, y, x) that are all different from 0 and fit every type."""
    return np.random.default_rng(seed).integers(1, 120, shape).astype(dtype)


def write_envi(
    folder: Path,
    cube: np.ndarray,
    *,
    interleave: str = "bsq",
    byte_order: int = 0,
    data_name: str = "scene.img",
    header_name: str = "scene.hdr",
    encoding: str = "utf-8",
    fields: dict[str, object] | None = None,
    prefix: bytes = b"",
) -> Path:
    """Write an ENVI file pair by hand; a field that is None is left out of the header."""
    axes = {"bsq": (0, 1, 2), "bil": (1, 0, 2), "bip": (1, 2, 0)}[interleave]
    ordered = cube.transpose(axes).astype(cube.dtype.newbyteorder("><"[byte_order == 0]))
    (folder / data_name).write_bytes(prefix + ordered.tobytes())
    header = {
        "samples": cube.shape[2],
        "lines": cube.shape[1],
        "bands": cube.shape[0],
        "header offset": len(prefix),
        "file type": "ENVI Standard",
        "data type": ENVI_TYPES[cube.dtype.name],
        "interleave": interleave,
        "byte order": byte_order,
    } | (fields or {})
    lines = ["ENVI"] + [f"{key} = {value}" for key, value in header.items() if value is not None]
    (folder / header_name).write_bytes("\n".join([*lines, ""]).encode(encoding))
    return folder / data_name


def write_with_spectral(
    folder: Path, cube: np.ndarray, *, interleave: str, byte_order: int, ext: str = ".img"
) -> Path:
    """Write an ENVI file pair with the package `spectral`; return its header."""
    header = folder / "scene.hdr"
    spectral.io.envi.save_image(
        str(header),
        cube.transpose(1, 2, 0),
        dtype=cube.dtype,
        interleave=interleave,
        byteorder=byte_order,
        ext=ext,
        metadata={"wavelength": [str(400.5 + band) for band in range(cube.shape[0])]},
    )
    return header


def write_with_gdal(path: Path, cube: np.ndarray, *, driver: str = "GTiff", **profile) -> Path:
    """Write a georeferenced raster with GDAL."""
    size = dict(zip(("count", "height", "width"), cube.shape, strict=True))
    settings = {"crs": "EPSG:32633", "transform": UTM, "dtype": cube.dtype} | size | profile
    with rasterio.open(path, "w", driver=driver, **settings) as dataset:
        dataset.write(cube)
    return path


def save_hdf5(path: Path, **arrays: np.ndarray) -> Path:
    """Write arrays as new versions of MATLAB do: HDF5 behind 512 bytes, axes in reverse."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file[name] = array.T
    return path


def both_ways(path: Path) -> list:
    """Return a scene opened at once and lazily."""
    return [hr.open_scene(path, chunks=chunks) for chunks in (None, "auto")]


def guesses(cube) -> str:
    """Return what a reader guessed, as one text."""
    return " ".join(cube.attrs.get("guesses", []))


def envi_scene(folder: Path, **fields):
    """Return a small scene whose header has these fields, underscores for spaces."""
    named = {name.replace("_", " "): value for name, value in fields.items()}
    return hr.open_scene(write_envi(folder, random_cube(shape=(3, 4, 5)), fields=named))


def write_virtual(path: Path, name: str, *, relative: int = 1, more: str = "") -> Path:
    """Write a virtual raster of one band over another file."""
    path.write_text(
        '<VRTDataset rasterXSize="5" rasterYSize="4"><VRTRasterBand dataType="Byte" band="1">'
        f'<SimpleSource><SourceFilename relativeToVRT="{relative}">{name}</SourceFilename>'
        f"<SourceBand>1</SourceBand></SimpleSource>{more}</VRTRasterBand></VRTDataset>"
    )
    return path
