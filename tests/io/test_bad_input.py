"""Bad files get one clear sentence: an exception in Python, exit code 2 on the command line."""

import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import rasterio
import scipy.io

import hsreject as hr
from hsreject.cli import main
from hsreject.errors import HsrejectError
from tests.io.writers import UTM, random_cube, write_envi, write_with_gdal

CUBE = random_cube(shape=(3, 4, 5))


def envi(**fields) -> Callable[[Path], Path]:
    """Return a maker of an ENVI file whose header has other fields than its data."""
    named = {name.replace("_", " "): value for name, value in fields.items()}
    return lambda folder: write_envi(folder, CUBE, fields=named)


def text_header(text: str | bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = write_envi(folder, CUBE)
        raw = text if isinstance(text, bytes) else text.encode()
        (folder / "scene.hdr").write_bytes(raw)
        return path

    return make


def written(name: str, raw: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(raw)
        return folder / name

    return make


def mat(**arrays) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        scipy.io.savemat(folder / "scene.mat", arrays)
        return folder / "scene.mat"

    return make


def npy(array: np.ndarray) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        np.save(folder / "scene.npy", array)
        return folder / "scene.npy"

    return make


def tif(array: np.ndarray, **profile) -> Callable[[Path], Path]:
    return lambda folder: write_with_gdal(folder / "scene.tif", array, **profile)


def short_data(folder: Path) -> Path:
    path = write_envi(folder, CUBE)
    path.write_bytes(path.read_bytes()[:-1])
    return path


def only_header(folder: Path) -> Path:
    write_envi(folder, CUBE).unlink()
    return folder / "scene.hdr"


def only_data(folder: Path) -> Path:
    path = write_envi(folder, CUBE)
    (folder / "scene.hdr").unlink()
    return path


def short_esri(folder: Path) -> Path:
    (folder / "dem.hdr").write_text("NROWS 20\nNCOLS 20\nNBANDS 1\nNBITS 8\nLAYOUT BIL\n")
    (folder / "dem.bil").write_bytes(bytes(399))
    return folder / "dem.bil"


def short_tiff(folder: Path) -> Path:
    path = write_with_gdal(folder / "scene.tif", random_cube(shape=(3, 40, 50)))
    path.write_bytes(path.read_bytes()[:-3000])
    return path


def absurd_tiff(folder: Path) -> Path:
    path = folder / "scene.tif"
    side = {"width": 2_000_000, "height": 2_000_000, "count": 3, "dtype": "uint16"}
    side |= {"crs": "EPSG:32633", "transform": UTM}
    options = {"SPARSE_OK": True, "tiled": True, "blockxsize": 8192, "blockysize": 8192}
    with rasterio.open(path, "w", driver="GTiff", BIGTIFF="YES", **side, **options):
        return path


def pages(folder: Path) -> Path:
    path = write_with_gdal(folder / "scene.tif", CUBE)
    with rasterio.open(
        path,
        "r+",
        driver="GTiff",
        width=5,
        height=4,
        count=1,
        dtype="uint8",
        APPEND_SUBDATASET="YES",
    ):
        pass
    write_with_gdal(path, CUBE, APPEND_SUBDATASET="YES")
    return path


def huge_npy(folder: Path) -> Path:
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000, 100000, 1000), }"
    header = header.ljust(117) + "\n"
    raw = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    (folder / "scene.npy").write_bytes(raw)
    return folder / "scene.npy"


def several_in_hdf5(folder: Path) -> Path:
    with h5py.File(folder / "scene.mat", "w", userblock_size=512) as file:
        file["first"], file["second"] = CUBE, CUBE
    return folder / "scene.mat"


def nan(*shape: int) -> np.ndarray:
    return np.full(shape, np.nan, dtype=np.float32)


TWO_TYPES = (
    b'<VRTDataset rasterXSize="2" rasterYSize="2"><VRTRasterBand dataType="UInt16" band="1"/>'
    b'<VRTRasterBand dataType="Float32" band="2"/></VRTDataset>'
)
NO_PART = (
    b'<VRTDataset rasterXSize="2" rasterYSize="2"><VRTRasterBand dataType="UInt16" band="1">'
    b"<SimpleSource><SourceFilename>nowhere.tif</SourceFilename></SimpleSource></VRTRasterBand>"
    b"</VRTDataset>"
)

