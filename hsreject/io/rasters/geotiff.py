"""GeoTIFF maps: lazy blocks written as they are computed, then cloud-optimised, named, styled."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import dask.array as da
import numpy as np
import rasterio
import rasterio.shutil
from rasterio.errors import RasterioIOError
from rasterio.windows import Window

from hsreject import schema
from hsreject.errors import FileError, InputError
from hsreject.files import starts_with
from hsreject.io.grid import quiet_without_place
from hsreject.io.rasters import envi
from hsreject.progress import ProgressCallback, counting_tasks, no_progress
from hsreject.schema.class_tree import GROUPS_ATTRIBUTE
from hsreject.schema.classes import ClassTable
from hsreject.templates import templates

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.io.maps import Raster

TILE = 512
ENVI_SUFFIXES = (".img", ".dat", ".bsq")
_MOST_ENVI = 255  # the largest value that a header names
# How the styles begin that are ours to replace: QGIS drops the comment when a user saves a style.
_STYLE, _OUR_STYLE = ".qml", b"<!-- hsreject"
# Nine steps of cividis, as in our pictures: even to the eye, and to most colour-blind eyes.
_RAMP = (
    "#00224e", "#1a386f", "#434e6c", "#61656f", "#7d7c78", "#9b9476", "#bcae6c", "#dec958",
    "#fee838",
)  # fmt: skip


@dataclass(frozen=True)
class CategoryTable:
    """The values of a label map on disk: the classes, what 0 means, and the type."""

    classes: ClassTable
    zero: str  # "rejected" or "no reference"
    dtype: np.dtype[np.unsignedinteger]  # its largest value is no data
    groups: str = ""  # of the classes, as JSON (hsreject.ClassTree)

    def __post_init__(self) -> None:
        if max(self.classes.values, default=0) >= self.nodata:
            raise InputError(
                f"Class values must be below {self.nodata} to be written as {self.dtype} "
                f"(found {max(self.classes.values)}). Number the classes from 1."
            )

    @classmethod
    def of(cls, labels: xr.DataArray) -> CategoryTable:
        """Return the table of a label map, in its type if that is one of those on disk."""
        classes = schema.class_table(labels)
        needed = schema.label_dtype(max(classes.values, default=0))
        dtype = labels.dtype if labels.dtype == np.uint16 else needed
        groups = str(labels.attrs.get(GROUPS_ATTRIBUTE, ""))
        return cls(classes, schema.zero_meaning(labels), dtype, groups)

    def encode(self, labels: xr.DataArray) -> xr.DataArray:
        """Return labels in the type on disk; refuse values that have no name, block by block."""
        missing = schema.nodata_values(labels)[-1]
        values = list(self.entries)

        def encode(block: NDArray[Any]) -> NDArray[Any]:
            named = np.isin(block, values)
            without_data = (block == missing) & ~named  # a value that has a name is not missing
            strange = block[~without_data & ~named]
            if strange.size:
                raise InputError(
                    f"The map holds the value {strange.flat[0]}, which its class table does not "
                    f"name (it names {', '.join(map(str, values))}). "
                    "Attach a complete table with hsreject.schema.attach_classes."
                )
            return np.where(without_data, self.nodata, block).astype(self.dtype)

        if labels.chunks is None:
            return labels.copy(data=encode(labels.values))
        return labels.copy(data=labels.data.map_blocks(encode, dtype=self.dtype))

    @property
    def nodata(self) -> int:
        """The value that means no data."""
        return schema.nodata_label(self.dtype)

    @property
    def entries(self) -> dict[int, tuple[str, str]]:
        """Name and colour (#rrggbb) of each value, ascending, 0 included, no data not."""
        zero = "#000000" if self.zero == "rejected" else "#ffffff"
        rows = zip(self.classes.values, self.classes.names, self.classes.colors, strict=True)
        named = {0: (self.zero, zero), **{value: (name, color) for value, name, color in rows}}
        return dict(sorted(named.items()))

    def tags(self) -> dict[str, str]:
        """Return band tags that hold the table inside the file, should the side file get lost."""
        attrs = self.classes.to_attrs()
        return {
            **({GROUPS_ATTRIBUTE: self.groups} if self.groups else {}),
            "flag_values": " ".join(str(value) for value in self.classes.values),
            "flag_meanings": attrs["flag_meanings"],
            "flag_colors": attrs["flag_colors"],
            "class_names": json.dumps(list(self.classes.names), ensure_ascii=False),
            schema.ZERO_MEANING: self.zero,
        }

    def to_pam(self) -> bytes:
        """Return the text of GDAL's side file (.aux.xml): it keeps names nowhere else."""
        root = ET.Element("PAMDataset")
        listed = ET.SubElement(ET.SubElement(root, "PAMRasterBand", band="1"), "CategoryNames")
        for value in range(max(self.entries) + 1):
            ET.SubElement(listed, "Category").text = self.entries.get(value, ("", ""))[0]
        # No XML declaration: GDAL ignores a side file whose first node is not PAMDataset.
        return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=False))


