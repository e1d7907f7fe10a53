"""Products open with the values, bands, masks and places that their layouts say."""

import re
from collections.abc import Callable
from pathlib import Path

import dask.array as da
import h5py
import numpy as np
import pytest
import rasterio
import rasterio.shutil
import xarray as xr
from affine import Affine

import hsreject as hr
from hsreject.errors import FileError, GuessWarning, InputError
from hsreject.io.grid import PixelGrid
from tests.io.products.writers import (
    FILL,
    UTM,
    reflectance,
    wavelengths,
    write_aviris,
    write_desis,
    write_emit,
    write_emit_mask,
    write_enmap,
    write_neon,
    write_prisma,
    write_tanager,
    write_tiff,
)

CUBE = reflectance()  # (6, 5, 4): bands, rows and columns differ, so that no axis can be mistaken
COUNTS = np.round(CUBE * 10000).astype("int16")
BANDS, ROWS, COLUMNS = CUBE.shape
HOLE = (2, 3)  # row and column of a pixel without data


def with_hole(cube: np.ndarray, value: float) -> np.ndarray:
    holed = cube.copy()
    holed[:, *HOLE] = value
    return holed


def check(cube: xr.DataArray, expected: np.ndarray, *, fwhm: float) -> None:
    """Compare value by value; no data in the hole."""
    assert cube.dims == ("band", "y", "x")
    assert cube.dtype == np.float32
    expected = expected.astype("float64")
    expected[:, *HOLE] = np.nan
    # single precision has 24 bits, and scaling rounds twice
    np.testing.assert_allclose(cube.values, expected, rtol=3e-7)
    np.testing.assert_allclose(cube.wavelength, wavelengths(BANDS), rtol=1e-6)
    np.testing.assert_allclose(cube.fwhm, fwhm, rtol=1e-6)


def on_utm(cube: xr.DataArray) -> None:
    assert PixelGrid.of(cube).same_as(PixelGrid(ROWS, COLUMNS, UTM, cube.rio.crs))
    assert cube.rio.crs.to_epsg() == 32633
    assert float(cube.x[0]) == UTM.c + UTM.a / 2
    assert float(cube.y[0]) == UTM.f + UTM.e / 2


GLT = (np.array([[0, 1], [2, 5]]), np.array([[0, 1], [4, 2]]))

WRITERS: dict[str, Callable[[Path], Path]] = {
    "EMIT": lambda folder: write_emit(folder / "emit.nc", with_hole(CUBE, FILL), GLT),
    "AVIRIS": lambda folder: write_aviris(folder / "aviris.nc", with_hole(CUBE, FILL)),
    "NEON": lambda folder: write_neon(folder / "neon.h5", with_hole(COUNTS, -9999)),
    "Tanager": lambda folder: write_tanager(folder / "tanager.h5", with_hole(CUBE, FILL)),
    "EnMAP": lambda folder: write_enmap(folder, with_hole(COUNTS, -32768))[0],
    "EnMAP XML": lambda folder: write_enmap(folder, with_hole(COUNTS, -32768), nodata=None)[1],
    "DESIS": lambda folder: write_desis(folder, with_hole(COUNTS, -32768))[0],
    "DESIS header": lambda folder: write_desis(folder, with_hole(COUNTS, -32768))[1],
    "DESIS XML": lambda folder: write_desis(folder, with_hole(COUNTS, -32768))[2],
}
WIDTHS = {"EMIT": 8.5, "AVIRIS": 7.4, "NEON": 5.0, "Tanager": 5.0, "EnMAP": 6.5, "DESIS": 3.5}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("chunks", [None, "auto", {"y": 2, "x": 3}, {"band": 4}])
def test_values_bands_and_place(tmp_path: Path, name: str, chunks) -> None:
    cube = hr.open_scene(WRITERS[name](tmp_path), chunks=chunks)
    assert isinstance(cube.data, da.Array) == (chunks is not None)
    check(cube, CUBE, fwhm=WIDTHS[name.split(maxsplit=1)[0]])
    assert name.split(maxsplit=1)[0] in cube.attrs["product"]
    if name == "EMIT":
        assert not PixelGrid.of(cube).georeferenced
    else:
        on_utm(cube)


