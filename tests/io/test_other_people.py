"""What users bring that is right, or wrong in a way that deserves one sentence."""

import os
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
from hsreject.errors import FileError, HsrejectError, InputError
from hsreject.schema import attach_classes
from hsreject.schema.classes import ClassTable
from tests.io.products.writers import (
    reflectance,
    write_aviris,
    write_emit,
    write_neon,
)
from tests.io.web_server import serving
from tests.io.writers import UTM, random_cube, write_envi, write_with_gdal

LABEL = xr.DataArray(np.tile(np.array([1, 2], "uint8"), (6, 4)), dims=("y", "x"))


def test_lookup_tables_of_two_shapes_are_refused_at_once(tmp_path: Path) -> None:
    table = (np.ones((4, 5)), np.ones((5, 4)))
    for write in (write_emit, write_aviris):
        with pytest.raises(FileError, match="lookup table"):
            hr.open_scene(write(tmp_path / "a.nc", reflectance(), table), chunks="auto")


@pytest.mark.parametrize("name", ["a.geojson", "a.gpkg", "a.shp"])
@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"type": "FeatureCollection", "features": [', b"SQLite"]
)
def test_samples_that_are_empty_or_damaged(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(HsrejectError):
        hr.open_sample(tmp_path / name, LABEL)


def test_a_sample_of_no_points(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,reference,longitude,latitude,row,column")
    label = LABEL.rio.write_crs(32633).rio.write_transform(UTM)
    with pytest.raises(FileError, match="no points"):
        hr.open_sample(tmp_path / "a.csv", label)


def test_points_that_are_nowhere(tmp_path: Path) -> None:
    label = LABEL.rio.write_crs(32633).rio.write_transform(UTM)
    points = [shapely.Point(UTM.c + 15, UTM.f - 15), shapely.Point(np.nan, 1.0)]
    geometry = shapely.to_wkb(points)
    pyogrio.raw.write(
        tmp_path / "a.gpkg",
        geometry=geometry,
        field_data=[np.array([1, 2])],
        fields=["reference"],
        geometry_type="Point",
        crs="EPSG:32633",
        driver="GPKG",
    )
    with pytest.raises(InputError, match="without a place"):
        hr.open_sample(tmp_path / "a.gpkg", label)


def test_names_that_are_too_long(tmp_path: Path) -> None:
    for name in ("x" * 300 + ".tif", "x" * 5000):
        for open_ in (hr.open_scene, hr.open_labels, hr.open_map, hr.load_model):
            with pytest.raises(FileError):
                open_(tmp_path / name)


@pytest.mark.posix
def test_models_are_not_read_from_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.skops")
    for path in (tmp_path / "model.skops", "/dev/zero"):
        with pytest.raises(FileError, match="pipe"):
            hr.load_model(path)


def test_a_url_of_a_file_on_disk(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "a b.tif", random_cube("uint8", (1, 4, 5)))
    assert path.as_uri().startswith("file:")
    assert hr.open_scene(path.as_uri()).shape == (1, 4, 5)
    assert hr.open_labels(path.as_uri()).shape == (4, 5)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Band_503", "Band_508", "Band_1201"], [503, 508, 1201]),
        (["503.2 nm", "508.1 nm", "1201 nm"], [503.2, 508.1, 1201]),
        (["Band_101", "Band_103", "Band_205"], None),
        (["Band_301", "Band_302", "Band_303"], None),
    ],
)
def test_wavelengths_in_band_names(tmp_path: Path, names: list[str], expected: object) -> None:
    path = write_with_gdal(tmp_path / "a.tif", random_cube("uint8", (3, 4, 5)))
    with rasterio.open(path, "r+") as file:
        file.descriptions = names
    cube = hr.open_scene(path)
    assert ("wavelength" in cube.coords) == (expected is not None)
    if expected is not None:
        np.testing.assert_allclose(cube.wavelength, expected)


def test_envi_maps_need_small_values_and_classes_a_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="up to 255"):
        hr.write_map(LABEL.astype("uint16") * 1000, tmp_path / "a.img")
    assert not list(tmp_path.iterdir())
    for name in ("", " "):
        with pytest.raises(InputError, match="blank"):
            ClassTable.from_names(["soil", name])