def store(
    rasters: Sequence[Raster], paths: Sequence[Path], *, progress: ProgressCallback = no_progress
) -> None:
    """Write each raster to a plain tiled GeoTIFF; lazy ones together, so that they share work."""
    lazy: list[tuple[Any, _GeoTiffBlocks]] = []
    for raster, path in zip(rasters, paths, strict=True):
        _create(raster, path)
        blocks = _GeoTiffBlocks(path)
        if hasattr(raster.bands, "dask"):
            lazy.append((raster.bands, blocks))
            continue
        count, height, width = raster.bands.shape
        blocks[slice(0, count), slice(0, height), slice(0, width)] = raster.bands
    if lazy:
        sources, targets = zip(*lazy, strict=True)
        with counting_tasks("writing", progress):
            da.store(list(sources), list(targets), lock=True)


@dataclass(frozen=True)
class _GeoTiffBlocks:
    """A GeoTIFF that takes blocks by assignment; it is only a path, so that dask can send it."""

    path: Path

    def __setitem__(self, key: tuple[slice, slice, slice], block: NDArray[Any]) -> None:
        bands, rows, columns = key
        indexes = list(range(bands.start + 1, bands.stop + 1))
        window = Window.from_slices(rows, columns)
        with quiet_without_place(), rasterio.open(self.path, "r+", driver="GTiff") as file:
            file.write(block, indexes=indexes, window=window)


def _create(raster: Raster, path: Path) -> None:
    count, height, width = raster.bands.shape
    profile = {
        "driver": "GTiff",
        "count": count,
        "height": height,
        "width": width,
        "dtype": raster.bands.dtype.name,
        "nodata": raster.nodata,
        "crs": raster.grid.crs,
        "transform": raster.grid.transform,
        "tiled": True,
        "blockxsize": TILE,
        "blockysize": TILE,
        "interleave": "band",
        "bigtiff": "if_safer",
        "photometric": "minisblack",  # four bands of bytes are not a picture
        "alpha": "no",
    }
    with quiet_without_place(), rasterio.open(path, "w", **profile) as file:
        for number, name in enumerate(raster.band_names, start=1):
            if name:
                file.set_band_description(number, name)
        if raster.categories is not None:
            if count == 1:  # a TIFF of more bands has no palette
                colors = {v: color for v, (_, color) in raster.categories.entries.items()}
                file.write_colormap(1, {v: tuple(bytes.fromhex(c[1:])) for v, c in colors.items()})
            file.update_tags(1, **raster.categories.tags())
        file.update_tags(**raster.tags)
    _check_length(path, raster.stored_size)  # from now on, blocks take room that is there


def _check_length(path: Path, size: int) -> None:
    """Raise if a file has not the room of its pixels: rasterio does not tell if closing fails."""
    if path.stat().st_size < size:
        raise RasterioIOError("the file is shorter than its pixels")


def side_files(path: Path, raster: Raster) -> list[str]:
    """Return the names of the files that may lie beside a GeoTIFF and belong to it.

    QGIS looks for a style under the name of the map without ``.tif``. One that a user has saved, or
    that belongs to another layer of this name, stays as it is.
    """
    if path.suffix.lower() in ENVI_SUFFIXES:
        return [path.with_suffix(".hdr").name, f"{path.name}.hdr", f"{path.name}.aux.xml"]
    styles = [path.with_suffix(_STYLE), *(_band_style(path, name) for name in raster.styles)]
    named = [f"{path.name}{suffix}" for suffix in (".aux.xml", ".ovr", ".msk")]
    ours = (one for one in styles if not one.is_file() or starts_with(one, _OUR_STYLE))
    return [*named, *(style.name for style in ours)]


def _band_style(path: Path, band: str) -> Path:
    """Return where the style of a further band stands, to be loaded by hand."""
    return path.with_name(f"{path.stem}_{band}{_STYLE}")


