"""Rasters, which GDAL reads: a :class:`RasterInfo` says what a file holds, then come its pixels."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import rasterio
import rasterio.shutil
import rioxarray
from affine import Affine
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.io import MemoryFile

from hsreject.errors import FileError
from hsreject.files import starts_with
from hsreject.io import remote
from hsreject.io.arrays.hdf5 import HDF5, check_hdf5
from hsreject.io.arrays.stored_pixels import AXES, Layer, Pixels, read_or_lazy, usable_nodata
from hsreject.io.embeddings import (
    ALPHA_EARTH,
    alpha_earth_values,
    check_scaled,
    is_alpha_earth,
)
from hsreject.io.grid import PixelGrid, grid_of_file, quiet_without_place
from hsreject.io.rasters import envi
from hsreject.io.remote import RemotePath, gdal_name
from hsreject.io.stored_scene import StoredScene
from hsreject.io.wavelengths import band_info

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

_MOST_BANDS = 10_000  # rasterio reads them in quadratic time; an infrared sounder has 8,461
_SCALE_FACTOR = "reflectance scale factor"
_CACHE = 128  # MB of unpacked blocks that GDAL keeps
_DRIVERS = {
    "GTiff": (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    "HFA": (b"EHFA_HEADER_TAG",),
    "JP2OpenJPEG": (b"\0\0\0\x0cjP  ", b"\xffO\xffQ"),
}
"""Formats that are known by their first bytes."""
_TIFF_SUFFIXES = {".tif", ".tiff", ".gtiff", ".btf", ".tf8"}
_PLAIN = (
    *(mark for marks in _DRIVERS.values() for mark in marks),
    HDF5,
    b"\x89PNG",
    b"\xff\xd8\xff",
)
# What leads GDAL to other files or servers, wherever it stands in the first bytes of a file.
_LEADS = re.compile(
    rb"<(?:VRT|GDALTile|GDAL_W|OGR|WCS_GDAL|WMS_|WMT_MS|TileMapService|MRF_META)|"
    rb"gdal_streamed_alg|stac_version|DatasetHeader|PDS_VERSION_ID|IsisCube|OziExplorer",
    re.IGNORECASE,
)
_START = 2**16  # bytes: more than GDAL looks at
_SIDES = (".msk", ".MSK", ".ovr", ".OVR")  # masks and overviews beside a raster
_TRUSTED: ContextVar[bool] = ContextVar("trusted virtual rasters", default=False)


# Which files belong together.


class _Source(NamedTuple):
    """A raster file, the GDAL driver that reads it, and the ENVI header that describes it."""

    path: Path
    driver: str
    header: Path | None = None
    fields: Mapping[str, str] = MappingProxyType({})


def _source(path: Path) -> _Source:
    suffix = path.suffix.lower()
    if suffix == ".vrt":
        return _Source(path, "VRT")
    if suffix == envi.HEADER:
        fields = envi.read_fields(path)
        if _describes_tiff(fields):
            return _Source(envi.data_of(path, _TIFF_SUFFIXES), "GTiff", path, fields)
        return _Source(envi.data_of(path), "ENVI", path, fields)
    header = envi.header_of(path)
    # The first pixels of an ENVI file may look like the start of a TIFF: its header knows better.
    if header is not None and suffix not in _TIFF_SUFFIXES and envi.belongs(path, header):
        return _Source(path, "ENVI", header, envi.read_fields(header))
    driver = next((name for name, marks in _DRIVERS.items() if starts_with(path, *marks)), None)
    if driver == "GTiff" and header is not None and starts_with(header, b"ENVI"):
        fields = envi.read_fields(header)
        if _describes_tiff(fields):
            return _Source(path, driver, header, fields)
    if driver is not None:
        return _Source(path, driver)
    names = " and ".join(dict.fromkeys((f"{path.name}.hdr", f"{path.stem}.hdr")))
    reason = f"has no header beside it: looked for {names}"
    if header is not None:
        reason = f"does not hold the pixels that {header.name} beside it describes"
    remedy = "Convert it to GeoTIFF, for example with gdal_translate; unpack it if it is packed."
    if starts_with(path, HDF5, b"CDF"):
        remedy = "NetCDF and HDF5 files are opened with open_scene or open_dataset."
    raise FileError(
        f"{path} is not a raster that hsreject reads (GeoTIFF, ERDAS Imagine, JPEG 2000, ENVI), "
        f"and {reason}. {remedy}"
    )


def _describes_tiff(fields: Mapping[str, str]) -> bool:
    return "tif" in fields.get("file type", "").lower()


# Virtual rasters, which name other files: an untrusted one could name any.


@contextmanager
def trusting_vrt(trust: bool) -> Iterator[None]:  # noqa: FBT001
    """Let virtual rasters name files outside of their folder, and URLs, where a user says so."""
    before = _TRUSTED.set(trust or _TRUSTED.get())
    try:
        yield
    finally:
        _TRUSTED.reset(before)


def _check_trust(path: Path) -> None:
    """Raise if a virtual raster that is not trusted names more than plain files in its folder.

    GDAL would open it, whatever and wherever it is.
    """
    root = ET.fromstring(path.read_bytes())  # noqa: S314  read, never expanded
    # GDAL takes attributes for elements, names in any case, and passes over namespaces
    entries = [
        (name.rpartition("}")[2].lower(), (text or "").strip(), element.attrib)
        for element in root.iter()
        for name, text in ((element.tag, element.text), *element.attrib.items())
    ]
    odd = []
    for entry, text, attributes in entries:
        if entry == "subclass" and text not in {"VRTSourcedRasterBand", "VRTRawRasterBand"}:
            odd.append(f"is computed ({text})")
        if entry == "key" and text.upper() == "OVERVIEW_FILE":
            odd.append("names a file of overviews")
        if entry == "sourcefilename":
            stated = [v for name, v in attributes.items() if name.lower() == "relativetovrt"]
            if not _is_own(path, text, relative=stated == ["1"]):
                odd.append(f"names {text!r}")
    if odd:
        raise FileError(
            f"{path} {odd[0]}: a virtual raster may read plain rasters in its own folder only, "
            "because an untrusted file could read local files. If you know where it comes "
            "from, copy it into a plain raster (gdal_translate), or trust it: --trust-vrt of "
            "'hsreject info' and 'map', trust_vrt=True of open_scene."
        )


def _is_own(path: Path, name: str, *, relative: bool) -> bool:
    """Tell whether a name in a virtual raster is that of a plain raster in its folder."""
    file, absolute = path.parent / name, Path(name).is_absolute()
    if re.match(r"[<{]|\w\w+:|/vsi", name) or ".." in Path(name).parts:
        return False
    if isinstance(path, RemotePath):
        inside = not absolute
    else:
        inside = path.parent.resolve() in file.resolve().parents
    # a relative name that is not relative to the virtual raster is so to where one works
    if not (inside and (relative or absolute) and file.is_file()):
        return False
    return _is_plain(file)


def _is_plain(file: Path) -> bool:
    """Tell whether GDAL, which goes by the content of a file, finds nothing but pixels in it.

    Formats that lead to other files are looked for first: a mark or a header is no proof.
    """
    with file.open("rb") as stream:
        if _LEADS.search(stream.read(_START)):
            return False
    if starts_with(file, HDF5):
        check_hdf5(file)
    elif not (starts_with(file, *_PLAIN) or envi.is_exact(file)):
        return False
    _check_sides(file)
    return True


def _check_sides(file: Path) -> None:
    """Raise if a mask or the overviews beside a raster are more than plain rasters."""
    if isinstance(file, RemotePath):  # which leads to servers at most
        return
    for side in (file.with_name(file.name + ending) for ending in _SIDES):
        if side.is_file() and not _is_plain(side):
            raise FileError(
                f"{side} is not a plain raster, but GDAL would follow it as the mask or the "
                f"overviews of {file.name}. Remove it, or copy it into a plain raster."
            )


# What a file says before its pixels are read.


@dataclass(frozen=True)
class RasterInfo:
    """What a raster file says before any pixel is read; others decide what follows from it."""

    path: Path
    name: str  # what GDAL opens: the path, or the text of a virtual raster over it
    driver: str
    layout: str  # how bands follow each other: "band", "line", "pixel"; of ENVI "bsq", "bil", "bip"
    dtype: np.dtype[Any]  # of the pixels in the file
    grid: PixelGrid
    # of each band: true value = value in the file * scale + offset
    nodata_values: tuple[float | None, ...]  # only values that pixels of this type can have
    scales: tuple[float, ...]
    offsets: tuple[float, ...]
    names: tuple[str, ...]  # descriptions, or nothing
    tags: tuple[dict[str, str], ...]
    alpha: tuple[bool, ...]  # whether it is an alpha channel, not light
    header: Mapping[str, str]  # fields of the ENVI header beside it
    fields: Mapping[str, str]  # the same, or what the tags of the file have of them
    described_in: str  # the file that says what the bands are, for messages
    notes: tuple[str, ...]  # what was decided without the file saying it, or cannot be followed
    grain: tuple[int, int]  # rows and columns that are stored together
    has_mask: bool  # the file holds a mask of pixels with data, or one per band
    length: float  # bytes of the files that hold the pixels; infinite where nobody knows
    online: bool  # whether its pixels may come from a server

    @property
    def n_bands(self) -> int:
        """Number of bands."""
        return len(self.names)

    @property
    def nodata(self) -> float | None:
        """The nodata value of the first band that has one."""
        return next((value for value in self.nodata_values if value is not None), None)


def raster_info(path: Path, *, header: Path | None = None) -> RasterInfo:
    """Return what GDAL says about a raster file, without reading pixels.

    What can be checked before GDAL opens it is checked: its header, and the files it names. A TIFF
    may have a `header` of ENVI that does not say so.
    """
    tiff = None if header is None else _Source(path, "GTiff", header, envi.read_fields(header))
    source = tiff or _source(path)
    if not _TRUSTED.get():
        if source.driver == "VRT":
            _check_trust(path)
        _check_sides(source.path)
    notes = []
    if source.header is not None:
        notes.append(f"{source.path.name} is described by {source.header.name}, found beside it.")
        if source.driver == "ENVI":
            notes += envi.check_length(source.fields, header=source.header, data=source.path)
    name = gdal_name(source.path)
    try:
        return _info(source, name, source.driver, notes)
    except UnicodeDecodeError:
        # rasterio expects UTF-8 everywhere; Latin-1 headers are common.
        virtual = virtual_raster(name, source.driver, online=_is_online(source))
        return _info(source, virtual, "VRT", notes)


def _is_online(source: _Source) -> bool:
    """Tell whether the pixels of a file may come from a server: only where a user says so."""
    return isinstance(source.path, RemotePath) or (source.driver == "VRT" and _TRUSTED.get())


def _info(source: _Source, name: str, driver: str, notes: list[str]) -> RasterInfo:
    path, described_in = source.path, str(source.header or source.path)
    online = _is_online(source)
    with gdal(online=online), rasterio.open(name, driver=driver) as dataset:
        _check_bands(dataset, path)
        if driver == "ENVI":
            envi.check_same(source.fields, dataset.tags(ns="ENVI"), path=described_in)
        dtype, grid = np.dtype(dataset.dtypes[0]), grid_of_file(dataset, path)
        layout = source.fields.get("interleave") or "pixel"
        if driver not in {"ENVI", "JP2OpenJPEG"}:  # which GDAL may look for for ever
            layout = dataset.profile.get("interleave", "band")
        plain = ({MaskFlags.all_valid}, {MaskFlags.nodata})
        tags = dataset.tags(ns="ENVI"), dataset.tags()
        return RasterInfo(
            path=path,
            name=name,
            driver=driver,
            layout=str(layout).lower(),
            dtype=dtype,
            grid=grid,
            nodata_values=tuple(usable_nodata(value, dtype) for value in dataset.nodatavals),
            scales=dataset.scales,
            offsets=dataset.offsets,
            names=tuple(name or "" for name in dataset.descriptions),
            tags=tuple(dataset.tags(n) | dataset.tags(n, ns="IMAGERY") for n in dataset.indexes),
            alpha=tuple(color is ColorInterp.alpha for color in dataset.colorinterp),
            header=source.fields,
            fields=source.fields or envi.fields_from_tags(*tags, dataset.count),
            described_in=described_in,
            notes=(*notes, *_notes(dataset, source, grid)),
            grain=dataset.block_shapes[0],
            has_mask=any(set(flags) not in plain for flags in dataset.mask_flag_enums),
            length=np.inf if isinstance(path, RemotePath) else _length(dataset),
            online=online,
        )


def _length(dataset: Any) -> float:
    """Return how many bytes the files of a raster have, with those that it names."""
    files = [Path(file) for file in dataset.files]
    local = all(file.is_file() for file in files)
    return sum(file.stat().st_size for file in files) if local else np.inf


def _check_bands(dataset: Any, path: Path) -> None:
    """Raise if the bands of a file are not those of one image of real numbers."""
    types = sorted(set(dataset.dtypes))
    if dataset.subdatasets:
        raise FileError(
            f"{path} holds {len(dataset.subdatasets)} images, not one. "
            "Export the one you want as a file of its own."
        )
    if not 1 <= dataset.count <= _MOST_BANDS:
        raise FileError(
            f"{path} claims {dataset.count} bands; hsreject opens 1 to {_MOST_BANDS}. "
            "If it is damaged, copy it again; else extract the bands you need."
        )
    if len(types) > 1 or "complex" in types[0]:
        raise FileError(
            f"{path} holds {' and '.join(types)}; all bands must be of one type of real numbers. "
            "Convert them, for example with gdal_translate -ot Float32."
        )


def _notes(dataset: Any, source: _Source, grid: PixelGrid) -> Iterator[str]:
    """Yield a sentence about each thing that a raster says and that cannot simply be followed."""
    header, crs, transform = source.fields, grid.crs, grid.transform
    unplaced, n_points = transform == Affine.identity(), len(dataset.gcps[0])
    if unplaced and n_points:
        yield (
            f"The file lies on the map by {n_points} ground control points only, which are not "
            "used: warp it first, for example with gdalwarp."
        )
    elif unplaced and header.get("map info"):
        yield "The map info of the header is not understood: no place on a map."
    if crs is not None and crs.is_geographic and max(abs(transform.c) / 4, abs(transform.f)) > 180:
        yield "The coordinates are not degrees, as the reference system says: correct one of them."
    if crs is None and header.get("coordinate system string"):
        yield "The coordinate system string of the header is not understood: not used."
    for band, color in enumerate(dataset.colorinterp, start=1):
        if color is ColorInterp.alpha:
            yield f"Band {band} is an alpha channel: no data where it is 0, and no band of light."
    several_bytes = np.dtype(dataset.dtypes[0]).itemsize > 1
    if source.driver == "ENVI" and several_bytes and "byte order" not in header:
        yield "The header does not tell the byte order: read as little endian (0)."


def virtual_raster(name: str, driver: str, *, online: bool) -> str:
    """Return GDAL's own description of a file as a virtual raster, in clean UTF-8."""
    with gdal(online=online), MemoryFile(ext=".vrt") as target:
        with rasterio.open(name, driver=driver) as opened:
            rasterio.shutil.copy(opened, target.name, driver="VRT")
        lines = target.read().splitlines(keepends=True)
    return "".join(envi.decoded(line) for line in lines)


