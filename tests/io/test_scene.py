"""Scenes come back as others wrote them: every format and type, nodata, scale and place."""

import gzip
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import rasterio
import rasterio.shutil
from rasterio.control import GroundControlPoint
from rasterio.enums import ColorInterp
from rasterio.transform import Affine

import hsreject as hr
from hsreject import schema
from hsreject.errors import FileError, GuessWarning
from hsreject.io.scene import mark_empty_bands
from tests.io.writers import (
    ENVI_TYPES,
    UTM,
    both_ways,
    envi_scene,
    guesses,
    random_cube,
    write_envi,
    write_with_gdal,
    write_with_spectral,
)

INTERLEAVES = ("bil", "bip", "bsq")
REAL_TYPES = [dtype for dtype in ENVI_TYPES if not dtype.startswith("complex")]


def check_same(cube, written: np.ndarray) -> None:
    assert cube.dims == schema.CUBE_DIMS
    assert cube.dtype == written.dtype
    np.testing.assert_array_equal(cube.values, written)
    np.testing.assert_array_equal(cube.band.values, np.arange(1, len(written) + 1))


@pytest.mark.parametrize("byte_order", [0, 1])
@pytest.mark.parametrize("interleave", INTERLEAVES)
def test_envi_written_by_spectral(tmp_path: Path, interleave, byte_order) -> None:
    written = random_cube("int16")
    header = write_with_spectral(tmp_path, written, interleave=interleave, byte_order=byte_order)
    for path, chunks in product((header, tmp_path / "scene.img"), (None, "auto", (2, 3, 1))):
        cube = hr.open_scene(path, chunks=chunks)
        assert (cube.chunks is None) == (chunks is None)
        check_same(cube, written)
        np.testing.assert_array_equal(cube.wavelength, 400.5 + np.arange(5))


def test_every_envi_type(tmp_path: Path) -> None:
    for dtype, byte_order in product(REAL_TYPES, (0, 1)):
        written = random_cube(dtype)
        path = write_envi(tmp_path, written, interleave="bip", byte_order=byte_order)
        for cube in both_ways(path):
            check_same(cube, written)


@pytest.mark.parametrize("interleave", INTERLEAVES)
def test_envi_written_by_gdal(tmp_path: Path, interleave) -> None:
    written = random_cube("float32")
    path = write_with_gdal(tmp_path / "scene", written, driver="ENVI", interleave=interleave)
    cube = hr.open_scene(path)
    check_same(cube, written)
    assert cube.rio.crs.to_epsg() == 32633
    assert cube.x.values[0] == 364110.0
    assert cube.y.values[0] == 5809950.0


@pytest.mark.parametrize(
    "profile",
    [
        {},
        {"compress": "deflate", "predictor": 2},
        {"tiled": True, "blockxsize": 16, "blockysize": 16, "interleave": "pixel"},
        {"interleave": "band", "BIGTIFF": "YES", "compress": "zstd"},
        {"driver": "COG", "compress": "lzw"},
    ],
)
def test_geotiff_written_by_gdal(tmp_path: Path, profile) -> None:
    for dtype in REAL_TYPES:
        written = random_cube(dtype, (5, 40, 33))
        of_type = {"predictor": 3} if "predictor" in profile and written.dtype.kind == "f" else {}
        path = write_with_gdal(tmp_path / f"{dtype}.tif", written, **(profile | of_type))
        for cube in both_ways(path):
            check_same(cube, written)
            assert cube.rio.crs.to_epsg() == 32633


def test_header_offset_and_trailing_bytes(tmp_path: Path) -> None:
    written = random_cube()
    path = write_envi(tmp_path, written, prefix=b"header" * 9)
    path.write_bytes(path.read_bytes() + b"??")
    check_same(hr.open_scene(path), written)
    assert "longer than its header says by 2 bytes" in guesses(hr.open_scene(path))


