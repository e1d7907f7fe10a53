"""Maps: read back by rasterio, spectral and GDAL's side-file parser, and as they were by us."""

from xml.etree import ElementTree as ET

import dask.array as da
import numpy as np
import pytest
import rasterio
import spectral
import xarray as xr
from rio_cogeo.cogeo import cog_validate

import hsreject as hr
from hsreject import ClassTable, schema
from hsreject.errors import FileError, InputError
from hsreject.io.grid import PixelGrid
from hsreject.io.maps import write_maps
from tests.io.writers import write_with_gdal
from tests.io.written_maps import (
    CLASSES,
    NORTH_UP,
    ROTATED,
    SHEARED,
    confidence_map,
    placed,
    probability_field,
    reject_map,
)

DIGITS = 1e-14  # GDAL writes fifteen of them into a header


@pytest.mark.parametrize("transform", [NORTH_UP, ROTATED, SHEARED], ids=["north", "rot", "shear"])
def test_geotiff_keeps_values_place_and_nodata_exactly(tmp_path, transform) -> None:
    for dtype in ("uint8", "uint16"):
        labels = placed(reject_map(dtype=dtype), transform)
        hr.write_map(labels, tmp_path / f"{dtype}.tif")
        with rasterio.open(tmp_path / f"{dtype}.tif") as file:
            np.testing.assert_array_equal(file.read(1), labels.values)
            assert file.dtypes == (dtype,)
            assert file.transform == transform  # equal, not near
            assert file.crs.to_epsg() == 32633
            assert file.nodata == schema.nodata_label(dtype)


@pytest.mark.parametrize("shape", [(40, 50), (1, 1), (700, 1300)])
def test_geotiffs_are_valid_cloud_optimised(tmp_path, shape) -> None:
    for array in (reject_map(shape), confidence_map(shape)):
        path = tmp_path / f"{array.name}.tif"
        hr.write_map(array, path)
        assert cog_validate(path, strict=True, quiet=True) == (True, [], [])
        with rasterio.open(path) as file:
            assert file.profile["tiled"] or max(shape) < 512
            assert file.compression is not None
            assert bool(file.overviews(1)) == (max(shape) > 512)


