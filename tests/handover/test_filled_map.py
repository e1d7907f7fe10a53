"""Filled maps: flags and second choices pixel by pixel, and the file as GDAL sees it."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest
import rasterio
import xarray as xr

import hsreject as hr
from hsreject.errors import FileError
from hsreject.handover.filled_map import filled_raster, open_filled_map
from hsreject.io.maps import write_maps
from tests.handover.test_polygons_and_sieve import place, random_map


@pytest.fixture
def maps() -> xr.Dataset:
    rng = np.random.default_rng(0)
    label = random_map(0)
    p = rng.dirichlet([1, 1, 1], size=label.shape).transpose(2, 0, 1)
    probability = xr.DataArray(
        p, dims=("category", "y", "x"), coords={"category": [1, 2, 3]}, attrs={"calibrated": 1}
    )
    best = np.where(label == 255, 255, p.argmax(axis=0) + 1).astype(np.uint8)
    on_map = hr.schema.attach_classes(place(best), hr.ClassTable.from_names(["a", "b b", "c"]))
    unknown = rng.random(label.shape) < 0.1
    filled = hr.filled_map(on_map, label == 0, probability=probability, unknown=unknown)
    return filled.assign(truth=(("y", "x"), label), novel=(("y", "x"), unknown))


def test_every_pixel_has_a_class_a_flag_and_a_second_choice(maps) -> None:
    label, unknown = maps["truth"].values, maps["novel"].values
    expected = np.select([label == 255, unknown, label == 0], [0, 3, 2], 1)
    np.testing.assert_array_equal(maps["flag"], expected)
    has_data = label != 255
    assert (maps["label"].values[has_data] <= 3).all()
    assert (maps["second"] != maps["label"]).values[has_data].all()
    assert (maps["second"].values[~has_data] == 255).all()
    assert (maps["label_probability"].values[has_data] >= 1 / 3).all()


def test_the_file_has_named_bands_and_comes_back(maps, tmp_path) -> None:
    path = tmp_path / "map_filled.tif"
    write_maps({path: filled_raster(maps)})
    with rasterio.open(path) as file:
        assert file.descriptions == ("label", "flag", "second", "probability_percent")
        assert file.dtypes == ("uint8",) * 4
        assert file.tags()["flag"] == "0 no data, 1 kept, 2 rejected, 3 novel, 4 group"
        assert rasterio.enums.ColorInterp.alpha not in file.colorinterp
    for band, name in enumerate(("", "_flag", "_second", "_probability_percent"), start=1):
        style = ET.parse(tmp_path / f"map_filled{name}.qml").find("pipe/rasterrenderer")
        assert style.get("band") == str(band)
        assert style.get("type") == ("singlebandpseudocolor" if band == 4 else "paletted")
        if name == "_flag":
            entries = {one.get("value"): one.get("label") for one in style.iter("paletteEntry")}
            assert (entries["1"], entries["2"]) == ("kept", "rejected")
    (tmp_path / "map_filled_flag.qml").write_text("<!DOCTYPE qgis>")  # as QGIS saves one
    write_maps({path: filled_raster(maps[["label", "flag"]])}, overwrite=True)
    assert (tmp_path / "map_filled_flag.qml").read_text() == "<!DOCTYPE qgis>"
    write_maps({path: filled_raster(maps)}, overwrite=True)
    back = open_filled_map(path, chunks=(1, 8, 8)).compute()
    for name in ("label", "flag", "second"):
        np.testing.assert_array_equal(back[name], maps[name])
    assert hr.schema.class_table(back["label"]).names == ("a", "b b", "c")
    np.testing.assert_allclose(back["label_probability"], maps["label_probability"], atol=0.006)


def test_without_calibration_there_is_no_probability(maps) -> None:
    plain = hr.filled_map(maps["label"], maps["flag"] == 2)
    assert set(plain) == {"label", "flag"}


def test_lazy_maps_stay_lazy(maps) -> None:
    p = xr.DataArray(
        np.full((3, *maps["label"].shape), 1 / 3),
        dims=("category", "y", "x"),
        coords={"category": [1, 2, 3]},
    )
    filled = hr.filled_map(
        maps["label"].chunk({"y": 8}), maps["novel"].chunk(), probability=p.chunk()
    )
    assert all(filled[name].chunks is not None for name in ("flag", "second"))


def test_another_raster_is_refused(tmp_path) -> None:
    hr.write_map(place(random_map(0)), tmp_path / "map.tif")
    with pytest.raises(FileError, match="map_filled"):
        open_filled_map(tmp_path / "map.tif")
