"""Small files with the layouts of products, made with h5py and GDAL from values (band, y, x)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import rasterio
from rasterio.crs import CRS
from rasterio.transform import Affine

WGS84 = CRS.from_epsg(4326)
UTM = Affine(30.0, 0.0, 364095.0, 0.0, -30.0, 5809965.0)
DEGREES = Affine(0.0005, 0.0, 13.0, 0.0, -0.0005, 52.5)
FILL = -9999.0


def reflectance(shape: tuple[int, int, int] = (6, 5, 4), seed: int = 0) -> np.ndarray:
    """Return float32 values that are all different."""
    values = np.random.default_rng(seed).permutation(int(np.prod(shape)))
    return (0.001 * (1 + values)).reshape(shape).astype("float32")


def wavelengths(n_bands: int) -> np.ndarray:
    return np.linspace(400.0, 2400.0, n_bands)


def text(value: str, as_bytes: bool) -> Any:  # noqa: FBT001
    return np.bytes_(value) if as_bytes else value


def write_emit(
    path: Path,
    cube: np.ndarray,
    glt: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    variable: str = "reflectance",
    good: Sequence[int] | None = None,
    chunks: tuple[int, int, int] | None = None,
    compression: str | None = None,
    as_bytes: bool = False,
    in_micrometres: bool = False,
) -> Path:
    """Write EMIT L2A: (downtrack, crosstrack, bands); `glt` is (rows, columns) from 1."""
    with h5py.File(path, "w") as file:
        stored = cube.transpose(1, 2, 0)
        data = file.create_dataset(variable, data=stored, chunks=chunks, compression=compression)
        data.attrs["_FillValue"] = np.array([FILL], dtype="float32")
        bands = file.create_group("sensor_band_parameters")
        centre = wavelengths(len(cube)) / (1000 if in_micrometres else 1)
        bands["wavelengths"] = centre.astype("float32")
        bands["fwhm"] = np.full(len(cube), 8.5 / (1000 if in_micrometres else 1), "float32")
        for name in ("wavelengths", "fwhm"):
            bands[name].attrs["units"] = text("um" if in_micrometres else "nm", as_bytes)
        if good is not None:
            bands["good_wavelengths"] = np.array(good, dtype="uint8")
        location = file.create_group("location")
        location["lat"] = np.zeros(cube.shape[1:])
        if glt is not None:
            location["glt_y"], location["glt_x"] = (np.asarray(part, "int32") for part in glt)
        file.attrs["spatial_ref"] = text(WGS84.to_wkt(), as_bytes)
        file.attrs["geotransform"] = np.array(DEGREES.to_gdal())
    return path


def write_emit_mask(path: Path, flags: np.ndarray, names: Sequence[str]) -> Path:
    """Write an EMIT L2A mask file; `flags` is (band, y, x)."""
    with h5py.File(path, "w") as file:
        file["mask"] = flags.transpose(1, 2, 0).astype("float32")
        file.create_dataset("sensor_band_parameters/mask_bands", data=list(names))
        file.create_group("location")
    return path


def write_aviris(
    path: Path,
    cube: np.ndarray,
    glt: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    what: str = "reflectance",
    grid_name: str = "transverse_mercator",
    as_bytes: bool = True,
) -> Path:
    """Write AVIRIS-3 or -5: /reflectance/reflectance, bands first."""
    with h5py.File(path, "w") as file:
        data = file.create_dataset(f"{what}/{what}", data=cube)
        data.attrs["_FillValue"] = np.float32(FILL)
        file[f"{what}/wavelength"] = wavelengths(len(cube))
        file[f"{what}/fwhm"] = np.full(len(cube), 7.4)
        file[grid_name] = b""
        file[grid_name].attrs["spatial_ref"] = text(CRS.from_epsg(32633).to_wkt(), as_bytes)
        file[grid_name].attrs["GeoTransform"] = text(" ".join(map(str, UTM.to_gdal())), as_bytes)
        if glt is not None:
            file["geolocation_lookup_table/line"] = np.asarray(glt[0], "int32")
            file["geolocation_lookup_table/sample"] = np.asarray(glt[1], "int32")
    return path


def write_prisma(
    path: Path,
    vnir: np.ndarray,
    swir: np.ndarray,
    centres: tuple[Sequence[float], Sequence[float]],
    scales: tuple[tuple[float, float], tuple[float, float]],
    *,
    level: str = "L2D",
) -> Path:
    """Write PRISMA: (row, band, column) of uint16, in the order of `centres`; 0 nm is unused."""
    rows, columns = vnir.shape[1:]
    with h5py.File(path, "w") as file:
        for name, values, centre, scale in zip(
            ("Vnir", "Swir"), (vnir, swir), centres, scales, strict=True
        ):
            field = f"HDFEOS/SWATHS/PRS_{level}_HCO/Data Fields/{name.upper()}_Cube"
            file[field] = values.transpose(1, 0, 2).astype("uint16")
            file.attrs[f"List_Cw_{name}"] = np.array(centre, dtype="float32")
            widths = np.where(np.array(centre) > 0, 10.0, 0.0)
            file.attrs[f"List_Fwhm_{name}"] = widths.astype("float32")
            file.attrs[f"L2Scale{name}Min"], file.attrs[f"L2Scale{name}Max"] = map(
                np.float32, scale
            )
        file.attrs["Epsg_Code"] = np.int64(32633)
        corners = {"UL": (0.5, 0.5), "LR": (columns - 0.5, rows - 0.5)}
        for name, (column, row) in corners.items():
            file.attrs[f"Product_{name}corner_easting"] = UTM.c + UTM.a * column
            file.attrs[f"Product_{name}corner_northing"] = UTM.f + UTM.e * row
    return path


def write_neon(
    path: Path, counts: np.ndarray, *, windows: bool = True, code: Any = b"32633"
) -> Path:
    """Write NEON AOP: (row, column, band) of int16, ten thousand times the reflectance."""
    with h5py.File(path, "w") as file:
        group = file.create_group("ABBY/Reflectance")
        data = group.create_dataset("Reflectance_Data", data=counts.transpose(1, 2, 0))
        data.attrs["Scale_Factor"] = np.array([10000.0])
        data.attrs["Data_Ignore_Value"] = np.array([-9999.0])
        if windows:
            group.attrs["Band_Window_1_Nanometers"] = np.array([1340, 1445])
            group.attrs["Band_Window_2_Nanometers"] = np.array([1790, 1955])
        bands = group.create_group("Metadata/Spectral_Data")
        bands["Wavelength"] = wavelengths(len(counts)).astype("float32")
        bands["Wavelength"].attrs["Units"] = "Nanometers"
        bands["FWHM"] = np.full(len(counts), 5.0)
        system = group.create_group("Metadata/Coordinate_System")
        system["Map_Info"] = np.bytes_(
            f"UTM, 1.000, 1.000, {UTM.c:.3f}, {UTM.f:.3f}, 30.0, 30.0, 33, North, WGS-84, "
            "units=Meters, 0"
        )
        system["EPSG Code"] = code
    return path


def write_tanager(
    path: Path,
    cube: np.ndarray,
    *,
    kind: str = "GRIDS",
    name: str = "surface_reflectance",
    masks: dict[str, np.ndarray] | None = None,
    code: int | None = 32633,
    as_dataset: bool = False,
) -> Path:
    """Write Tanager: bands first; the grid in the metadata of HDF-EOS."""
    rows, columns = cube.shape[1:]
    with h5py.File(path, "w") as file:
        fields = file.create_group(f"HDFEOS/{kind}/HYP/Data Fields")
        data = fields.create_dataset(name, data=cube)
        data.attrs["_FillValue"] = FILL
        if as_dataset:
            fields["wavelengths"], fields["fwhm"] = wavelengths(len(cube)), np.full(len(cube), 5.0)
        else:
            data.attrs["wavelengths"] = wavelengths(len(cube))
            data.attrs["fwhm"] = np.full(len(cube), 5.0)
        for mask, values in (masks or {}).items():
            fields[mask] = values.astype("uint8")
        if code is not None:
            file[f"HDFEOS/{kind}/HYP"].attrs["epsg_code"] = code
        right, bottom = UTM.c + UTM.a * columns, UTM.f + UTM.e * rows
        file["HDFEOS INFORMATION/StructMetadata.0"] = np.bytes_(
            f"GROUP=GridStructure\n\tGROUP=GRID_1\n\t\tXDim={columns}\n\t\tYDim={rows}\n"
            f"\t\tUpperLeftPointMtrs=({UTM.c:.6f},{UTM.f:.6f})\n"
            f"\t\tLowerRightMtrs=({right:.6f},{bottom:.6f})\n"
            "\t\tProjection=HE5_GCTP_UTM\n\t\tZoneCode=33\n"
        )
    return path


def write_tiff(path: Path, values: np.ndarray, **profile: Any) -> Path:
    """Write (band, y, x) as a GeoTIFF in UTM."""
    size = dict(zip(("count", "height", "width"), values.shape, strict=True))
    place = {"crs": "EPSG:32633", "transform": UTM}
    with rasterio.open(
        path, "w", driver="GTiff", dtype=values.dtype, **size, **place, **profile
    ) as file:
        file.write(values)
    return path


def write_enmap(
    folder: Path,
    counts: np.ndarray,
    *,
    masks: dict[str, np.ndarray] | None = None,
    nodata: int | None = -32768,
    spread: Sequence[float] | None = None,
    stem: str = "ENMAP01-____L2A-DT0000001867_20220724T104526Z_008_V010302_20230628T165614Z-",
    suffix: str = "",
) -> tuple[Path, Path]:
    """Write an EnMAP image, its XML and its masks; return the image and the XML."""
    image = write_tiff(folder / f"{stem}SPECTRAL_IMAGE{suffix}.TIF", counts, nodata=nodata)
    for name, values in (masks or {}).items():
        write_tiff(folder / f"{stem}QL_QUALITY_{name}{suffix}.TIF", values.astype("uint8")[None])
    bands = "".join(
        f"<bandID number='{number}'><wavelengthCenterOfBand>{centre}</wavelengthCenterOfBand>"
        "<FWHMOfBand>6.5</FWHMOfBand><GainOfBand>0.0001</GainOfBand><OffsetOfBand>0</OffsetOfBand>"
        "</bandID>"
        for number, centre in enumerate(wavelengths(len(counts)), start=1)
    )
    statistics = "".join(
        f"<bandID number='{number}'><mean>1</mean><stdDeviation>{value}</stdDeviation></bandID>"
        for number, value in enumerate(spread or (), start=1)
    )
    described = folder / f"{stem}METADATA.XML"
    described.write_text(
        "<?xml version='1.0' encoding='UTF-8'?><level_X><product><bandStatistics>"
        f"{statistics}</bandStatistics></product><specific><bandCharacterisation>{bands}"
        "</bandCharacterisation></specific></level_X>"
    )
    return image, described


def write_desis(
    folder: Path, counts: np.ndarray, offset: float = 0.0, quality: np.ndarray | None = None
) -> tuple[Path, Path, Path]:
    """Write a DESIS image, its header, its XML and its masks (band, y, x)."""
    stem = "DESIS-HSI-L2A-DT1203190212_025-20191203T021128-V0210-"
    if quality is not None:
        write_tiff(folder / f"{stem}QL_QUALITY-2.tif", quality.astype("uint8"))
    image = write_tiff(folder / f"{stem}SPECTRAL_IMAGE.tif", counts, interleave="pixel")

    def listed(values: Any) -> str:
        return "{" + ", ".join(f"{value:g}" for value in values) + "}"

    count = len(counts)
    header = folder / f"{stem}SPECTRAL_IMAGE.hdr"
    header.write_text(
        f"ENVI\nsamples = {counts.shape[2]}\nlines = {counts.shape[1]}\nbands = {count}\n"
        f"header offset = 0\nfile type = ENVI Standard\ndata type = 2\ninterleave = bip\n"
        "byte order = 0\nwavelength units = nanometers\n"
        f"wavelength = {listed(wavelengths(count))}\n"
        f"fwhm = {listed([3.5] * count)}\ndata gain values = {listed([0.0001] * count)}\n"
        f"data offset values = {listed([offset] * count)}\n"
    )
    described = folder / f"{stem}METADATA.xml"
    described.write_text("<hsi_doc/>")
    return image, header, described