def test_class_values_of_a_thousand_and_classes_without_a_name_come_back(tmp_path: Path) -> None:
    values = np.array([[0, 1], [1000, 4095]], dtype="uint16")
    label = xr.DataArray(values, dims=("y", "x"))
    table = ClassTable.from_names(["soil", "x", "water"], values=[1, 1000, 4095])
    hr.write_map(attach_classes(label, table), tmp_path / "a.tif")
    with rasterio.open(tmp_path / "a.tif", "r+", IGNORE_COG_LAYOUT_BREAK="YES") as file:
        names = file.tags(1)["class_names"].replace('"x"', '" "')  # by other software
        file.update_tags(1, class_names=names)
    (tmp_path / "a.tif.aux.xml").unlink()
    for back in (hr.open_map(tmp_path / "a.tif"), hr.open_labels(tmp_path / "a.tif")):
        np.testing.assert_array_equal(back.values, values)
        assert hr.schema.class_table(back).values == (1, 1000, 4095)


# Virtual rasters of strangers.


def virtual(path: Path, name: str, *, relative: int = 1, more: str = "") -> Path:
    path.write_text(
        '<VRTDataset rasterXSize="5" rasterYSize="4"><VRTRasterBand dataType="Byte" band="1">'
        f'<SimpleSource><SourceFilename relativeToVRT="{relative}">{name}</SourceFilename>'
        f"<SourceBand>1</SourceBand></SimpleSource>{more}</VRTRasterBand></VRTDataset>"
    )
    return path


@pytest.mark.posix
@pytest.mark.parametrize(
    ("name", "relative"),
    [
        ("/etc/passwd", 0),
        ("../secret.tif", 1),
        ("/vsicurl/http://127.0.0.1:9/a.tif", 0),
        ("http://127.0.0.1:9/a.tif", 0),
        ("link.tif", 1),
        ("notes.txt", 1),
        ("inner.tif", 1),
        ("<VRTDataset></VRTDataset>", 0),
        ('HDF5:"a.h5"://x', 0),
    ],
)
def test_a_virtual_raster_reads_its_own_folder_only(
    tmp_path: Path, name: str, relative: int
) -> None:
    folder = tmp_path / "sent"
    folder.mkdir()
    secret = write_with_gdal(tmp_path / "secret.tif", random_cube("uint8", (1, 4, 5)))
    (folder / "link.tif").symlink_to(secret)
    (folder / "notes.txt").write_text("x" * 20)
    virtual(folder / "inner.tif", str(secret), relative=0)
    path = virtual(folder / "a.vrt", name.replace("<", "&lt;"), relative=relative)
    for open_ in (hr.open_scene, hr.describe, hr.open_labels, hr.open_map):
        with pytest.raises(FileError, match="trust"):
            open_(path)
    if name in {"../secret.tif", "link.tif", "inner.tif"}:
        assert hr.open_scene(path, trust_vrt=True).shape == (1, 4, 5)


@pytest.mark.posix
@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SourceFilename", "SOURCEFILENAME"),
        ("SourceFilename", "sourceFilename"),
        ("<VRTDataset", "<VRTDataset xmlns='urn:x'"),
        ('<SourceFilename relativeToVRT="0">{}</SourceFilename>', ""),
        ('relativeToVRT="0"', 'relativeToVRT="0" RELATIVETOVRT="1"'),
    ],
)
def test_a_virtual_raster_hides_no_name_from_us_that_gdal_reads(
    tmp_path: Path, old: str, new: str, monkeypatch
) -> None:
    folder = tmp_path / "sent"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    secret = write_with_gdal(tmp_path / "secret.tif", random_cube("uint8", (1, 4, 5)))
    write_with_gdal(folder / "secret.tif", random_cube("uint8", (1, 4, 5)))
    name = "secret.tif" if "RELATIVE" in new else str(secret)  # of the folder one works in
    path = virtual(folder / "a.vrt", name, relative=0)
    text = path.read_text()
    if not new:
        text = text.replace("<SimpleSource>", f"<SimpleSource SourceFilename='{secret}'>")
    path.write_text(text.replace(old.format(secret), new))
    with rasterio.open(path) as gdal:  # which reads the secret
        assert gdal.read().shape == (1, 4, 5)
    for open_ in (hr.open_scene, hr.describe, hr.open_labels, hr.open_map):
        with pytest.raises(FileError, match="trust"):
            open_(path)


