"""Every format, interleave, type and byte order comes back as it was written by others."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest

import hsreject as hr
from hsreject import schema
from tests.io.writers import random_cube, write_envi, write_with_gdal, write_with_spectral

INTERLEAVES = ("bil", "bip", "bsq")
REAL_TYPES = (
    "uint8", "int16", "int32", "float32", "float64", "uint16", "uint32", "int64", "uint64",
)  # fmt: skip


def check_same(cube, written: np.ndarray) -> None:
    assert cube.dims == schema.CUBE_DIMS
    assert cube.dtype == written.dtype
    np.testing.assert_array_equal(cube.values, written)
    np.testing.assert_array_equal(cube.band.values, np.arange(1, len(written) + 1))


@pytest.mark.parametrize("chunks", [None, "auto", {"y": 2}, (2, 3, 1)])
@pytest.mark.parametrize(("interleave", "byte_order"), list(itertools.product(INTERLEAVES, (0, 1))))
def test_envi_written_by_spectral(tmp_path: Path, interleave, byte_order, chunks) -> None:
    written = random_cube("int16")
    header = write_with_spectral(tmp_path, written, interleave=interleave, byte_order=byte_order)
    for path in (header, tmp_path / "scene.img"):
        cube = hr.open_scene(path, chunks=chunks)
        assert (cube.chunks is None) == (chunks is None)
        check_same(cube, written)
        np.testing.assert_array_equal(cube.wavelength, 400.5 + np.arange(5))


@pytest.mark.parametrize("chunks", [None, "auto"])
@pytest.mark.parametrize(("dtype", "byte_order"), list(itertools.product(REAL_TYPES, (0, 1))))
def test_every_envi_type(tmp_path: Path, dtype, byte_order, chunks) -> None:
    written = random_cube(dtype)
    path = write_envi(tmp_path, written, interleave="bip", byte_order=byte_order)
    check_same(hr.open_scene(path, chunks=chunks), written)


@pytest.mark.parametrize("interleave", INTERLEAVES)
def test_envi_written_by_gdal(tmp_path: Path, interleave) -> None:
    written = random_cube("float32")
    path = write_with_gdal(tmp_path / "scene", written, driver="ENVI", interleave=interleave)
    cube = hr.open_scene(path)
    check_same(cube, written)
    assert cube.rio.crs.to_epsg() == 32633
    assert cube.x.values[0] == 364110.0
    assert cube.y.values[0] == 5809950.0


@pytest.mark.parametrize("dtype", REAL_TYPES)
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
def test_geotiff_written_by_gdal(tmp_path: Path, dtype, profile) -> None:
    written = random_cube(dtype, (5, 40, 33))
    if profile.get("predictor") and written.dtype.kind == "f":
        profile = profile | {"predictor": 3}
    path = write_with_gdal(tmp_path / "scene.tif", written, **profile)
    for chunks in (None, "auto"):
        cube = hr.open_scene(path, chunks=chunks)
        check_same(cube, written)
        assert cube.rio.crs.to_epsg() == 32633


def test_header_offset_and_trailing_bytes(tmp_path: Path) -> None:
    written = random_cube()
    path = write_envi(tmp_path, written, prefix=b"header" * 9)
    path.write_bytes(path.read_bytes() + b"??")
    cube = hr.open_scene(path)
    check_same(cube, written)
    assert any("longer than its header says by 2 bytes" in guess for guess in cube.attrs["guesses"])


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
@pytest.mark.parametrize("given", ["data", "header"])
def test_header_and_data_find_each_other(tmp_path: Path, data_name, header_name, given) -> None:
    written = random_cube()
    write_envi(tmp_path, written, data_name=data_name, header_name=header_name)
    cube = hr.open_scene(tmp_path / (data_name if given == "data" else header_name))
    check_same(cube, written)
    assert f"found beside {data_name if given == 'data' else header_name}" in cube.guesses[0]


def test_companion_files_are_not_taken_for_the_data(tmp_path: Path) -> None:
    written = random_cube()
    path = write_envi(tmp_path, written, data_name="scene.dat")
    for name in ("scene.png", "scene.dat.aux.xml", "scene.txt"):
        (tmp_path / name).write_bytes(b"no pixels")
    (tmp_path / "scene.dat.aux.xml").write_text("<PAMDataset></PAMDataset>")
    (tmp_path / "scene.roi").write_bytes(b"regions")
    check_same(hr.open_scene(tmp_path / "scene.hdr"), written)
    check_same(hr.open_scene(path), written)


def test_compressed_envi(tmp_path: Path) -> None:
    written = random_cube()
    path = write_envi(tmp_path, written, fields={"file compression": 1})
    path.write_bytes(gzip.compress(path.read_bytes()))
    check_same(hr.open_scene(path), written)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("chunks", [None, "auto"])
def test_headers_in_other_encodings(tmp_path: Path, encoding, chunks) -> None:
    written = random_cube(shape=(2, 4, 3))
    folder = tmp_path / "größe"
    folder.mkdir()
    path = write_envi(
        folder,
        written,
        encoding=encoding,
        fields={
            "description": "{Überflug}",
            "band names": "{Grün, Rot}",
            "wavelength": "{0.55, 0.65}",
            "wavelength units": "µm",
        },
    )
    cube = hr.open_scene(path, chunks=chunks)
    check_same(cube, written)
    np.testing.assert_array_equal(cube.wavelength, [550, 650])


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_headers_as_people_write_them(tmp_path: Path, line_end) -> None:
    written = random_cube(shape=(2, 4, 3))
    path = write_envi(tmp_path, written)
    text = [
        "ENVI",
        "; made by hand",
        "",
        "description = {",
        "  samples = 99 is not a field here }",
        "Samples=3",
        "  LINES   =   4",
        "bands = 2",
        "Data Type = 12",
        "interleave = BSQ",
        "byte order = 0",
        "wavelength = {",
        " 450.5,",
        " 460.5 ,",
        "}",
        "Wavelength Units = Nanometers",
    ]
    (tmp_path / "scene.hdr").write_text(line_end.join(text), newline="")
    cube = hr.open_scene(path)
    check_same(cube, written)
    np.testing.assert_array_equal(cube.wavelength, [450.5, 460.5])