def check_envi(raster: Raster, path: Path) -> None:
    """Raise when an ENVI header cannot hold a map, before anything is computed."""
    classes = {} if raster.categories is None else raster.categories.entries
    for name in [name for name, _ in classes.values()] or raster.band_names:
        if re.search(r"[,{}\n]", name):
            raise InputError(
                f"An ENVI header cannot hold the name '{name}': commas and braces separate its "
                "fields. Rename it, or write a GeoTIFF (.tif)."
            )
    if max(classes, default=0) > _MOST_ENVI:  # it names every value, and GDAL cuts long lists
        raise InputError(
            f"An ENVI header names every value up to {_MOST_ENVI} only (found {max(classes)}). "
            "Number the classes from 1, or write a GeoTIFF (.tif)."
        )
    header = path.with_suffix(envi.HEADER)
    if header.is_file() and (others := [f for f in envi.data_beside(header) if f != path]):
        raise FileError(
            f"Cannot write {path}: its header would replace {header.name}, which belongs to "
            f"{others[0].name}. Choose another name."
        )


def _finish_envi(raster: Raster, plain: Path, path: Path) -> None:
    """Turn a plain GeoTIFF into an ENVI file; label maps become an ENVI classification."""
    if raster.categories is not None:  # whose names GDAL takes over from the side file
        plain.with_name(f"{plain.name}.aux.xml").write_bytes(raster.categories.to_pam())
    with quiet_without_place():
        rasterio.shutil.copy(plain, path, driver="ENVI", interleave="BSQ")
        _check_length(path, raster.bands.nbytes)
        path.with_name(f"{path.name}.aux.xml").unlink(missing_ok=True)  # the header has it all
        with rasterio.open(path) as file:
            back = replace(raster.grid, transform=file.transform)
    if not back.same_as(raster.grid):
        raise InputError(
            "An ENVI header cannot hold the transform of this map (pixels that are sheared or "
            f"flipped: {tuple(raster.grid.transform)[:6]}). Write a GeoTIFF (.tif) instead."
        )


def finish(raster: Raster, plain: Path, path: Path) -> None:
    """Write the tiled, compressed file with overviews at `path`, and names and style beside it.

    Overviews of label maps take the most frequent value, so that they never show a class that is
    not there; those of float maps take the mean.
    """
    if path.suffix.lower() in ENVI_SUFFIXES:
        _finish_envi(raster, plain, path)
        return
    labels = raster.categories is not None
    with quiet_without_place():
        rasterio.shutil.copy(
            plain,
            path,
            driver="COG",
            compress="DEFLATE",
            predictor="NO" if labels else "YES",
            blocksize=TILE,
            overview_resampling="MODE" if labels else "AVERAGE",
            bigtiff="IF_SAFER",
            num_threads="ALL_CPUS",
        )
        _check_end(path)
    if raster.categories is not None:
        path.with_name(f"{path.name}.aux.xml").write_bytes(raster.categories.to_pam())
        path.with_suffix(_STYLE).write_bytes(_style(raster.categories))
    elif len(raster.bands) == 1:
        path.with_suffix(_STYLE).write_bytes(_style(_limits(plain)))
    for name, drawn in raster.styles.items():
        band = raster.band_names.index(name) + 1
        _band_style(path, name).write_bytes(_style(drawn, band))


def _style(drawn: CategoryTable | tuple[float, float], band: int = 1) -> bytes:
    """Return a layer style of QGIS (.qml): classes, or a perceptual ramp over a range."""
    facts: dict[str, Any] = {"classes": [], "ramp": [], "band": band}
    if isinstance(drawn, CategoryTable):  # other values, no data and no reference are transparent
        facts["classes"] = [
            (value, name, color)
            for value, (name, color) in drawn.entries.items()
            if value or name != schema.NO_REFERENCE_MEANING
        ]
    else:
        facts["low"], facts["high"] = drawn
        facts["ramp"] = [*zip(np.linspace(*drawn, len(_RAMP)).tolist(), _RAMP, strict=True)]
    style = templates("hsreject.io.rasters").get_template("style.qml.jinja")
    return style.render(facts).encode()


def _limits(path: Path) -> tuple[float, float]:
    """Return the smallest and the largest finite value of a float map; 0 and 1 if it has none."""
    low, high = np.inf, -np.inf
    with quiet_without_place(), rasterio.open(path, driver="GTiff") as file:
        for _, window in file.block_windows(1):
            block = file.read(1, window=window)
            finite = block[np.isfinite(block)]
            low, high = finite.min(initial=low), finite.max(initial=high)
    return (float(low), float(high)) if low <= high else (0.0, 1.0)


def _check_end(path: Path) -> None:
    """Raise if a tile lies behind the end of the file: the disk was full when GDAL closed it."""
    # GDAL writes the tiles of the full size last, and rasterio does not tell if that fails
    with rasterio.open(path) as file:
        *_, (_, last) = file.block_windows(1)
        file.read(window=last)