# Pixels.


def raster_layer(info: RasterInfo, *, masked: bool = False) -> Layer:
    """Return the pixels of a raster as they are or, if `masked`, with NaN where GDAL says so.

    8- and 16-bit integers with a mask become float32, wider ones float64, which hold them.
    """
    if not masked and _is_raw(info):
        return _raw_layer(info)
    with gdal(online=info.online):
        opened: Any = rioxarray.open_rasterio(
            info.name,
            masked=masked,
            cache=False,
            parse_coordinates=False,
            decode_times=False,
            # every thread has its own file handle, except for files without a place: rasterio
            # would warn whenever one of them is opened
            lock=None if info.grid.transform == Affine.identity() else False,
            driver=info.driver,
        )
    row_of_blocks = info.n_bands * info.grain[0] * info.grid.width * info.dtype.itemsize
    return Layer(
        path=info.path,
        name="",
        axes=AXES,
        stored_shape=opened.shape,
        dtype=opened.dtype,
        format=f"{info.driver} {info.layout}",
        read_part=partial(_read_opened, opened.variable, info.online),
        stored_chunks=(info.n_bands if info.layout in {"pixel", "bip"} else 1, *info.grain),
        length=info.length,
        cached=row_of_blocks <= _CACHE * 2**20,
    )