def envi_header(n_bytes: int) -> str:
    return (
        f"ENVI\nsamples = {n_bytes}\nlines = 1\nbands = 1\ndata type = 1\n"
        "interleave = bsq\nbyte order = 0\n"
    )


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@pytest.mark.parametrize("name", ["part", "part.img"])
@pytest.mark.parametrize(
    ("before", "header"),
    [
        ("", envi_header),
        ("\n ", envi_header),
        ("<!-- pixels -->", envi_header),
        ("\ufeff", envi_header),
        ("\x89PNG", envi_header),
        ("EHFA_HEADER_TAG", envi_header),
        ("", lambda _: ""),
        ("", lambda _: "nrows 4\n"),
        ("", lambda n: envi_header(n - 1)),
    ],
)
def test_a_virtual_raster_in_disguise_is_not_plain(
    tmp_path: Path, name: str, before: str, header
) -> None:
    folder = tmp_path / "sent"
    folder.mkdir()
    secret = write_with_gdal(tmp_path / "secret.tif", random_cube("uint8", (1, 4, 5)))
    inner = virtual(folder / name, str(secret), relative=0)
    content = (before + inner.read_text()).encode("utf-8" if before == "\ufeff" else "latin-1")
    inner.write_bytes(content)
    (folder / "part.hdr").write_text(header(len(content)))
    path = virtual(folder / "a.vrt", name)
    with rasterio.open(path) as gdal:  # which reads the secret
        assert gdal.read(1).shape == (4, 5)
    for open_ in (hr.open_scene, hr.describe, hr.open_labels, hr.open_map):
        with pytest.raises(FileError, match="trust"):
            open_(path)


def test_a_virtual_raster_does_not_lead_elsewhere_by_hdf5(tmp_path: Path) -> None:
    np.arange(20, dtype="uint8").tofile(tmp_path / "secret")
    (tmp_path / "sent").mkdir()
    with h5py.File(tmp_path / "sent" / "part.h5", "w") as file:
        file.create_dataset("x", (4, 5), "u1", external=[(tmp_path / "secret", 0, 20)])
    with pytest.raises(FileError, match="not followed"):
        hr.open_scene(virtual(tmp_path / "sent" / "a.vrt", "part.h5"))


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_a_mask_beside_a_raster_is_a_plain_one(tmp_path: Path) -> None:
    values = random_cube("uint8", (1, 4, 5))
    secret = write_with_gdal(tmp_path / "secret.tif", values)
    path = write_with_gdal(tmp_path / "a.tif", values)
    tag = "<Metadata><MDI key='INTERNAL_MASK_FLAGS_1'>2</MDI></Metadata>"
    side = virtual(tmp_path / "a.tif.msk", str(secret), relative=0)
    side.write_text(side.read_text().replace("</VRTDataset>", f"{tag}</VRTDataset>"))
    with rasterio.open(path) as gdal:  # which reads the secret
        np.testing.assert_array_equal(gdal.read_masks(1), values[0])
    with pytest.raises(FileError, match=r"a\.tif\.msk is not a plain raster"):
        hr.open_scene(path)
    side.unlink()
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False), rasterio.open(path, "r+") as file:
        file.write_mask(values[0] > 20)
    assert side.is_file()
    np.testing.assert_array_equal(np.isnan(hr.open_scene(path).values[0]), values[0] <= 20)


@pytest.mark.parametrize("interleave", ["bsq", "bip"])
def test_a_virtual_raster_over_raw_pixels(tmp_path: Path, interleave: str) -> None:
    cube = random_cube("uint8", (3, 4, 5))
    data = write_envi(tmp_path, cube, interleave=interleave)
    path = virtual(tmp_path / "a.vrt", data.name)
    np.testing.assert_array_equal(hr.open_scene(path).values, cube[:1])