@pytest.mark.parametrize(
    ("data_name", "header_name"),
    [
        ("scene", "scene.hdr"),
        ("scene.img", "scene.hdr"),
        ("scene.img", "scene.img.hdr"),
        ("SCENE.DAT", "SCENE.HDR"),
        ("scene.bil", "scene.HDR"),
        ("flight.2024.rdn", "flight.2024.rdn.hdr"),
        ("flight.2024.rdn", "flight.2024.hdr"),
        ("szene_übung", "szene_übung.hdr"),
    ],
)
def test_header_and_data_find_each_other(tmp_path: Path, data_name, header_name) -> None:
    written = random_cube()
    write_envi(tmp_path, written, data_name=data_name, header_name=header_name)
    for given in (data_name, header_name):
        cube = hr.open_scene(tmp_path / given)
        check_same(cube, written)
        assert f"{data_name} is described by {header_name}" in cube.guesses[0]


def test_companion_files_are_not_taken_for_the_data(tmp_path: Path) -> None:
    written = random_cube()
    path = write_envi(tmp_path, written, data_name="scene.dat")
    for name in ("scene.png", "scene.txt", "scene.roi"):
        (tmp_path / name).write_bytes(b"no pixels")
    (tmp_path / "scene.dat.aux.xml").write_text("<PAMDataset></PAMDataset>")
    check_same(hr.open_scene(tmp_path / "scene.hdr"), written)
    check_same(hr.open_scene(path), written)


def test_compressed_envi(tmp_path: Path) -> None:
    written = random_cube()
    path = write_envi(tmp_path, written, fields={"file compression": 1})
    path.write_bytes(gzip.compress(path.read_bytes()))
    check_same(hr.open_scene(path), written)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_headers_in_other_encodings(tmp_path: Path, encoding) -> None:
    written = random_cube(shape=(2, 4, 3))
    folder = tmp_path / "größe"
    folder.mkdir()
    fields = {"description": "{Überflug}", "band names": "{Grün, Rot}"}
    fields |= {"wavelength": "{0.55, 0.65}", "wavelength units": "µm"}
    for cube in both_ways(write_envi(folder, written, encoding=encoding, fields=fields)):
        check_same(cube, written)
        np.testing.assert_array_equal(cube.wavelength, [550, 650])


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_headers_as_people_write_them(tmp_path: Path, line_end) -> None:
    written = random_cube(shape=(2, 4, 3))
    path = write_envi(tmp_path, written)
    text = """ENVI
; made by hand

description = {
  samples = 99 is not a field here }
Samples=3
  LINES   =   4
bands = 2
Data Type = 12
interleave = BSQ
byte order = 0
wavelength = {
 450.5,
 460.5 ,
}
Wavelength Units = Nanometers"""
    (tmp_path / "scene.hdr").write_text(text.replace("\n", line_end), newline="")
    cube = hr.open_scene(path)
    check_same(cube, written)
    np.testing.assert_array_equal(cube.wavelength, [450.5, 460.5])


# No data, scale and place.


@pytest.mark.parametrize(
    ("dtype", "nodata", "read_as"),
    [
        ("uint8", 255, "float32"),
        ("int16", -9999, "float32"),
        ("uint16", 0, "float32"),
        ("int32", -2147483648, "float64"),
        ("float32", -9999, "float32"),
        ("float32", -3.4028234663852886e38, "float32"),
        ("float32", np.nan, "float32"),
        ("float64", -1e34, "float64"),
        ("int64", -9999, "float64"),  # GDAL overlooks the value in 64-bit integers
        ("uint64", 65535, "float64"),
    ],
)
def test_nodata_is_nan(tmp_path: Path, dtype, nodata, read_as) -> None:
    written = random_cube(dtype, (3, 4, 5))
    hole = np.zeros(written.shape, dtype=bool)
    hole[1, 2, 3] = hole[0, 0, 0] = True
    written[hole] = nodata
    tif = write_with_gdal(tmp_path / "scene.tif", written, nodata=nodata)
    envi = write_envi(tmp_path, written, data_name="other", fields={"data ignore value": nodata})
    (tmp_path / "scene.hdr").rename(tmp_path / "other.hdr")
    for cube in both_ways(tif) + both_ways(envi):
        assert cube.dtype == read_as
        np.testing.assert_array_equal(np.isnan(cube.values), hole)
        np.testing.assert_array_equal(cube.values[~hole], written[~hole])