def _read_opened(variable: xr.Variable, online: bool, key: tuple[slice, ...]) -> NDArray[Any]:  # noqa: FBT001
    with gdal(online=online):  # in whatever process this is
        return np.asarray(variable[key])


def _is_raw(info: RasterInfo) -> bool:
    """Tell whether a file is spectra and nothing else: GDAL takes 30 times as long to read them."""
    plain = info.driver == "ENVI" and info.layout == "bip" and not info.has_mask
    packed = info.header.get("file compression", "0") != "0"
    return plain and not packed and not isinstance(info.path, RemotePath)


def _raw_layer(info: RasterInfo) -> Layer:
    """Return the spectra of an ENVI file, as its header places them."""
    shape = (info.grid.height, info.grid.width, info.n_bands)
    stored = info.dtype.newbyteorder(">" if info.header.get("byte order") == "1" else "<")
    offset = int(info.header.get("header offset", "0"))
    read = partial(_read_raw, info.path, stored, offset, shape)
    return Layer(info.path, "", "yxb", shape, info.dtype, "ENVI bip", read, length=info.length)


def _read_raw(
    path: Path, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...], key: tuple[slice, ...]
) -> NDArray[Any]:
    return np.array(np.memmap(path, dtype, "r", offset, shape)[key])


def raster_pixels(
    info: RasterInfo,
    *,
    nodata: float | None = None,
    gain: NDArray[np.float64] | float = 1.0,
    offset: NDArray[np.float64] | float = 0.0,
) -> Pixels:
    """Return the pixels of a raster; `nodata` is a value that GDAL does not know of."""
    # GDAL overlooks nodata beside a mask in the file, in 64-bit integers, and where a text such as
    # -3.4028235e+38 lies a little outside of what floats hold: it is compared here, in their type
    fill = (nodata,) * info.n_bands if info.nodata is None else info.nodata_values
    layer = raster_layer(info, masked=info.has_mask)
    return Pixels.of(layer, gain=gain, offset=offset, fill=fill)


