"""Files on this machine ask no server, whatever they name; those of a server still open."""

from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import geopandas
import h5py
import numpy as np
import pyogrio
import pytest
import rasterio
import rioxarray  # noqa: F401 - registers the .rio accessor
import shapely
import xarray as xr

import hsreject as hr
from hsreject.errors import FileError, HsrejectError
from tests.io.products.writers import (
    reflectance,
    write_neon,
)
from tests.io.web_server import serving
from tests.io.writers import random_cube, write_virtual, write_with_gdal

LABEL = xr.DataArray(np.tile(np.array([1, 2], "uint8"), (6, 4)), dims=("y", "x"))


def n_asked(url: str) -> int:
    with urlopen(f"{url}/asked") as answer:
        return int(answer.read())


def _overviews_beside(path: Path, url: str) -> Path:
    write_with_gdal(path, random_cube("uint8", (1, 4, 5)))
    path.with_name(f"{path.name}.aux.xml").write_text(
        '<PAMDataset><Metadata domain="OVERVIEWS"><MDI key="OVERVIEW_FILE">'
        f"{url}</MDI></Metadata></PAMDataset>"
    )
    return path


def _overviews_in_tags(path: Path, url: str) -> Path:
    write_with_gdal(path, random_cube("uint8", (1, 4, 5)))
    with rasterio.open(path, "r+") as file:
        file.update_tags(ns="OVERVIEWS", OVERVIEW_FILE=url)
    return path


def _linked_system(path: Path, url: str) -> Path:
    path.write_text(
        '{"type": "FeatureCollection", "crs": {"type": "link", "properties": {"href": '
        f'"{url}", "type": "ogcwkt"}}}}, "features": [{{"type": "Feature", "properties": '
        '{"class": 1}, "geometry": {"type": "Point", "coordinates": [1, 2]}}]}'
    )
    return path


def _included_schema(path: Path, url: str) -> Path:
    points = geopandas.GeoDataFrame({"class": [1]}, geometry=[shapely.Point(1, 2)], crs=4326)
    points.to_file(path, driver="GML")
    schema = path.with_suffix(".xsd")
    first, mark, rest = schema.read_text().partition("<xs:import")
    schema.write_text(f'{first}<xs:include schemaLocation="{url}"/>{mark}{rest}')
    return path


def _system_of_cube(path: Path, url: str) -> Path:
    cube = xr.DataArray(
        np.ones((3, 4, 5)),
        {"y": np.arange(4.0), "x": np.arange(5.0), "crs": ((), 0, {"crs_wkt": url})},
        ("band", "y", "x"),
        name="cube",
    )
    cube.encoding["grid_mapping"] = "crs"
    cube.to_netcdf(path, engine="h5netcdf")
    return path


def _by_gdal(path: Path) -> None:
    with rasterio.open(path) as file:
        file.overviews(1)


def _by_rioxarray(path: Path) -> None:
    xr.open_dataset(path, engine="h5netcdf", decode_coords="all")["cube"].rio.crs  # noqa: B018


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "write", "form", "plainly"),
    [
        ("a.tif", _overviews_beside, "/vsicurl/{}", _by_gdal),
        ("a.tif", _overviews_beside, "{}", _by_gdal),
        ("a.tif", _overviews_in_tags, "/vsicurl/{}", _by_gdal),
        ("a.tif", _overviews_in_tags, "{}", _by_gdal),
        ("a.geojson", _linked_system, "{}", pyogrio.read_info),
        ("a.gml", _included_schema, "{}", pyogrio.read_info),
        ("a.nc", _system_of_cube, "{}", _by_rioxarray),
    ],
)
def test_files_on_this_machine_ask_no_server(
    tmp_path: Path, name: str, write, form: str, plainly
) -> None:
    with serving(tmp_path) as url:
        path = write(tmp_path / name, form.format(f"{url}/good/{name}"))
        for open_ in (
            hr.describe,
            hr.open_scene,
            lambda path: hr.open_scene(path, chunks="auto").compute(),
            lambda path: hr.open_labels(path, like=LABEL, attribute="class"),
            lambda path: hr.open_dataset(path).load().close(),
        ):
            with suppress(HsrejectError):
                open_(path)
        assert n_asked(url) == 0
        assert hr.describe(path)  # and it opens
        with suppress(Exception):
            plainly(path)
        assert n_asked(url) > 0  # so others ask


@pytest.mark.parametrize("open_", [hr.open_scene, hr.open_labels])
def test_files_on_a_server_open_after_one_on_this_machine(tmp_path: Path, open_) -> None:
    cube = random_cube("uint8", (1, 4, 5))
    path = write_with_gdal(tmp_path / "a.tif", cube)
    with serving(tmp_path) as url:
        for place in (path, f"{url}/good/a.tif", path):
            assert open_(place).size == 20
        write_virtual(tmp_path / "a.vrt", f"/vsicurl/{url}/good/a.tif", relative=0)
        lazy = hr.open_scene(tmp_path / "a.vrt", trust_vrt=True, chunks="auto")
        np.testing.assert_array_equal(lazy, cube)


@pytest.mark.parametrize("text", ["/etc/hostname", " ./system", "s3://bucket/system", "C:\\x"])
def test_a_reference_system_is_not_read_from_elsewhere(tmp_path: Path, text: str) -> None:
    path = _system_of_cube(tmp_path / "a.nc", text)
    scene = hr.open_scene(path)
    assert scene.rio.crs is None
    assert any("reference system of the file is not" in note for note in scene.attrs["guesses"])
    with pytest.raises(FileError, match="not followed"):
        hr.open_dataset(path)
    write_neon(tmp_path / "neon.h5", (1e4 * reflectance()).astype("int16"))
    with h5py.File(tmp_path / "neon.h5", "a") as file:
        system = next(iter(file.values()))["Reflectance/Metadata/Coordinate_System"]
        del system["EPSG Code"]
        system["Coordinate_System_String"] = text
    assert hr.open_scene(tmp_path / "neon.h5").rio.crs is None


def test_features_ask_no_server(tmp_path: Path) -> None:
    path = tmp_path / "a.gml"
    (tmp_path / "x").write_text("<schema/>")
    with serving(tmp_path) as url:
        path.write_text(
            '<wfs:FeatureCollection xmlns:wfs="http://www.opengis.net/wfs" '
            f'xmlns:gml="http://www.opengis.net/gml" xmlns:x="{url}/x" '
            'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
            f'xsi:schemaLocation="{url}/x {url}/good/x?SERVICE=WFS&amp;VERSION=1.1.0&amp;'
            'REQUEST=DescribeFeatureType&amp;TYPENAME=x:a"><gml:featureMember><x:a gml:id="1">'
            "<x:kind>soil</x:kind><x:geom><gml:Point><gml:pos>1 2</gml:pos></gml:Point></x:geom>"
            "</x:a></gml:featureMember></wfs:FeatureCollection>"
        )
        assert "1 features" in dict(hr.describe(path).rows)["Holds"]
        with urlopen(f"{url}/sent") as answer:
            assert answer.read() == b"0"