def test_nodata_that_cannot_occur_changes_nothing(tmp_path: Path) -> None:
    cube = envi_scene(tmp_path, data_ignore_value=-9999)
    assert cube.dtype == np.uint16
    assert "-9999 cannot occur in uint16 pixels" in guesses(cube)


def test_reflectance_scale_factor_once_and_never_on_nodata(tmp_path: Path) -> None:
    written = np.array([[[-9999, 5000, 10000]], [[1, -9999, 2]]], dtype=np.int16)
    fields = {"data ignore value": -9999, "reflectance scale factor": 10000.0}
    expected = np.where(written == -9999, np.nan, written / 1e4).astype(np.float32)
    for cube in both_ways(write_envi(tmp_path, written, fields=fields)):
        assert cube.dtype == np.float32
        np.testing.assert_array_equal(cube.values, expected)
        assert "scale_factor" not in cube.attrs | cube.encoding  # nobody scales again


@pytest.mark.parametrize("told", ["in its bands", "in the header beside it"])
def test_band_scales_and_offsets_once(tmp_path: Path, told) -> None:
    """In the header beside a TIFF, as DESIS scenes come; GDAL does not look at it."""
    written = random_cube("int16", (2, 3, 4))
    written[0, 0, 0] = -9999
    expected = written * np.array([0.5, 0.25])[:, None, None] + np.array([1, 0])[:, None, None]
    expected[0, 0, 0] = np.nan
    if told == "in its bands":
        path = write_with_gdal(tmp_path / "scene.tif", written, nodata=-9999)
        with rasterio.open(path, "r+") as dataset:
            dataset.scales, dataset.offsets = (0.5, 0.25), (1.0, 0.0)
    else:
        path = write_with_gdal(tmp_path / "scene.tif", written)
        (tmp_path / "scene.hdr").write_text(
            "ENVI\nfile type = TIFF\ndata ignore value = -9999\n"
            "data gain values = {0.5, 0.25}\ndata offset values = {1, 0}\n"
        )
    for cube in both_ways(path):
        np.testing.assert_array_equal(cube.values, expected.astype(np.float32))
        assert cube.attrs["scaling"] == "times 0.25 to 0.5, plus 0 to 1"


def test_gains_beside_a_scale_factor_are_not_applied_too(tmp_path: Path) -> None:
    gains = "{0.0001, 0.0001, 0.0001}"
    cube = envi_scene(tmp_path, reflectance_scale_factor=10000, data_gain_values=gains)
    expected = (random_cube(shape=(3, 4, 5)) / 1e4).astype(np.float32)
    np.testing.assert_array_equal(cube.values, expected)
    assert "only the factor was applied" in guesses(cube)


def test_bands_without_data_are_marked_bad(tmp_path: Path) -> None:
    written = random_cube("int16", (3, 4, 5))
    written[1] = -9999
    written[0, 0, 0] = -9999
    fields = {"data ignore value": -9999, "bbl": "{1, 1, 0}"}
    path = write_envi(tmp_path, written, fields=fields)
    np.testing.assert_array_equal(hr.open_scene(path).good_band, [True, False, False])
    lazy = hr.open_scene(path, chunks="auto")
    np.testing.assert_array_equal(lazy.good_band, [True, True, False])
    np.testing.assert_array_equal(mark_empty_bands(lazy).good_band, [True, False, False])
    assert schema.valid_pixels(hr.open_scene(path)).values.sum() == 19


