"""Polygons and the sieve, against GDAL, shapely and a slow sieve written from its definition."""

import dask.array as da
import numpy as np
import pyogrio
import pytest
import shapely
import xarray as xr
from affine import Affine
from rasterio.features import shapes
from scipy import ndimage

import hsreject as hr
from hsreject.errors import InputError
from hsreject.handover import regions
from hsreject.io.grid import PixelGrid

NODATA = 255


def random_map(seed: int, *, height: int = 23, width: int = 31) -> np.ndarray:
    """Return a map of three classes with rejected pixels, holes and specks."""
    rng = np.random.default_rng(seed)
    fields = ndimage.gaussian_filter(rng.normal(size=(4, height, width)), (0, 1, 1))
    label = fields.argmax(axis=0).astype(np.uint8)
    label[rng.random(label.shape) < 0.05] = NODATA
    return label


def place(label: np.ndarray, crs: str = "EPSG:32633", size: float = 50.0) -> xr.DataArray:
    grid = PixelGrid.of(xr.DataArray(label, dims=("y", "x")))
    array = xr.DataArray(label, dims=("y", "x"))
    return grid.stated((size, 0, 10.0, 0, -size, 60.0), crs).attach(array)


def slow_sieve(label: np.ndarray, minimum: int) -> np.ndarray:
    """Sieve by the definition: regions as sets of pixels, joined in rounds."""
    found: list[dict] = []
    for value in np.unique(label[(label > 0) & (label < NODATA)]):
        numbered, count = ndimage.label(label == value)
        for number in range(1, count + 1):
            pixels = set(map(tuple, np.argwhere(numbered == number).tolist()))
            found.append({"value": value, "pixels": pixels, "first": min(pixels)})
    while (goal := one_round(found, minimum)) != list(range(len(found))):
        for i in range(len(found)):
            end = i
            while goal[end] != end:
                end = goal[end]
            found[end]["pixels"] = found[end]["pixels"] | found[i]["pixels"]
        found = [region for i, region in enumerate(found) if goal[i] == i]
    sieved = label.copy()
    for region in found:
        sieved[tuple(np.transpose(list(region["pixels"])))] = region["value"]
    return sieved


def one_round(found: list[dict], minimum: int) -> list[int]:
    """Return the region that each one joins: itself, or its largest neighbour."""
    owner = {pixel: i for i, region in enumerate(found) for pixel in region["pixels"]}
    rank = [(len(region["pixels"]), tuple(-x for x in region["first"])) for region in found]
    goal = list(range(len(found)))
    for i, region in enumerate(found):
        beside = {
            owner.get((r + dr, c + dc), i)
            for r, c in region["pixels"]
            for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0))
        }
        best = max(beside, key=rank.__getitem__)
        if len(region["pixels"]) < minimum and rank[best] > rank[i]:
            goal[i] = best
    return goal