@pytest.mark.parametrize("name", WRITERS)
def test_info_names_the_product(tmp_path: Path, name: str) -> None:
    described = hr.describe(WRITERS[name](tmp_path))
    rows = dict(described.rows)
    assert name.split(maxsplit=1)[0] in rows["Product"]
    assert rows["Size"] == "5 rows x 4 columns x 6 bands"
    assert rows["Without data"] == "5.00 % of the pixels"
    assert rows["Wavelengths"] == "400 to 2400 nm"


# EMIT.


@pytest.mark.parametrize("as_bytes", [False, True])
@pytest.mark.parametrize("in_micrometres", [False, True])
def test_emit_as_it_varies(tmp_path: Path, as_bytes: bool, in_micrometres: bool) -> None:  # noqa: FBT001
    path = write_emit(
        tmp_path / "emit.nc",
        with_hole(CUBE, FILL),
        GLT,
        as_bytes=as_bytes,
        in_micrometres=in_micrometres,
        good=[1, 1, 0, 1, 0, 1],
        variable="radiance",
    )
    cube = hr.open_scene(path)
    check(cube, CUBE, fwhm=8.5)
    assert cube.good_band.values.tolist() == [True, True, False, True, False, True]
    assert "radiance" in cube.attrs["product"]
    place = dict(hr.describe(path).rows)["Reference system"]
    assert "sensor geometry" in place
    assert "EPSG:4326" in place


def test_the_mask_of_emit_is_found_beside(tmp_path: Path) -> None:
    path = write_emit(tmp_path / "EMIT_L2A_RFL_001_20230316T045133.nc", CUBE)
    flags = np.zeros((4, ROWS, COLUMNS))
    flags[0, 0, 0] = flags[2, 1, 1] = flags[3, *HOLE] = 1
    flags[:, 3, 3] = FILL
    names = ["Cloud flag", "Water flag", "AOD550", "Dilated Cloud Flag"]
    write_emit_mask(tmp_path / "EMIT_L2A_MASK_001_20230316T045133.nc", flags, names)
    for chunks in (None, {"y": 2}):
        cube = hr.open_scene(path, chunks=chunks)
        missing = np.isnan(cube.values)
        assert missing.all(axis=0).sum() == missing.any(axis=0).sum() == 2  # not water, not AOD
        assert missing[:, 0, 0].all()
        assert missing[:, *HOLE].all()
    assert "Dilated Cloud Flag" in cube.attrs["masks"]
    np.testing.assert_array_equal(hr.open_scene(path, masks=False).values, CUBE)


# PRISMA.

VNIR_NM, SWIR_NM = (0.0, 980.0, 700.0, 410.0), (2490.0, 1900.0, 960.0, 0.0)
SCALES = ((0.0, 0.8), (0.1, 1.3))