CASES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "no file": (lambda folder: folder / "scene.img", "does not exist. Check the path."),
    "a folder": (lambda folder: folder, "is a folder. Give the file inside it."),
    "no data file": (only_header, "The data file of .*scene.hdr is missing: looked for scene and"),
    "no header file": (only_data, "no header beside it: looked for scene.img.hdr and scene.hdr"),
    "short data": (short_data, "is shorter than its header says: .* 120 bytes, but .* has 119"),
    "short Esri data": (short_esri, "shorter than its header says: the Esri header dem.hdr .* 400"),
    "short GeoTIFF": (short_tiff, "cannot be read"),
    "broken GeoTIFF": (written("scene.tif", b"II*\0" + bytes(60)), "cannot be read"),
    "no interleave": (
        envi(interleave=None),
        "unknown interleave 'nothing'. It must be bil, bip or",
    ),
    "unknown interleave": (envi(interleave="bsx"), "unknown interleave 'bsx'"),
    "absurd size": (envi(samples=2_000_000_000, lines=2_000_000_000), "is shorter than its header"),
    "absurd number": (envi(samples="9" * 400), "must be a whole number"),
    "absurd compression": (
        envi(samples=2_000_000_000, lines=2_000_000_000, file_compression=1),
        "is shorter than its header says",
    ),
    "absurd GeoTIFF": (absurd_tiff, r"memory .*chunks='auto'"),
    "absurd .npy": (huge_npy, "cannot be read"),
    "negative size": (envi(lines=-4), "'lines = -4' must be a whole number from 1"),
    "no size": (envi(lines=0), "'lines = 0' must be a whole number from 1"),
    "size as text": (envi(bands="three"), "'bands = three' must be a whole number"),
    "missing size": (envi(samples=None), "has no 'samples'"),
    "unknown type": (envi(data_type=7), "unknown data type 7"),
    "complex type": (envi(data_type=6), r"describes complex numbers \(data type 6\)"),
    "byte order": (envi(byte_order=2), "'byte order = 2' must be 0 .* or 1"),
    "frame offsets": (envi(minor_frame_offsets="{2, 3}"), "has minor frame offsets"),
    "spectral library": (
        envi(file_type="ENVI Spectral Library"),
        "a spectral library, not an image",
    ),
    "too few wavelengths": (envi(wavelength="{400, 500}"), "'wavelength' has 2 values for 3 bands"),
    "too many wavelengths": (envi(wavelength="{1,2,3,4}"), "'wavelength' has 4 values for 3 bands"),
    "too few widths": (envi(wavelength="{400,500,600}", fwhm="{9}"), "'fwhm' has 1 values for 3"),
    "too few flags": (envi(bbl="{1, 1}"), "'bbl' has 2 values for 3 bands"),
    "wavelength as text": (
        envi(wavelength="{400, red, 600}"),
        "'red' in 'wavelength' is not a number",
    ),
    "scale factor as text": (envi(reflectance_scale_factor="ten"), "must be a number above 0"),
    "scale factor of zero": (envi(reflectance_scale_factor="0"), "must be a number above 0"),
    "no header text": (
        text_header("Dear reader,\nthis is no header."),
        "its first line must be 'ENVI'",
    ),
    "an open list": (text_header("ENVI\nbands = 3\nbbl = {1,\n1"), "'bbl' is opened with a brace"),
    "UTF-16 header": (text_header("ENVI\nbands = 3".encode("utf-16")), "byte-order mark"),
    "marked header": (text_header(b"\xef\xbb\xbfENVI\nbands = 3"), "byte-order mark"),
    "binary header": (text_header(bytes(range(256))), "it holds binary data, not text"),
    "empty header": (text_header(""), "its first line must be 'ENVI'"),
    "text alone": (written("notes.txt", b"no scene"), "neither a GeoTIFF nor"),
    "text as header": (written("notes.hdr", b"no scene"), "is missing|first line must be"),
    "empty file": (written("scene.dat", b""), "no header beside it"),
    "all NaN ENVI": (lambda folder: write_envi(folder, nan(2, 3, 4)), "has no data: every pixel"),
    "all NaN GeoTIFF": (tif(nan(2, 3, 4)), "has no data: every pixel"),
    "all nodata": (tif(np.full((2, 3, 4), 7, np.int16), nodata=7), "has no data: every pixel"),
    "all NaN .npy": (npy(nan(4, 4, 9)), "has no data: every pixel"),
    "complex GeoTIFF": (tif(np.ones((2, 3, 4), np.complex64)), "holds complex numbers"),
    "complex .npy": (npy(np.ones((2, 3, 4), np.complex64)), "holds complex numbers"),
    "complex .mat": (mat(cube=np.ones((2, 3, 4), np.complex64)), "holds complex numbers"),
    "objects in .npy": (npy(np.array([None, {}], dtype=object)), "cannot be read"),
    "four axes": (
        npy(np.ones((2, 3, 4, 5))),
        "no array with 3 axes for the scene.*2 x 3 x 4 x 5",
    ),
    "several arrays": (
        mat(first=CUBE, second=CUBE),
        r"several arrays that could be the scene: first \(3 x 4 x 5\), second \(3 x 4 x 5\)",
    ),
    "several arrays in HDF5": (several_in_hdf5, r"first \(5 x 4 x 3\), second \(5 x 4 x 3\)"),
    "no array": (mat(note="only text"), "no array of numbers"),
    "broken .mat": (
        written("scene.mat", b"MATLAB 5.0 MAT-file" + bytes(200)),
        "cannot be read|no array",
    ),
    "empty .mat": (written("scene.mat", b""), "cannot be read: Mat file appears to be"),
    "text as .mat": (written("scene.mat", b"hello " * 50), "cannot be read"),
    "text as .npy": (written("scene.npy", b"hello"), "is not a NumPy file"),
    "bands of two types": (written("scene.vrt", TWO_TYPES), "has bands of different types"),
    "a part is missing": (written("scene.vrt", NO_PART), "cannot be read: .*nowhere.tif"),
    "several pages": (pages, "holds 2 images, not one"),
}