def test_overviews_show_the_most_frequent_class(tmp_path) -> None:
    # the colour of "between" is the mean of three pixels of "many" and one of "few"
    colors = ["#ff0000", "#0000ff", "#bf0040"]
    labels = schema.attach_classes(
        reject_map((1100, 1100)), ClassTable.from_names(["many", "few", "between"], colors=colors)
    )
    labels.values[:] = 1
    labels.values[::2, ::2] = 2
    labels.values[:64] = 255
    hr.write_map(labels, tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif", overview_level=0) as file:
        small = file.read(1)
    assert (small[32:] == 1).all()
    assert (small[:32] == 255).all()


def test_gdal_finds_names_and_colours(tmp_path) -> None:
    hr.write_map(reject_map(), tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif") as file:
        colors, tags = file.colormap(1), file.tags(1)
        assert file.descriptions == ("label_with_rejection",)
        assert file.files == [str(tmp_path / "map.tif"), str(tmp_path / "map.tif.aux.xml")]
    assert colors[0] == (0, 0, 0, 255)
    assert colors[1] == (0x00, 0x72, 0xB2, 255)
    assert colors[255][3] == 0  # no data is transparent
    assert tags["zero_meaning"] == "rejected"
    assert ClassTable.from_attrs(
        {"flag_values": tags["flag_values"].split(), "flag_meanings": tags["flag_meanings"]}
    ).values == (1, 2)
    assert gdal_categories(tmp_path / "map.tif", tmp_path) == ["rejected", *CLASSES.names]


def gdal_categories(path, folder) -> list[str]:
    """Return the category names as GDAL understood them: it writes them into a VRT."""
    rasterio.shutil.copy(path, folder / "copy.vrt", driver="VRT")
    band = ET.parse(folder / "copy.vrt").getroot().find("VRTRasterBand")
    return [category.text for category in band.find("CategoryNames")]


@pytest.mark.parametrize("suffix", [".tif", ".img"])
def test_floats_and_fields_survive(tmp_path, suffix) -> None:
    maps = {"confidence": confidence_map(), "probability": probability_field()}
    write_maps({tmp_path / f"{name}{suffix}": array for name, array in maps.items()})
    for name, array in maps.items():
        with rasterio.open(tmp_path / f"{name}{suffix}") as file:
            np.testing.assert_array_equal(file.read().squeeze(), array.values)
            assert np.isnan(file.nodata)
            assert file.dtypes[0] == array.dtype
            assert file.descriptions == (CLASSES.names if file.count == 2 else ("confidence",))
        back = hr.open_map(tmp_path / f"{name}{suffix}")
        assert back.dims == array.dims
        np.testing.assert_array_equal(back, array)
    assert schema.class_table(back).names == CLASSES.names


def test_maps_without_a_table_get_plain_names(tmp_path) -> None:
    rejected = (reject_map() == 0).rename("rejected")
    hr.write_map(rejected, tmp_path / "rejected.tif")
    with rasterio.open(tmp_path / "rejected.tif") as file:
        np.testing.assert_array_equal(file.read(1), rejected.values)
    assert gdal_categories(tmp_path / "rejected.tif", tmp_path) == ["not rejected", "rejected"]
    unnamed = xr.DataArray(np.array([[0, 1, 4]]), dims=schema.MAP_DIMS)
    hr.write_map(placed(unnamed), tmp_path / "unnamed.tif")
    assert gdal_categories(tmp_path / "unnamed.tif", tmp_path)[4] == "class 4"


# spectral reads in a way that NumPy 2.5 will give up
@pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")
@pytest.mark.parametrize("transform", [NORTH_UP, ROTATED], ids=["north", "rot"])
def test_envi_classification_is_read_by_spectral_and_gdal(tmp_path, transform) -> None:
    labels = placed(reject_map(), transform)
    hr.write_map(labels, tmp_path / "map.img")
    image = spectral.envi.open(tmp_path / "map.hdr")
    np.testing.assert_array_equal(np.asarray(image.load()).squeeze(), labels.values)
    header = image.metadata
    assert header["file type"] == "ENVI Classification"
    assert header["classes"] == "3"
    assert header["class names"] == ["rejected", *CLASSES.names]
    assert header["class lookup"][3:6] == ["0", "114", "178"]
    assert header["data ignore value"] == "255"
    with rasterio.open(tmp_path / "map.img") as file:
        np.testing.assert_allclose(file.transform, transform, rtol=DIGITS)
        assert file.crs.to_epsg() == 32633
        assert file.nodata == 255
        assert file.colormap(1)[1] == (0x00, 0x72, 0xB2, 255)
    assert gdal_categories(tmp_path / "map.img", tmp_path) == ["rejected", *CLASSES.names]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.vrt", "map.hdr", "map.img"]


def test_envi_says_what_it_cannot_hold(tmp_path) -> None:
    listed, braced = (ClassTable.from_names([name, "ice"]) for name in ("wood, wet", "wood {wet}"))
    for array, message in (
        (placed(reject_map(), SHEARED), r"sheared or flipped.*GeoTIFF"),
        (schema.attach_classes(reject_map(), listed), "the name 'wood, wet'"),
        (schema.attach_classes(probability_field(), braced), r"the name 'wood \{wet\}'"),
    ):
        with pytest.raises(InputError, match=message):
            hr.write_map(array, tmp_path / "map.img")
    assert list(tmp_path.iterdir()) == []


def test_the_header_of_another_envi_file_is_not_replaced(tmp_path) -> None:
    hr.write_map(reject_map(), tmp_path / "map.dat")
    before = (tmp_path / "map.hdr").read_bytes()
    with pytest.raises(FileError, match=r"map\.hdr.*belongs to map\.dat"):
        hr.write_map(confidence_map(), tmp_path / "map.img", overwrite=True)
    assert (tmp_path / "map.hdr").read_bytes() == before
    hr.write_map(confidence_map(), tmp_path / "map.dat", overwrite=True)
    assert hr.open_map(tmp_path / "map.dat").dtype.kind == "f"


@pytest.mark.parametrize("fill", [-9, np.iinfo(np.int64).max])
def test_wide_integers_shrink_and_their_nodata_follows(tmp_path, fill) -> None:
    labels = reject_map().astype(np.int64)
    labels.values[labels.values == 255] = fill
    stated = labels.assign_attrs(_FillValue=fill) if fill < 0 else labels
    hr.write_map(stated, tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.dtypes == ("uint8",)
        np.testing.assert_array_equal(file.read(1), reject_map().values)


def test_what_is_not_a_map_is_refused(tmp_path) -> None:
    strange = reject_map()
    strange.values[5, 5] = 7
    for array, name, message in (
        (strange, "map.tif", "the value 7, which its class table does not name"),
        (reject_map(), "map.jpg", ".tif"),
        (reject_map(), "map", "format"),
        (reject_map().astype(complex), "map.tif", "complex128"),
        (reject_map().expand_dims("time"), "map.tif", "dims"),
        (reject_map().isel(x=slice(0)), "map.tif", "empty"),
        (reject_map().values[0], "map.tif", r"\(50,\)"),
        (np.ma.masked_equal(reject_map().values, 255), "map.tif", "masked"),
    ):
        with pytest.raises(InputError, match=message):
            hr.write_map(array, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_lazy_maps_are_computed_once_and_block_by_block(tmp_path) -> None:
    computed: list[tuple[int, ...]] = []

    def classify(block: np.ndarray) -> np.ndarray:
        computed.append(block.shape)
        return block

    labels = reject_map((600, 700))
    shared = da.from_array(labels.values, chunks=(130, 256)).map_blocks(
        classify, dtype=np.uint8, meta=np.empty((0, 0), np.uint8)
    )
    lazy = labels.copy(data=shared)
    told: list[tuple[float, float | None]] = []
    write_maps(
        {tmp_path / "label.tif": lazy, tmp_path / "half.tif": (lazy / 2).rename("half")},
        progress=lambda stage, done, total: told.append((done, total)),
    )
    assert len(computed) == 5 * 3  # one call a block, for two maps
    assert max(computed) <= (130, 256)
    with rasterio.open(tmp_path / "label.tif") as file:
        np.testing.assert_array_equal(file.read(1), labels.values)
    with rasterio.open(tmp_path / "half.tif") as file:
        np.testing.assert_array_equal(file.read(1), labels.values / 2)
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


# Plain arrays, with the place and the classes beside them.


@pytest.mark.parametrize("transform", [NORTH_UP, ROTATED, SHEARED], ids=["north", "rot", "shear"])
def test_plain_arrays_become_the_same_file(tmp_path, transform) -> None:
    place = {"transform": transform, "crs": "EPSG:32633"}
    named = {0: "rejected", 1: CLASSES.names[0], 2: CLASSES.names[1]}
    field = probability_field()
    for given, words in (
        (reject_map(), {"classes": named}),
        (confidence_map(), {}),
        (field, {"classes": CLASSES.names}),
    ):
        array = placed(given.rename(None), transform).assign_attrs(zero_meaning="rejected")
        hr.write_map(array, tmp_path / "array.tif", overwrite=True)
        for plain in (array.values, da.from_array(array.values, chunks=-1)):
            hr.write_map(plain, tmp_path / "plain.tif", overwrite=True, **place, **words)
            for end in (".tif", *((".qml",) if array.ndim == 2 else ())):
                files = [tmp_path / f"{name}{end}" for name in ("array", "plain")]
                assert files[0].read_bytes() == files[1].read_bytes()
    hr.write_map(field.values, tmp_path / "plain.tif", overwrite=True)
    assert schema.class_table(hr.open_map(tmp_path / "plain.tif")) == ClassTable.plain([1, 2])


def test_what_is_given_goes_before_what_the_array_says(tmp_path) -> None:
    colored = ClassTable.from_names({1: "a", 2: "b", 9: "c"}, colors=["#010203"] * 3)
    for old, new in ((ROTATED, NORTH_UP), (NORTH_UP, ROTATED)):
        labels = placed(reject_map(), old)
        labels = PixelGrid.of(labels).attach(labels)  # with the coordinates of pixels, too
        hr.write_map(
            labels,
            tmp_path / "map.tif",
            transform=tuple(new)[:6],
            crs=32632,
            classes=colored,
            overwrite=True,
        )
        back = hr.open_map(tmp_path / "map.tif")
        assert PixelGrid.of(back).transform == new
        assert PixelGrid.of(back).crs.to_epsg() == 32632
        assert schema.class_table(back) == colored
        assert schema.zero_meaning(back) == "rejected"


def test_pixels_without_data_may_have_any_value(tmp_path) -> None:
    path = tmp_path / "map.tif"
    for values, nodata, expected in (
        (np.array([[1, -9]]), -9, [[1, 255]]),
        (np.array([[1, 7]]), 7, [[1, 255]]),
        (np.array([[1, 0]], dtype=np.uint16), 0, [[1, 255]]),
        (np.array([[1, 255, 9]], dtype=np.uint8), 9, [[1, 255, 255]]),
        (np.array([[1, 255]], dtype=np.uint8), None, [[1, 255]]),
        (np.array([[1, 65535]], dtype=np.uint16), None, [[1, 65535]]),
        (np.array([[0.5, -9.0]]), -9, [[0.5, np.nan]]),
    ):
        hr.write_map(values, path, nodata=nodata, overwrite=True)
        back = hr.open_map(path)
        np.testing.assert_array_equal(back, expected)
        if back.dtype.kind != "f":
            assert schema.class_table(back) == ClassTable.plain([1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"transform": (30, 0, 5e5)}, r"\(30, 0, 500000.0\)"),
        ({"transform": (0, 0, 0, 0, 0, 0)}, "from_gdal"),
        ({"transform": NORTH_UP.to_gdal()}, "from_gdal"),
        ({"transform": "north up"}, "north up"),
        ({"transform": (np.nan, 0, 0, 0, 1, 0)}, "six numbers"),
        ({"crs": "EPSG:Lisbon"}, "EPSG:Lisbon"),
        ({"classes": ["soil", "soil"]}, "soil"),
        ({"classes": ["soil"]}, "the value 2"),
        ({"classes": {"soil": 1}}, "soil"),
    ],
)
def test_wrong_words_beside_an_array(tmp_path, words, message) -> None:
    with pytest.raises(InputError, match=message):
        hr.write_map(reject_map().values, tmp_path / "map.tif", **words)
    with pytest.raises(InputError, match="3 classes"):
        hr.write_map(np.ones((2, 4, 4)), tmp_path / "map.tif", classes="abc")
    assert list(tmp_path.iterdir()) == []


# Opened again.


@pytest.mark.parametrize("transform", [NORTH_UP, ROTATED], ids=["north", "rot"])
@pytest.mark.parametrize("suffix", [".tif", ".img"])
def test_reject_maps_come_back(tmp_path, suffix, transform) -> None:
    for dtype in ("uint8", "uint16"):
        labels = placed(reject_map(dtype=dtype), transform)
        hr.write_map(labels, tmp_path / f"map{suffix}", overwrite=True)
        for chunks in (None, "auto"):
            back = hr.open_map(tmp_path / f"map{suffix}", chunks=chunks)
            assert back.dtype == dtype
            assert back.name == schema.LABEL_WITH_REJECTION
            assert back.dims == schema.MAP_DIMS
            np.testing.assert_array_equal(back, labels)
            assert schema.class_table(back) == CLASSES
            assert schema.zero_meaning(back) == "rejected"
            rtol = 0 if suffix == ".tif" else DIGITS
            np.testing.assert_allclose(PixelGrid.of(back).transform, transform, rtol=rtol)
            assert PixelGrid.of(back).crs.to_epsg() == 32633


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@pytest.mark.parametrize("suffix", [".tif", ".img"])
def test_a_reference_that_lies_nowhere_comes_back(tmp_path, suffix) -> None:
    _, labels = hr.load_indian_pines()
    path = tmp_path / f"labels{suffix}"
    hr.write_map(labels, path)
    with rasterio.open(path) as file:
        assert file.crs is None
        assert file.colormap(1)[0] == (255, 255, 255, 255)
        assert file.nodata == 255  # no reference is not the same as no data
    assert gdal_categories(path, tmp_path)[0] == "no reference"
    assert schema.zero_meaning(hr.open_map(path)) == "no reference"
    for back in (hr.open_map(path), hr.open_labels(path)):
        np.testing.assert_array_equal(back, labels)
        assert schema.class_table(back) == schema.class_table(labels)


@pytest.mark.parametrize("suffix", [".tif", ".img"])
def test_names_outlive_a_lost_side_file(tmp_path, suffix) -> None:
    hr.write_map(reject_map(), tmp_path / f"map{suffix}")
    (tmp_path / f"map{suffix}.aux.xml").unlink(missing_ok=True)
    back = hr.open_map(tmp_path / f"map{suffix}")
    assert schema.class_table(back) == CLASSES
    assert schema.zero_meaning(back) == "rejected"


def test_a_file_of_others_without_names_is_read(tmp_path) -> None:
    values = np.array([[[0, 7, -1]]], dtype=np.int16)
    path = write_with_gdal(tmp_path / "map.tif", values, nodata=-1)
    back = hr.open_map(path)
    assert back.values.tolist() == [[0, 7, 255]]
    assert schema.class_table(back) == ClassTable.plain([7])
    assert hr.open_map(path, chunks="auto").name is None


def test_what_is_not_a_map_is_not_opened(tmp_path) -> None:
    with pytest.raises(FileError, match="nothing"):
        hr.open_map(tmp_path / "nothing.tif")
    for values, message in (
        (np.zeros((2, 1, 2)), "2 bands of integers"),
        (np.full((1, 1, 2), -5), "between 0 and 65534"),
    ):
        with pytest.raises(FileError, match=message):
            hr.open_map(write_with_gdal(tmp_path / "map.tif", values.astype(np.int32)))


@pytest.mark.parametrize("suffix", [".tif", ".img"])
def test_gaps_between_classes_and_a_missing_reference_system_come_back(tmp_path, suffix) -> None:
    table = ClassTable.from_names(["soil", "water"], values=[3, 200])
    labels = xr.DataArray(np.array([[0, 3], [200, 3]], np.uint8), dims=schema.MAP_DIMS)
    labels = schema.attach_classes(labels, table).rio.write_transform(NORTH_UP)
    hr.write_map(labels, tmp_path / f"map{suffix}")
    names = gdal_categories(tmp_path / f"map{suffix}", tmp_path)
    assert (names[3], names[200]) == ("soil", "water")
    back = hr.open_map(tmp_path / f"map{suffix}")
    np.testing.assert_array_equal(back, labels)
    assert schema.class_table(back) == table
    assert PixelGrid.of(back).crs is None
    rtol = 0 if suffix == ".tif" else DIGITS
    np.testing.assert_allclose(PixelGrid.of(back).transform, NORTH_UP, rtol=rtol)
    reference = hr.open_labels(tmp_path / f"map{suffix}")
    assert schema.class_table(reference) == table