def test_a_virtual_raster_of_its_own_folder(tmp_path: Path) -> None:
    values = random_cube("uint8", (1, 4, 5))
    write_with_gdal(tmp_path / "part.tif", values)
    for relative, name in ((1, "part.tif"), (0, str(tmp_path / "part.tif"))):
        path = virtual(tmp_path / "a.vrt", name, relative=relative)
        np.testing.assert_array_equal(hr.open_scene(path).values, values)


# Other files of strangers that lead elsewhere.


def _linked(file: h5py.File, name: str, other: Path) -> None:
    file[name] = h5py.ExternalLink(other, "values")


def _raw(file: h5py.File, name: str, other: Path) -> None:
    file.create_dataset(name, (3, 4, 5), "u1", external=[(other, 0, 60)])


def _put_together(file: h5py.File, name: str, other: Path) -> None:
    layout = h5py.VirtualLayout((3, 4, 5), "f8")
    layout[...] = h5py.VirtualSource(other, "values", (3, 4, 5))
    file.create_virtual_dataset(name, layout)


@pytest.mark.parametrize("lead", [_linked, _raw, _put_together])
@pytest.mark.parametrize(
    ("name", "member", "opens"),
    [
        ("a.h5", "cube", hr.open_scene),
        ("a.h5", "deep/inside/unused", hr.open_scene),
        ("a.mat", "cube", hr.open_scene),
        ("a.mat", "wavelength", hr.open_scene),
        ("emit.nc", "reflectance", hr.open_scene),
        ("emit.nc", "sensor_band_parameters/wavelengths", hr.describe),
        ("emit.nc", "location/glt_x", hr.open_scene),
        ("a.nc", "label", hr.open_dataset),
        ("a.nc", "part/label", hr.open_tree),
    ],
)
def test_hdf5_files_do_not_lead_to_others(tmp_path: Path, lead, name, member, opens) -> None:
    secret, path = tmp_path / "secret.h5", tmp_path / name
    with h5py.File(secret, "w") as file:
        file["values"] = np.ones((3, 4, 5))
    if name == "emit.nc":
        write_emit(path, reflectance(), (np.ones((2, 2)), np.ones((2, 2))))
    with h5py.File(path, "a") as file:
        if name != "emit.nc":
            file["scene"] = np.ones((3, 4, 5))
        elif member in file:
            del file[member]
        lead(file, member, secret)
    with pytest.raises(FileError, match=f"'{member}'.* not followed"):
        opens(path)


def test_the_mask_beside_a_product_does_not_lead_to_other_files(tmp_path: Path) -> None:
    path = write_emit(tmp_path / "EMIT_L2A_RFL_1.nc", reflectance())
    with h5py.File(tmp_path / "EMIT_L2A_MASK_1.nc", "w") as file:
        file["mask"] = h5py.ExternalLink(path, "reflectance")
    with pytest.raises(FileError, match=r"_MASK_1\.nc.* not followed"):
        hr.open_scene(path)


@pytest.mark.parametrize("name", ["a.geojson", "a.gpkg", "a.shp", "a.csv", "a.gml", "a.kml"])
@pytest.mark.parametrize(
    "content",
    [
        "<OGRVRTDataSource><OGRVRTLayer name='secret'><SrcDataSource>{}</SrcDataSource>"
        "</OGRVRTLayer></OGRVRTDataSource>",
        '{{"type": "gdal_streamed_alg", "command_line": "gdal vector pipeline ! read {} ! '
        'write streamed_file --output-format stream"}}',
    ],
)
def test_features_do_not_lead_to_other_files(tmp_path: Path, name: str, content: str) -> None:
    secret = tmp_path / "secret.gpkg"
    points = geopandas.GeoDataFrame({"class": [1]}, geometry=[shapely.Point(0, 0)], crs=32633)
    points.to_file(secret)
    (tmp_path / "sent").mkdir()
    path = tmp_path / "sent" / name
    path.write_text(content.format(secret))
    with pytest.raises(FileError, match="names other files"):
        hr.open_labels(path, like=LABEL, attribute="class")
    with pytest.raises(FileError, match="names other files"):
        hr.describe(path)
    with pytest.raises(HsrejectError):  # a table is not read by GDAL there
        hr.open_sample(path, LABEL)


# Files that ask servers.


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
        virtual(tmp_path / "a.vrt", f"/vsicurl/{url}/good/a.tif", relative=0)
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