def read_pixels(info: RasterInfo, *, chunks: Any = None) -> Any:
    """Return the pixels (band, y, x): float with NaN where there is no data, else as in the file.

    `chunks` is anything dask takes for (band, y, x): then no pixel is read yet.
    """
    return read_or_lazy(raster_pixels(info), chunks)


def read_raster_scene(info: RasterInfo, *, usual_nodata: float | None = None) -> StoredScene:
    """Return the scene in a file that GDAL opens: its values scaled, NaN where it has no data.

    Where a file has band gains and a `reflectance scale factor`, both say the same: only the factor
    counts, so that nothing is scaled twice.
    """
    bands, notes, where = band_info(info), [*info.notes], info.described_in
    gain, offset = np.array(info.scales, dtype=float), np.array(info.offsets, dtype=float)
    if np.all(gain == 1) and not offset.any():
        # GDAL reads the header of an ENVI file, not the one beside a TIFF
        gains, offsets = (
            envi.band_numbers(info.header, name, n_bands=info.n_bands, where=where)
            for name in ("data gain values", "data offset values")
        )
        gain, offset = gain if gains is None else gains, offset if offsets is None else offsets
    if text := info.fields.get(_SCALE_FACTOR):
        factor = envi.number(text, name=_SCALE_FACTOR, where=where)
        if not (np.isfinite(factor) and factor > 0):
            raise FileError(f"{where}: '{_SCALE_FACTOR} = {text[:40]}' must be a number above 0.")
        if np.any(gain != 1) or offset.any():
            both = f"The file has band gains or offsets and a {_SCALE_FACTOR} ({factor:g})"
            notes.append(f"{both}: only the factor was applied.")
        gain, offset = np.full(info.n_bands, 1 / factor), np.zeros(info.n_bands)
    nodata, stated = info.nodata, info.fields.get("data ignore value")
    if nodata is None and stated is not None:
        value = envi.number(stated, name="data ignore value", where=where)
        nodata = usable_nodata(value, info.dtype)
        if nodata is None:
            notes.append(f"The data ignore value {stated} cannot occur in {info.dtype} pixels.")
    elif nodata is None:
        nodata = usable_nodata(usual_nodata, info.dtype)
    pixels, product = raster_pixels(info, nodata=nodata, gain=gain, offset=offset), ""
    if is_alpha_earth(info.dtype, info.names, nodata):
        pixels, product = replace(pixels, meanings=alpha_earth_values()), ALPHA_EARTH
        notes.append("The bytes are codes of AlphaEarth: decoded, sign(v) (v / 127.5)^2.")
    check_scaled(info.path, info.dtype, info.n_bands, looked_for="nothing: a raster has none")
    return StoredScene(
        pixels=pixels,
        bands=bands,
        product=product,
        place=info.grid,
        attrs={
            "source": info.path.name,
            "type_in_file": str(info.dtype),
            "nodata_in_file": nodata,
            "acquisition_time": info.fields.get("acquisition time"),
        },
        notes=tuple(notes),
    )


@contextmanager
def gdal(*, online: bool) -> Iterator[None]:
    """Keep GDAL quiet about what is fine, small in memory, and not waiting for dead servers.

    A file that is not `online` makes it ask no server, whatever its tags and side files name.
    """
    # by default GDAL keeps 5 % of the memory of the machine, and waits for ever
    limits = {
        "GDAL_CACHEMAX": _CACHE,
        "GDAL_HTTP_CONNECTTIMEOUT": remote.SILENCE,
        "GDAL_HTTP_LOW_SPEED_TIME": remote.SILENCE,
        "GDAL_HTTP_LOW_SPEED_LIMIT": 1,
        **({} if online else remote.OFFLINE),
    }
    with quiet_without_place(), rasterio.Env(**limits):
        warnings.filterwarnings("ignore", r"\w+ differ across bands", UserWarning)
        yield