def test_rotation_is_kept(tmp_path: Path) -> None:
    written = random_cube(shape=(2, 4, 5))
    across, down = 10 * np.cos(np.radians(30)), 10 * np.sin(np.radians(30))
    wanted = Affine(across, down, 500000, down, -across, 4e6)
    tif = write_with_gdal(tmp_path / "turned.tif", written, transform=wanted)
    place = "{UTM, 1, 1, 500000, 4000000, 10, 10, 33, North, WGS-84, rotation=30}"
    envi = write_envi(tmp_path, written, interleave="bil", fields={"map info": place})
    for cube in both_ways(tif) + both_ways(envi):
        np.testing.assert_array_equal(cube.values, written)
        np.testing.assert_allclose(cube.rio.transform()[:6], wanted[:6], rtol=1e-12)
        assert schema.X not in cube.coords
        assert cube.xc.dims == schema.MAP_DIMS
        # the centre of the pixel in row 2, column 3
        column, row = 3.5, 2.5
        assert float(cube.xc[2, 3]) == pytest.approx(wanted.c + wanted.a * column + wanted.b * row)
        assert float(cube.yc[2, 3]) == pytest.approx(wanted.f + wanted.d * column + wanted.e * row)


def test_pixel_centres_and_reference_system(tmp_path: Path) -> None:
    cube = envi_scene(tmp_path)
    assert schema.X not in cube.coords  # a file without a place
    assert cube.rio.crs is None
    place = "{UTM, 1, 1, 364095, 5809965, 30, 30, 33, North, WGS-84, units=Meters}"
    cube = envi_scene(tmp_path, map_info=place)
    np.testing.assert_array_equal(cube.x, 364110 + 30 * np.arange(5))
    np.testing.assert_array_equal(cube.y, 5809950 - 30 * np.arange(4))
    assert cube.rio.crs.to_epsg() == 32633
    assert cube.rio.transform() == UTM


def test_a_nodata_value_beside_a_mask(tmp_path: Path) -> None:
    """GDAL forgets the value then."""
    written = random_cube("int16", (3, 4, 5))
    written[0, 2, 2] = -9999
    path = write_with_gdal(tmp_path / "scene.tif", written, nodata=-9999)
    mask = np.ones((4, 5), dtype=bool)
    mask[1, 1] = False
    with rasterio.open(path, "r+") as dataset:
        dataset.write_mask(mask)
    for cube in both_ways(path):
        expected = np.where((written == -9999) | ~mask, np.nan, written)
        np.testing.assert_array_equal(cube.values, expected)


def test_bands_with_nodata_values_of_their_own(tmp_path: Path) -> None:
    written = np.arange(36).reshape(3, 3, 4).astype(np.int16)
    write_with_gdal(tmp_path / "plain.tif", written)
    source = "<SourceFilename relativeToVRT='1'>plain.tif</SourceFilename>"
    bands = "".join(
        f"<VRTRasterBand dataType='Int16' band='{band}'>{nodata}<SimpleSource>{source}"
        f"<SourceBand>{band}</SourceBand></SimpleSource></VRTRasterBand>"
        for band, nodata in ((1, ""), (2, "<NoDataValue>15</NoDataValue>"), (3, ""))
    )
    path = tmp_path / "scene.vrt"
    path.write_text(f"<VRTDataset rasterXSize='4' rasterYSize='3'>{bands}</VRTDataset>")
    for cube in both_ways(path):
        np.testing.assert_array_equal(cube.values, np.where(written == 15, np.nan, written))


def test_a_nodata_value_that_only_envi_tags_tell(tmp_path: Path) -> None:
    written = random_cube("int16", (3, 4, 5))
    written[0, 2, 2] = -9999
    path = write_with_gdal(tmp_path / "scene.tif", written)
    with rasterio.open(path, "r+") as dataset:
        dataset.update_tags(ns="ENVI", data_ignore_value="-9999")
    for cube in both_ways(path):
        np.testing.assert_array_equal(cube.values, np.where(written == -9999, np.nan, written))
        assert cube.attrs["nodata_in_file"] == -9999


def test_an_alpha_channel_is_a_mask_and_no_band(tmp_path: Path) -> None:
    written = random_cube("uint8", (4, 3, 4))
    written[3] = 255
    written[3, 1, 1] = 0
    path = write_with_gdal(tmp_path / "scene.tif", written, photometric="RGB", alpha="YES")
    with rasterio.open(path) as dataset:
        assert dataset.colorinterp[3] is ColorInterp.alpha
    cube = hr.open_scene(path)
    assert cube.good_band.values.tolist() == [True] * 3 + [False]
    np.testing.assert_array_equal(np.isnan(cube.values[:3]).any(axis=0), written[3] == 0)
    assert "Band 4 is an alpha channel" in guesses(cube)