@pytest.fixture
def prisma(tmp_path: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    vnir, swir = (generator.integers(1, 65536, (4, ROWS, COLUMNS)) for _ in range(2))
    vnir[:, *HOLE] = swir[:, *HOLE] = 0
    swir[1, 0, 0] = 0  # as dark as can be in one band
    vnir[0], swir[3] = 0, 0
    path = write_prisma(tmp_path / "PRS_L2D.he5", vnir, swir, (VNIR_NM, SWIR_NM), SCALES)
    return path, vnir, swir


@pytest.mark.parametrize("chunks", [None, {"y": 2, "x": 2}, {"band": 2}])
def test_prisma(prisma, chunks) -> None:
    path, vnir, swir = prisma
    cube = hr.open_scene(path, chunks=chunks)
    # ascending: the spectrometers overlap, and unused bands are left out
    assert cube.wavelength.values.tolist() == [410, 700, 960, 980, 1900, 2490]
    assert cube.fwhm.values.tolist() == [10.0] * 6
    assert cube.band.values.tolist() == [1, 2, 3, 4, 5, 6]
    stored = [vnir[3], vnir[2], swir[2], vnir[1], swir[1], swir[0]]
    for band, (counts, scale) in enumerate(zip(stored, np.array(SCALES)[[0, 0, 1, 0, 1, 1]])):  # noqa: B905
        low, high = scale.astype("float32").astype(float)
        expected = low + counts / 65535 * (high - low)
        expected[HOLE] = np.nan  # no data is where all bands are 0
        np.testing.assert_allclose(cube.values[band], expected, rtol=3e-7)
        np.testing.assert_array_equal(cube[band].values, cube.values[band])
    assert cube.good_band.values.tolist() == [True, True, True, True, False, True]
    on_utm(cube)


def test_info_tells_what_was_guessed_of_prisma(prisma) -> None:
    guesses = " ".join(hr.describe(prisma[0]).guesses)
    assert "centres of pixels" in guesses
    assert "2 of 8 bands" in guesses
    assert "water vapour" in guesses


def test_flags_tell_unused_bands_of_prisma_too(prisma) -> None:
    with h5py.File(prisma[0], "r+") as file:
        file.attrs["List_Cw_Vnir_Flags"] = np.array([0, 1, 0, 1])
    assert 700 not in hr.open_scene(prisma[0]).wavelength


# AVIRIS.


@pytest.mark.parametrize("name", ["transverse_mercator", "projection"])
def test_radiance_of_aviris(tmp_path: Path, name: str) -> None:
    path = write_aviris(
        tmp_path / "a.nc", with_hole(CUBE, FILL), what="radiance", grid_name=name, as_bytes=False
    )
    cube = hr.open_scene(path)
    check(cube, CUBE, fwhm=7.4)
    on_utm(cube)


def test_a_map_of_aviris_may_keep_its_table(tmp_path: Path) -> None:
    path = write_aviris(tmp_path / "a.nc", CUBE, (np.ones((ROWS, COLUMNS)),) * 2)
    assert not PixelGrid.of(hr.open_scene(path)).georeferenced
    with h5py.File(path, "r+") as file:
        file["easting"], file["northing"] = np.arange(COLUMNS), np.arange(ROWS)
    on_utm(hr.open_scene(path))


# NEON.


@pytest.mark.parametrize("code", [b"32633", "32633", np.array([32633])])
def test_bad_bands_and_codes_of_neon(tmp_path: Path, code) -> None:
    counts = np.ones((201, 2, 2), dtype="int16")
    cube = hr.open_scene(write_neon(tmp_path / "n.h5", counts, code=code))
    assert cube.rio.crs.to_epsg() == 32633
    bad = cube.wavelength.values[~cube.good_band.values]
    assert bad.tolist() == [*range(1340, 1446, 10), *range(1790, 1956, 10)]
    plain = hr.open_scene(write_neon(tmp_path / "n.h5", counts, windows=False))
    assert "good_band" not in plain.coords


# Tanager.


def test_masks_of_tanager(tmp_path: Path) -> None:
    masks = {name: np.zeros((ROWS, COLUMNS)) for name in ("nodata_pixels", "beta_cloud_mask")}
    masks["nodata_pixels"][0, 0] = masks["beta_cloud_mask"][4, 3] = 1
    path = write_tanager(tmp_path / "t.h5", CUBE, masks=masks, code=None, as_dataset=True)
    cube = hr.open_scene(path, chunks={"y": 2})
    assert np.argwhere(np.isnan(cube.values).all(axis=0)).tolist() == [[0, 0], [4, 3]]
    assert np.isnan(cube.values).sum() == 2 * BANDS
    assert cube.attrs["masks"] == "nodata_pixels, beta_cloud_mask"
    assert cube.wavelength.values.tolist() == wavelengths(BANDS).tolist()
    on_utm(cube)  # by the zone


def test_basic_tanager_stays_in_sensor_geometry(tmp_path: Path) -> None:
    path = write_tanager(tmp_path / "t.h5", CUBE, kind="SWATHS", name="toa_radiance")
    cube = hr.open_scene(path)
    np.testing.assert_array_equal(cube.values, CUBE)
    assert not PixelGrid.of(cube).georeferenced
    assert "sensor geometry" in " ".join(cube.attrs["guesses"])


# EnMAP.


@pytest.mark.parametrize("suffix", ["", "_COG"])
@pytest.mark.parametrize("given", [0, 1])
def test_masks_and_empty_bands_of_enmap(tmp_path: Path, suffix: str, given: int) -> None:
    masks = {
        name: np.zeros((ROWS, COLUMNS))
        for name in ("CLOUD", "CLOUDSHADOW", "HAZE", "CIRRUS", "SNOW")
    }
    for place, mask in enumerate(masks.values()):
        mask[place, 0] = 1 + (place == 3)  # cirrus comes in degrees
    masks["CLASSES"] = np.ones((ROWS, COLUMNS))
    masks["CLASSES"][1, 1], masks["CLASSES"][2, 2] = 3, 2  # background, water
    files = write_enmap(tmp_path, COUNTS, masks=masks, spread=[1, 2, 0, 1, 1, 1], suffix=suffix)
    covered, snow = [[0, 0], [1, 0], [1, 1], [2, 0], [3, 0]], [[4, 0]]
    for chunks, wanted in ((None, True), ({"y": 2, "x": 2}, True), (None, "all")):
        cube = hr.open_scene(files[given], chunks=chunks, masks=wanted)
        missing = np.isnan(cube.values)
        expected = covered + snow * (wanted == "all")
        assert np.argwhere(missing.all(axis=0)).tolist() == expected
        assert missing.sum() == BANDS * len(expected)
    assert cube.good_band.values.tolist() == [True, True, False, True, True, True]
    assert "QL_QUALITY_CLOUDSHADOW" in cube.attrs["masks"]
    assert "snow" in " ".join(hr.open_scene(files[given]).attrs["guesses"])


def test_thin_cirrus_is_ground_unless_one_says_otherwise(tmp_path: Path) -> None:
    cirrus = np.zeros((ROWS, COLUMNS))
    cirrus[0, :4] = (0, 1, 2, 3)
    path, _ = write_enmap(tmp_path, COUNTS, masks={"CIRRUS": cirrus})
    for masks, expected in ((True, [2, 3]), ("all", [1, 2, 3]), (False, [])):
        missing = np.isnan(hr.open_scene(path, masks=masks).values).all(axis=0)
        assert np.flatnonzero(missing).tolist() == expected
    with pytest.raises(InputError, match="masks"):
        hr.open_scene(path, masks="some")


def test_the_image_of_enmap_is_found_among_others(tmp_path: Path) -> None:
    first, second = (
        write_enmap(tmp_path, counts, stem=stem)[1]
        for counts, stem in ((COUNTS, "ENMAP01-____L2A-A-"), (COUNTS + 1, "ENMAP01-____L2A-B-"))
    )
    assert hr.open_scene(first).values[0, 0, 0] != hr.open_scene(second).values[0, 0, 0]


def test_an_image_without_its_description_is_a_plain_raster(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "ENMAP01-SPECTRAL_IMAGE.TIF", COUNTS)
    with pytest.warns(GuessWarning, match=r"METADATA\.XML"):
        cube = hr.open_scene(path)
    np.testing.assert_array_equal(cube.values, COUNTS)
    assert "METADATA.XML" in " ".join(cube.attrs["guesses"])
    with pytest.warns(GuessWarning):
        assert any("METADATA.XML" in note for note in hr.describe(path).guesses)


SCENE = "ENMAP01-____L2A-DT0000001053_20220611T072305Z_002_V010400_20231124T152718Z"
OTHER_SCENE = SCENE.replace("_002_", "_003_")


@pytest.mark.parametrize(
    "name",
    [
        f"{SCENE}-SPECTRAL_IMAGE_sub.TIF",
        "berlin_DT0000001053_20220611T072305Z_002_SPECTRAL_IMAGE.TIF",
        f"sub_{SCENE}-SPECTRAL_IMAGE.TIF",
    ],
)
def test_a_renamed_image_of_enmap_finds_its_description(tmp_path: Path, name: str) -> None:
    image, _ = write_enmap(tmp_path, with_hole(COUNTS, -32768), stem=f"{SCENE}-")
    _, other = write_enmap(tmp_path, COUNTS, stem=f"{OTHER_SCENE}-")  # two scenes in one folder
    other.write_text(other.read_text().replace("400.0", "411.0"))
    renamed = image.rename(tmp_path / name)
    check(hr.open_scene(renamed), CUBE, fwhm=6.5)


def test_a_subset_of_the_bands_of_enmap_is_not_described_by_all(tmp_path: Path) -> None:
    image, _ = write_enmap(tmp_path, COUNTS)
    part = write_tiff(image.with_name(image.stem + "_bands.TIF"), COUNTS[:3])
    with pytest.warns(GuessWarning, match="scale"):
        np.testing.assert_array_equal(hr.open_scene(part).values, COUNTS[:3])


@pytest.mark.parametrize("interleave", ["BSQ", "BIL", "BIP"])
def test_enmap_delivered_with_a_header(tmp_path: Path, interleave: str) -> None:
    image, described = write_enmap(tmp_path, with_hole(COUNTS, -32768))
    name = image.with_suffix(f".{interleave}")
    with rasterio.open(image) as file:
        rasterio.shutil.copy(file, name, driver="ENVI", interleave=interleave)
    image.unlink()
    header = name.with_suffix(".hdr").rename(name.with_suffix(".HDR"))
    for path in (name, header, described):
        check(hr.open_scene(path), CUBE, fwhm=6.5)


def test_one_detector_of_enmap_has_its_own_bands(tmp_path: Path) -> None:
    image, _ = write_enmap(tmp_path, COUNTS, stem="ENMAP01-____L1B-X-")
    for detector, part in (("VNIR", slice(0, 2)), ("SWIR", slice(2, None))):
        path = write_tiff(image.with_name(f"{image.stem}_{detector}.TIF"), COUNTS[part])
        cube = hr.open_scene(path)
        np.testing.assert_allclose(cube.values, CUBE[part], rtol=1e-6)
        np.testing.assert_allclose(cube.wavelength, wavelengths(BANDS)[part])
        assert detector in cube.attrs["product"]


@pytest.mark.parametrize("suffix", [".TIF", ".BSQ"])
def test_what_enmap_calls_no_data_is_so_without_its_description(
    tmp_path: Path, suffix: str
) -> None:
    image, described = write_enmap(tmp_path, with_hole(COUNTS, -32768), nodata=None)
    described.unlink()
    name = image.with_suffix(suffix)
    if suffix == ".BSQ":
        with rasterio.open(image) as file:
            rasterio.shutil.copy(file, name, driver="ENVI")
    with pytest.warns(GuessWarning, match="scale"):
        cube = hr.open_scene(name)
    np.testing.assert_array_equal(cube.values, with_hole(COUNTS.astype("float32"), np.nan))
    assert cube.attrs["nodata_in_file"] == -32768


def test_an_image_of_enmap_that_is_float_keeps_its_values(tmp_path: Path) -> None:
    image, described = write_enmap(tmp_path, with_hole(CUBE, FILL), nodata=FILL)
    for path in (image, described):
        cube = hr.open_scene(path)
        check(cube, CUBE, fwhm=6.5)
        assert "holds floats" in " ".join(cube.attrs["guesses"])
        assert "scaling" not in cube.attrs


def test_enmap_with_several_images_is_not_guessed(tmp_path: Path) -> None:
    image, described = write_enmap(tmp_path, with_hole(COUNTS, -32768))
    for part in ("a", "b"):
        write_tiff(image.with_name(f"{image.stem}_{part}.TIF"), COUNTS)
    check(hr.open_scene(described), CUBE, fwhm=6.5)  # as it was downloaded
    image.unlink()
    for path in (described, tmp_path):
        with pytest.raises(FileError, match=r"IMAGE_a\.TIF, .*IMAGE_b\.TIF"):
            hr.open_scene(path)


@pytest.mark.parametrize("product", ["EnMAP", "DESIS"])
def test_a_quality_layer_that_lies_elsewhere_is_not_used(tmp_path: Path, product: str) -> None:
    if product == "EnMAP":
        path, _ = write_enmap(tmp_path, COUNTS, masks={"CLOUD": np.ones((ROWS, COLUMNS))})
        layer = next(tmp_path.glob("*QL_QUALITY_CLOUD*"))
    else:
        path, *_ = write_desis(tmp_path, COUNTS, quality=np.ones((10, ROWS, COLUMNS)))
        layer = next(tmp_path.glob("*QL_QUALITY-2*"))
    with rasterio.open(layer, "r+") as file:
        file.transform = Affine(30.0, 0.0, UTM.c + 300, 0.0, -30.0, UTM.f)
    cube = hr.open_scene(path)
    assert not np.isnan(cube.values).any()
    assert layer.name in " ".join(cube.attrs["guesses"])


def test_offsets_of_desis(tmp_path: Path) -> None:
    cube = hr.open_scene(write_desis(tmp_path, with_hole(COUNTS, -32768), offset=0.25)[0])
    check(cube, CUBE + 0.25, fwhm=3.5)


def test_what_desis_sees_no_ground_of_has_no_data(tmp_path: Path) -> None:
    quality = np.zeros((10, ROWS, COLUMNS))
    for band in range(10):  # in each band another pixel is flagged
        quality[band].flat[band] = 1
    path, *_ = write_desis(tmp_path, COUNTS, quality=quality)
    missing = np.isnan(hr.open_scene(path).values).all(axis=0)
    assert np.flatnonzero(missing).tolist() == [0, 3, 4, 5, 6]  # not land, snow, water, aerosols
    every = np.isnan(hr.open_scene(path, masks="all").values).all(axis=0)
    assert np.flatnonzero(every).tolist() == [0, 2, 3, 4, 5, 6]
    assert "QL_QUALITY-2" in hr.open_scene(path).attrs["masks"]
    assert not np.isnan(hr.open_scene(path, masks=False).values).any()


def test_a_quality_layer_of_desis_with_too_few_bands_is_called_so(tmp_path: Path) -> None:
    path, *_ = write_desis(tmp_path, COUNTS, quality=np.ones((7, ROWS, COLUMNS)))
    assert "7 bands, 8 are needed" in " ".join(hr.open_scene(path).attrs["guesses"])


# What a file should say and does not.


@pytest.mark.parametrize("given", [0, 2])
def test_desis_without_its_header_is_called_so(tmp_path: Path, given: int) -> None:
    quality = np.zeros((10, ROWS, COLUMNS))
    quality[0, 0, 0] = 1
    counts = with_hole(COUNTS, -32768)
    files = write_desis(tmp_path, counts, quality=quality)
    files[1].unlink()
    with pytest.warns(GuessWarning, match=r"no scale .*, no wavelengths\. .*\.hdr"):
        cube = hr.open_scene(files[given])
    expected = with_hole(COUNTS.astype("float32"), np.nan)
    expected[:, 0, 0] = np.nan
    np.testing.assert_array_equal(cube.values, expected)
    next(tmp_path.glob("*QL_QUALITY*")).unlink()
    with pytest.warns(GuessWarning, match="no masks"):
        hr.open_scene(files[given])


def test_numbers_without_a_scale_are_called_so(tmp_path: Path) -> None:
    neon = write_neon(tmp_path / "n.h5", COUNTS)
    with h5py.File(neon, "r+") as file:
        del file["ABBY/Reflectance/Reflectance_Data"].attrs["Scale_Factor"]
    desis, header = write_desis(tmp_path, COUNTS)[:2]
    text = header.read_text()
    header.write_text(re.sub(r"data (gain|offset) values = .*\n", "", text))
    for path in (neon, desis):
        with pytest.warns(GuessWarning, match="scaled"):
            cube = hr.open_scene(path)
        assert "scaled" in " ".join(cube.attrs["guesses"])
    with h5py.File(neon, "r+") as file:
        file["ABBY/Reflectance/Reflectance_Data"].attrs["Scale_Factor"] = 0.0
    with pytest.warns(GuessWarning, match="scaled"):
        hr.open_scene(neon, chunks="auto")


def test_what_neon_leaves_out_is_noted(tmp_path: Path) -> None:
    path = write_neon(tmp_path / "n.h5", COUNTS)
    with h5py.File(path, "r+") as file:
        del file["ABBY/Reflectance/Metadata"]
    notes = " ".join(hr.open_scene(path).attrs["guesses"])
    assert "wavelengths" in notes
    assert "place" in notes


def test_masks_of_tanager_of_another_size_are_noted(tmp_path: Path) -> None:
    path = write_tanager(tmp_path / "t.h5", CUBE)
    with h5py.File(path, "r+") as file:
        fields = file["HDFEOS/GRIDS/HYP/Data Fields"]
        fields["beta_cloud_mask"] = np.ones((ROWS + 1, COLUMNS), "uint8")
    cube = hr.open_scene(path)
    assert not np.isnan(cube.values).any()
    assert "beta_cloud_mask" in " ".join(cube.attrs["guesses"])


@pytest.mark.parametrize(
    ("dtype", "decimal_type", "nodata", "stated"),
    [
        ("int32", "int32", -9999, True),
        ("int16", "int32", -9999, False),
        ("uint8", "uint16", 255, True),
        ("uint8", "uint16", 255, False),
        ("uint16", "uint16", 65535, True),
    ],
)
def test_radiance_of_neon_in_two_parts(
    tmp_path: Path,
    dtype: str,
    decimal_type: str,
    nodata: int,
    stated: bool,  # noqa: FBT001
) -> None:
    path = write_neon(tmp_path / "n.h5", COUNTS)
    values = np.random.default_rng(4).uniform(0, 250, (BANDS, ROWS, COLUMNS))
    whole, decimals = np.floor(values), np.round(50_000 * (values % 1))
    whole[:, 0, 0] = decimals[:, 0, 0] = nodata
    whole[1, 1, 1] = decimals[1, 1, 1] = 0
    with h5py.File(path, "r+") as file:
        file.move("ABBY/Reflectance", "ABBY/Radiance")
        group = file["ABBY/Radiance"]
        del group["Reflectance_Data"]
        for name, part in (("Integer", whole), ("Decimal", decimals)):
            kind = dtype if name == "Integer" else decimal_type
            group[f"Radiance{name}Part"] = part.transpose(1, 2, 0).astype(kind)
            if stated:
                missing = nodata if name == "Integer" else decimals[0, 0, 0]
                group[f"Radiance{name}Part"].attrs["Data_Ignore_Value"] = float(missing)
    expected = whole + decimals / 50_000
    expected[:, 0, 0] = np.nan
    for chunks in (None, {"y": 2}):
        cube = hr.open_scene(path, chunks=chunks)
        np.testing.assert_allclose(cube.values, expected, rtol=1e-6)
        assert cube.attrs["nodata_in_file"] == nodata
        assert cube.attrs["type_in_file"] == dtype
    assert cube.wavelength.size == BANDS
    assert cube.attrs["product"] == "NEON AOP radiance"


# Several values that mean no data.


@pytest.mark.parametrize("chunks", [None, {"y": 2}])
@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("product", ["AVIRIS", "cube"])
def test_every_value_that_means_no_data_counts(
    tmp_path: Path, chunks, dtype: str, product: str
) -> None:
    stated = {"_FillValue": np.nan, "missing_value": -9999.0}
    if dtype == "int16":
        stated = {"_FillValue": -9999, "missing_value": [-9999, -8888], "scale_factor": 1e-4}
    stored = with_hole(CUBE if dtype == "float32" else COUNTS, -9999)
    stored[1, 0, 1] = -8888 if dtype == "int16" else np.nan
    stored = stored.astype(dtype)
    if product == "AVIRIS":
        path = write_aviris(tmp_path / "a.nc", stored)
        with h5py.File(path, "r+") as file:
            file["reflectance/reflectance"].attrs.update(stated)
    else:
        path = tmp_path / "c.nc"
        array = xr.Variable(("wavelength", "y", "x"), stored, stated)
        scene = xr.Dataset({"r": array}, {"wavelength": wavelengths(BANDS)})
        scene.r.encoding = {}
        scene.to_netcdf(path, engine="h5netcdf")
    cube = hr.open_scene(path, chunks=chunks)
    expected = with_hole(CUBE.astype("float64"), np.nan)
    expected[1, 0, 1] = np.nan
    np.testing.assert_allclose(cube.values, expected, rtol=3e-7)
    assert cube.attrs["nodata_in_file"] == -9999
    subset = cube.isel(band=[1, 4]).values
    np.testing.assert_allclose(subset, expected[[1, 4]], rtol=3e-7)


# The array of a product may be named.


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("EMIT", ["reflectance", "/reflectance"]),
        ("AVIRIS", ["reflectance", "reflectance/reflectance"]),
        ("NEON", ["Reflectance_Data", "ABBY/Reflectance/Reflectance_Data"]),
        ("Tanager", ["surface_reflectance", "/HDFEOS/GRIDS/HYP/Data Fields/surface_reflectance"]),
    ],
)
def test_the_array_of_a_product_may_be_named(
    tmp_path: Path, name: str, variables: list[str]
) -> None:
    path = WRITERS[name](tmp_path)
    plain = hr.open_scene(path)
    for variable in variables:
        xr.testing.assert_identical(hr.open_scene(path, variable=variable), plain)
    with h5py.File(path, "r+") as file:
        file["other"] = COUNTS
    np.testing.assert_array_equal(hr.open_scene(path, variable="other", band_axis=0), COUNTS)


def test_an_array_of_a_product_that_holds_no_scene_may_be_named(tmp_path: Path) -> None:
    flags = (CUBE > 0.05).astype("float32")
    path = write_emit_mask(tmp_path / "m.nc", flags, ["Cloud flag"] * BANDS)
    np.testing.assert_array_equal(hr.open_scene(path, variable="mask", band_axis=2), flags)


# Any HDF5 file, if its user says what is what.


@pytest.mark.parametrize("band_axis", [0, 1, 2, -1])
def test_an_array_of_another_file_can_be_named(tmp_path: Path, band_axis: int) -> None:
    stored = np.moveaxis(with_hole(COUNTS, -1), 0, band_axis)
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["deep/cube"] = stored
        file["deep/cube"].attrs.update({"_FillValue": -1, "scale_factor": 1e-4})
    cube = hr.open_scene(tmp_path / "own.h5", variable="deep/cube", band_axis=band_axis)
    expected = CUBE.astype(float)
    expected[:, *HOLE] = np.nan
    np.testing.assert_allclose(cube.values, expected, rtol=3e-7)
