"""What a path leads to: the kind of a file, and for a raster its driver and header."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from hsreject.errors import FileError
from hsreject.io import envi

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_NUMPY = b"\x93NUMPY"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_CLASSIC_NETCDF = (b"CDF\1", b"CDF\2", b"CDF\5")
_PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
_TIFF_SUFFIXES = {".tif", ".tiff", ".gtiff", ".btf", ".tf8"}
_VECTOR_SUFFIXES = {".gpkg", ".shp", ".geojson", ".json", ".fgb", ".gml", ".kml"}


class Kind(Enum):
    """The kinds of files that hsreject opens."""

    RASTER = "raster"
    NUMPY = "numpy"
    MATLAB = "matlab"
    MATLAB_HDF5 = "matlab-hdf5"
    VECTOR = "vector"


@dataclass(frozen=True)
class RasterSource:
    """A raster file, the GDAL driver that reads it, and the header beside it."""

    path: Path
    driver: str
    header: Path | None = None
    fields: dict[str, str] = field(default_factory=dict)  # of an ENVI header
    guesses: tuple[str, ...] = ()  # what was decided without the user saying it


def existing(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file that is there and may be read."""
    found = Path(path)
    if found.is_fifo() or found.is_char_device():  # opening a pipe would wait for ever
        raise FileError(f"{found} is a pipe or a device. Give a file.")
    try:
        str(found.absolute()).encode("utf-8")  # the libraries below take no other names
        with found.open("rb"):
            return found
    except ValueError:
        raise FileError(f"The name {str(found)!a} is not in UTF-8. Rename the file.") from None
    except FileNotFoundError:
        raise FileError(f"{found} does not exist. Check the path.") from None
    except IsADirectoryError:
        raise FileError(f"{found} is a folder. Give the file inside it.") from None
    except OSError as error:
        raise FileError(f"{found} cannot be opened: {error.strerror or error}.") from None


def file_kind(path: Path) -> Kind:
    """Return the kind of an existing file, by its name and its first bytes."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        if _starts_with(path, (_NUMPY,)):
            return Kind.NUMPY
        raise FileError(f"{path} is not a NumPy file: it does not start with '\\x93NUMPY'.")
    if suffix == ".mat":
        # HDF5 files by MATLAB start with 512 bytes of their own.
        new = any(_starts_with(path, (_HDF5,), offset=offset) for offset in (0, 512))
        return Kind.MATLAB_HDF5 if new else Kind.MATLAB
    return Kind.VECTOR if suffix in _VECTOR_SUFFIXES else Kind.RASTER


def _starts_with(path: Path, marks: tuple[bytes, ...], *, offset: int = 0) -> bool:
    with path.open("rb") as stream:
        stream.seek(offset)
        return stream.read(16).startswith(marks)


def raster_source(path: Path) -> RasterSource:
    """Return how to open a raster, after checking what can be checked before GDAL opens it."""
    suffix = path.suffix.lower()
    if suffix == envi.HEADER:
        return _from_header(path)
    if suffix == ".vrt":
        return RasterSource(path, "VRT")
    header = envi.header_of(path)
    # The first pixels of an ENVI file may look like the start of a TIFF: its header knows better.
    if _starts_with(path, _TIFF) and (suffix in _TIFF_SUFFIXES or header is None):
        return _tiff(path, header)
    if header is not None:
        return _pair(path, header, f"The header is {header.name}, found beside {path.name}.")
    target = path.resolve()  # the header may stand beside the file that a link leads to
    if not path.is_symlink() or envi.header_of(target) is None:
        raise _unknown_file(path)
    source = raster_source(target)
    return replace(source, guesses=(f"{path.name} is a link to {target}.", *source.guesses))


def _unknown_file(path: Path) -> FileError:
    for mark, name in _PACKED.items():
        if _starts_with(path, (mark,)):
            return FileError(f"{path} is packed ({name}). Unpack it and open what was in it.")
    if _starts_with(path, (_HDF5, *_CLASSIC_NETCDF)):
        return FileError(
            f"{path} is an HDF5 or NetCDF file. Open one that hsreject wrote with open_dataset, "
            "and convert others to GeoTIFF or ENVI, for example with gdal_translate."
        )
    looked = " and ".join(dict.fromkeys((f"{path.name}.hdr", f"{path.stem}.hdr")))
    return FileError(
        f"{path} is neither a GeoTIFF nor a .mat or .npy file, and has no header beside it: "
        f"looked for {looked}."
    )


def _tiff(path: Path, header: Path | None) -> RasterSource:
    """Return a TIFF as it is, or with the header that ENVI wrote beside it."""
    text = "" if header is None else envi.read_text(header)
    if header is None or not text.startswith("ENVI"):
        return RasterSource(path, "GTiff")
    fields = envi.parse_fields(text, path=header)
    if not _describes_tiff(fields):
        return RasterSource(path, "GTiff")
    guess = f"Bands are described by {header.name}, found beside {path.name}."
    return RasterSource(path, "GTiff", header, fields, (guess,))


def _describes_tiff(fields: Mapping[str, str]) -> bool:
    return "tif" in fields.get("file type", "").lower()


def _from_header(header: Path) -> RasterSource:
    text = envi.read_text(header)
    length = None
    if text.startswith("ENVI"):
        fields = envi.parse_fields(text, path=header)
        if _describes_tiff(fields):
            return _tiff(envi.tiff_of(header, _TIFF_SUFFIXES), header)
        length = envi.data_length(fields, path=header)
    data = envi.data_of(header, length=length)
    used = envi.header_of(data)
    if used is not None and used != header:
        raise FileError(
            f"{data} has two headers, {header.name} and {used.name}, and the second comes first. "
            f"Remove one of them."
        )
    return _pair(data, header, f"The data file is {data.name}, found beside {header.name}.")


def _pair(data: Path, header: Path, guess: str) -> RasterSource:
    """Return the source of a data file and its header, which must fit each other."""
    text = envi.read_text(header)
    if not text.startswith("ENVI") and envi.is_esri_header(text):
        envi.check_esri_length(text, header=header, data=data)
        return RasterSource(data, "EHdr", header, guesses=(guess,))
    fields = envi.parse_fields(text, path=header)
    noted = envi.check_length(fields, header=header, data=data)
    return RasterSource(data, "ENVI", header, fields, (guess, *noted))