@pytest.mark.parametrize("start", [b"II*\0", b"\x93NUMPY", b"MM\0+"])
def test_pixels_that_look_like_another_format(tmp_path: Path, start) -> None:
    written = np.frombuffer(start.ljust(12, b"\1"), dtype=np.uint8).reshape(1, 3, 4)
    for name in ("scene.img", "scene"):
        path = write_envi(tmp_path, written, data_name=name)
        np.testing.assert_array_equal(hr.open_scene(path).values, written)
        path.unlink()


def test_a_virtual_raster(tmp_path: Path) -> None:
    written = random_cube(shape=(3, 4, 5))
    path = write_with_gdal(tmp_path / "scene.tif", written)
    rasterio.shutil.copy(path, tmp_path / "scene.vrt", driver="VRT")
    cube = hr.open_scene(tmp_path / "scene.vrt")
    np.testing.assert_array_equal(cube.values, written)
    assert cube.rio.crs.to_epsg() == 32633


# What a file says and cannot be followed is told.

UTM_33 = "{UTM, 1, 1, 500000, 6000000, 30, 30, 33, North, WGS-84}"


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"map info": "{UTM, 1, 1}"}, "The map info of the header is not understood"),
    ],
)
def test_header_fields_that_cannot_be_followed(tmp_path: Path, fields, note, capfd) -> None:
    path = write_envi(tmp_path, random_cube(), fields=fields)
    assert note in guesses(hr.open_scene(path))
    assert capfd.readouterr().err == ""  # GDAL does not complain on the screen


def test_ground_control_points_are_told(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "scene.tif", random_cube())
    points = [GroundControlPoint(y, x, 5e5 + x, 6e6 - y) for y, x in ((0, 0), (0, 5), (4, 0))]
    with rasterio.open(path, "r+") as dataset:
        dataset.gcps = points, "EPSG:32633"
    assert "by 3 ground control points only, which are not used" in guesses(hr.open_scene(path))


def test_an_arbitrary_map_has_coordinates_and_no_reference_system(tmp_path: Path) -> None:
    place = {"map info": "{Arbitrary, 1, 1, 100, 200, 0.5, 0.5, 0, North}"}
    cube = hr.open_scene(write_envi(tmp_path, random_cube(), fields=place))
    assert cube.rio.crs is None
    assert cube.x.values[0] == 100.25


def test_metres_called_degrees_are_told(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "scene.tif", random_cube(), crs="EPSG:4326")
    assert "not degrees" in guesses(hr.open_scene(path))


def test_pixels_beside_an_erdas_file(tmp_path: Path) -> None:
    """Large ERDAS files keep their pixels in a second one: its length counts."""
    path, size = tmp_path / "scene.img", {"width": 8_200, "height": 8_200}
    profile = {"driver": "HFA", "count": 1, "dtype": "uint8", "crs": "EPSG:32633"}
    with rasterio.open(path, "w", transform=UTM, USE_SPILL="YES", **profile, **size):
        pass
    assert (tmp_path / "scene.ige").stat().st_size > 8_200**2
    assert hr.open_scene(path)[:, :2, :2].values.max() == 0


def test_an_empty_path_is_not_a_folder(tmp_path: Path, monkeypatch) -> None:
    write_with_gdal(tmp_path / "scene.tif", random_cube("uint8", (2, 4, 5)))
    monkeypatch.chdir(tmp_path)
    for path in ("", " "):
        with pytest.raises(FileError, match="empty"):
            hr.open_scene(path)


def test_a_guess_of_the_axis_that_the_values_do_not_support_is_said_aloud(tmp_path: Path) -> None:
    np.save(tmp_path / "scene.npy", np.random.default_rng(0).random((6, 90, 200)))
    with pytest.warns(GuessWarning, match="band_axis"):
        assert hr.open_scene(tmp_path / "scene.npy").shape == (6, 90, 200)