@pytest.mark.parametrize("name", CASES)
def test_python_raises_one_sentence(tmp_path: Path, name: str) -> None:
    make, message = CASES[name]
    path = make(tmp_path)
    with pytest.raises(HsrejectError, match=message) as caught:
        hr.open_scene(path)
    assert "\n" not in str(caught.value)
    assert path.stem in str(caught.value)


@pytest.mark.parametrize("name", [name for name in CASES if name != "absurd GeoTIFF"])
def test_command_line_exits_with_2(tmp_path: Path, name: str, monkeypatch, capsys) -> None:
    make, _ = CASES[name]
    monkeypatch.setattr(sys, "argv", ["hsreject", "info", str(make(tmp_path))])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("hsreject: ")
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    "name", ["absurd size", "short data", "unknown interleave", "complex type"]
)
def test_opening_lazily_checks_the_same(tmp_path: Path, name: str) -> None:
    make, message = CASES[name]
    with pytest.raises(HsrejectError, match=message):
        hr.open_scene(make(tmp_path), chunks="auto")


def test_wrong_options_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "scene.npy", np.ones((3, 4, 5)))
    with pytest.raises(HsrejectError, match="band_axis must be 0, 1 or 2"):
        hr.open_scene(tmp_path / "scene.npy", band_axis=3)
    with pytest.raises(HsrejectError, match="chunks names lines, which a cube does not have"):
        hr.open_scene(tmp_path / "scene.npy", chunks={"lines": 2})
    np.save(tmp_path / "labels.npy", np.ones((3, 4)))
    with pytest.raises(HsrejectError, match=r"with the dims y and x, such as a scene \(got str\)"):
        hr.open_labels(tmp_path / "labels.npy", like="scene.npy")
    with pytest.raises(HsrejectError, match="align must be 'exact' or 'nearest'"):
        hr.open_labels(tmp_path / "scene.npy", align="cubic")


def test_an_unreadable_file(tmp_path: Path, monkeypatch) -> None:
    path = write_envi(tmp_path, CUBE)

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root may read everything
    with pytest.raises(HsrejectError, match="cannot be opened: Permission denied"):
        hr.open_scene(path)