@pytest.mark.parametrize("seed", range(8))
def test_polygons_are_those_of_gdal(seed) -> None:
    label = random_map(seed)
    polygons = hr.polygonize(label)
    expected: dict[int, list] = {0: [], 1: [], 2: [], 3: []}
    for geometry, value in shapes(label, connectivity=4, transform=Affine(1, 0, 0, 0, -1, 0)):
        if value != NODATA:
            expected[int(value)].append(shapely.geometry.shape(geometry))
    assert shapely.is_valid(polygons.geometry).all()
    np.testing.assert_array_equal(shapely.area(polygons.geometry), polygons.area)
    for value, theirs in expected.items():
        ours = polygons.geometry[polygons.value == value]
        assert len(ours) == len(theirs)
        assert all(shapely.equals(one, theirs).sum() == 1 for one in ours)
    np.testing.assert_array_equal(polygons.rejected_share, polygons.value == 0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("minimum", [2, 5, 40, 10_000])
def test_the_sieve_is_that_of_its_definition(seed, minimum) -> None:
    label = random_map(seed)
    np.testing.assert_array_equal(hr.sieve(label, minimum).values, slow_sieve(label, minimum))


@pytest.mark.parametrize("seed", range(4))
def test_nothing_rejected_becomes_a_class_nor_the_reverse(seed) -> None:
    label = random_map(seed)
    sieved = hr.sieve(label, "9px").values
    for fixed in (0, NODATA):
        np.testing.assert_array_equal(sieved == fixed, label == fixed)


@pytest.mark.parametrize("rows", [1, 3, 7, 512])
def test_seams_between_blocks_change_nothing(monkeypatch, rows) -> None:
    label = random_map(1)
    confidence = np.random.default_rng(0).random(label.shape)
    whole = hr.polygonize(label, confidence, minimum_area=6)
    lazy = xr.DataArray(da.from_array(label, chunks=(4, 5)), dims=("y", "x"), name="label")
    expected = hr.sieve(label, 6)
    monkeypatch.setattr(regions, "ROWS", rows)
    monkeypatch.setattr("hsreject.handover.sieve.ROWS", rows)
    cut = hr.polygonize(lazy, confidence, minimum_area=6)
    assert shapely.equals_exact(whole.geometry, cut.geometry).all()
    np.testing.assert_allclose(whole.mean_confidence, cut.mean_confidence, rtol=1e-6)
    sieved = hr.sieve(lazy, 6)
    assert sieved.chunks is not None
    xr.testing.assert_identical(sieved.compute(), expected)


def test_no_polygon_is_smaller_than_the_minimum_and_each_says_what_is_rejected_in_it() -> None:
    label = random_map(2)
    label[label == NODATA] = 0
    confidence = np.random.default_rng(0).random(label.shape)
    polygons = hr.polygonize(label, confidence, minimum_area="12px")
    assert polygons.area.min() >= 12
    assert polygons.area.sum() == label.size
    assert ((polygons.rejected_share > 0) & (polygons.value > 0)).any()
    rows, columns = np.indices(label.shape)
    for i in range(len(polygons)):
        inside = shapely.contains_xy(polygons.geometry[i], columns + 0.5, -rows - 0.5)
        assert inside.sum() == polygons.area[i]
        assert polygons.rejected_share[i] == pytest.approx((label[inside] == 0).mean())
        assert polygons.mean_confidence[i] == pytest.approx(confidence[inside].mean(), rel=1e-6)
        assert polygons.least_confidence[i] == pytest.approx(confidence[inside].min(), rel=1e-6)


def test_areas_are_in_hectares_and_on_the_ellipsoid() -> None:
    label = place(np.array([[1, 1], [2, 2]], dtype=np.uint8))
    np.testing.assert_allclose(hr.polygonize(label).area, [0.5, 0.5])
    np.testing.assert_allclose(hr.polygonize(label, minimum_area="0.6ha").area, [1.0])
    assert len(hr.polygonize(label, minimum_area="5000 m2")) == 2
    values = np.repeat(np.array([[1], [2]], dtype=np.uint8), 300, axis=0)
    degrees = place(values, "EPSG:4326", size=0.1)
    upper, lower = hr.polygonize(degrees).area  # 60 to 30 and 30 to 0 degrees north
    assert upper / lower == pytest.approx((np.sin(np.pi / 3) - 0.5) / 0.5, rel=0.01)


@pytest.mark.parametrize("ending", ["gpkg", "fgb", "geojson"])
def test_files_hold_the_polygons_with_their_columns(tmp_path, ending) -> None:
    label = hr.schema.attach_classes(place(random_map(3)), hr.ClassTable.from_names("abc"))
    confidence = label.astype(np.float32) / 4
    polygons = hr.polygonize(label, confidence, minimum_area="1ha")
    path = tmp_path / f"map.{ending}"
    polygons.write(path)
    table = pyogrio.read_dataframe(path)
    assert len(table) == len(polygons)
    assert set(table.columns) == {
        "class", "name", "area_ha", "mean_confidence", "least_confidence", "rejected_share",
        "geometry",
    }  # fmt: skip
    assert set(table["name"]) <= {"a", "b", "c", "rejected"}
    assert table["area_ha"].sum() == pytest.approx(polygons.area.sum())
    assert table.crs.to_epsg() == (4326 if ending == "geojson" else 32633)
    with pytest.raises(hr.errors.FileError, match="overwrit"):
        polygons.write(path)


def test_a_sieved_map_is_another_map_to_its_certificate() -> None:
    rng = np.random.default_rng(0)
    label = random_map(4, height=60, width=60)
    label[label == 0] = 1
    confidence = rng.random(label.shape)
    sample = hr.draw_sample(label, 300, seed=1).with_reference(np.where(label == NODATA, 0, label))
    certificate = hr.certify(label, confidence, sample)
    certificate.apply(label, confidence)
    with pytest.raises(InputError, match="map"):
        certificate.apply(hr.sieve(label, 8), confidence)


@pytest.mark.parametrize("area", ["", "12 acres", "-1ha", "0", "1.2.3px", "nan"])
def test_an_area_that_is_none_is_refused(area) -> None:
    with pytest.raises(InputError, match="12px"):
        hr.sieve(random_map(0), area)


def test_hectares_need_a_place() -> None:
    with pytest.raises(InputError, match="pixels"):
        hr.polygonize(random_map(0), minimum_area="1ha")


def test_too_many_polygons_name_the_remedy(monkeypatch) -> None:
    monkeypatch.setattr("hsreject.handover.polygonize.MOST", 10)
    with pytest.raises(InputError, match="minimum-area"):
        hr.polygonize(random_map(0))


def test_a_map_of_other_software_without_names_is_sieved_and_written(tmp_path) -> None:
    label = place(random_map(3))
    label.rio.write_nodata(NODATA).rio.to_raster(tmp_path / "plain.tif")
    smooth = hr.sieve(hr.open_map(tmp_path / "plain.tif", chunks=(1, 8, -1)), 4)
    hr.write_map(smooth, tmp_path / "sieved.tif")
    np.testing.assert_array_equal(hr.open_map(tmp_path / "sieved.tif"), hr.sieve(label, 4))
