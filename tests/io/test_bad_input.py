"""Bad files get one clear sentence: an exception in Python, exit code 2 on the command line."""

import os
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import h5py
import numpy as np
import pytest
import rasterio
import rasterio.shutil
import scipy.io

import hsreject as hr
from hsreject.cli import main
from hsreject.errors import HsrejectError
from tests.io.writers import UTM, random_cube, save_hdf5, write_envi, write_with_gdal

CUBE = random_cube(shape=(3, 4, 5))


def envi(**fields) -> Callable[[Path], Path]:
    """Return a maker of an ENVI file whose header has other fields than its data."""
    named = {name.replace("_", " "): value for name, value in fields.items()}
    return lambda folder: write_envi(folder, CUBE, fields=named)


def saved(name: str, save: Callable[[Path], object]) -> Callable[[Path], Path]:
    """Return a maker of a file by a function that takes its path."""
    return lambda folder: (save(folder / name), folder / name)[1]


def text_header(raw: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = write_envi(folder, CUBE)
        (folder / "scene.hdr").write_bytes(raw)
        return path

    return make


def written(name: str, raw: bytes) -> Callable[[Path], Path]:
    return saved(name, lambda path: path.write_bytes(raw))


def mat(**arrays) -> Callable[[Path], Path]:
    return saved("scene.mat", lambda path: scipy.io.savemat(path, arrays))


def npy(array: np.ndarray) -> Callable[[Path], Path]:
    return saved("scene.npy", lambda path: np.save(path, array))


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


def short_tiff(folder: Path) -> Path:
    path = write_with_gdal(folder / "scene.tif", random_cube(shape=(3, 40, 50)))
    path.write_bytes(path.read_bytes()[:-3000])
    return path


def absurd_mat(folder: Path) -> Path:
    path = folder / "scene.mat"
    scipy.io.savemat(path, {"cube": CUBE})
    sides = np.array(CUBE.shape, dtype="<i4").tobytes()
    path.write_bytes(path.read_bytes().replace(sides, sides[:8] + b"\xff\xff\xff\x7f"))
    return path


def unknown_type(*, packed: bool) -> Callable[[Path], Path]:
    """An old .mat file whose numbers have a type that does not exist: scipy crashes on it."""

    def make(folder: Path) -> Path:
        path = folder / "scene.mat"
        scipy.io.savemat(path, {"cube": CUBE})
        raw = path.read_bytes()
        data = raw.index(CUBE.tobytes(order="F")) - 8
        raw = raw[:data] + (77).to_bytes(4, "little") + raw[data + 4 :]
        if packed:
            deflated = zlib.compress(raw[128:])
            raw = raw[:128] + struct.pack("<II", 15, len(deflated)) + deflated
        path.write_bytes(raw)
        return path

    return make


def many_bands(folder: Path) -> Path:
    """A TIFF of 8 x 8 pixels and 198 bytes that claims 65,535 bands: reading them took minutes."""
    tags = ((256, 8), (257, 8), (258, 8), (259, 1), (262, 1), (273, 8), (277, 65535), (278, 8))
    tags = [(*tag[:1], 3, 1, *tag[1:]) for tag in (*tags, (279, 64), (284, 1))]
    directory = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    raw = b"II*\0" + struct.pack("<I", 72) + bytes(64)
    path = folder / "scene.tif"
    path.write_bytes(raw + struct.pack("<H", len(tags)) + directory + bytes(4))
    return path


def claiming(tag: int, number: int, **options: object) -> Callable[[Path], Path]:
    """A small GeoTIFF whose directory claims a large number: GDAL made room for it first."""

    def make(folder: Path) -> Path:
        path = write_with_gdal(folder / "scene.tif", CUBE[:1], **options)
        raw = bytearray(path.read_bytes())
        (start,) = struct.unpack_from("<I", raw, 4)
        (n_tags,) = struct.unpack_from("<H", raw, start)
        places = range(start + 2, start + 2 + 12 * n_tags, 12)
        place = next(at for at in places if struct.unpack_from("<H", raw, at) == (tag,))
        struct.pack_into("<HII", raw, place + 2, 4, 1, number)
        path.write_bytes(raw)
        return path

    return make


def wide_virtual(folder: Path) -> Path:
    source = write_with_gdal(folder / "part.tif", CUBE)
    path = folder / "scene.vrt"
    rasterio.shutil.copy(source, path, driver="VRT")
    path.write_text(path.read_text().replace('XSize="5"', f'XSize="{2**24}"', 1))
    return path


def absurd_tiff(folder: Path) -> Path:
    size = {"width": 2_000_000, "height": 2_000_000, "count": 3, "dtype": "uint16"}
    options = {"driver": "GTiff", "BIGTIFF": "YES", "SPARSE_OK": True, "transform": UTM}
    options |= {"tiled": True, "blockxsize": 8192, "blockysize": 8192}
    with rasterio.open(folder / "scene.tif", "w", **size, **options):
        return folder / "scene.tif"


def pages(folder: Path) -> Path:
    path = write_with_gdal(folder / "scene.tif", CUBE)
    return write_with_gdal(path, CUBE, APPEND_SUBDATASET="YES")


HUGE_NPY = (
    b"\x93NUMPY\x01\x00\x76\x00"
    + b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000, 100000, 1000), }".ljust(117)
    + b"\n"
)


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

IN_PIXELS = {"interleave": "pixel", "compress": "deflate"}
IN_TILES = IN_PIXELS | {"tiled": True, "blockxsize": 512, "blockysize": 512}

UTM_33 = "{UTM, 1, 1, 500000, 6000000, 30, 30, 33, North, WGS-84}"

# how the file is made, and the word that matters in what is said about it
CASES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "no file": (lambda folder: folder / "scene.img", "does not exist"),
    "a folder": (lambda folder: folder, r"^\S+ is a folder or an archive without a scene in it"),
    "packed": (written("scene.img.gz", b"\x1f\x8b" + bytes(9)), "unpack it"),
    "packed arrays": (written("scene.npz", b"PK\x03\x04" + bytes(9)), "unpack it"),
    "old NetCDF": (written("scene.nc", b"CDF\1" + bytes(9)), "cannot be read"),
    "HDF5": (written("scene.h5", b"\x89HDF\r\n\x1a\n" + bytes(9)), "damaged"),
    "no data file": (only_header, "scene.hdr is missing: looked for scene and"),
    "no TIFF of a header": (
        written("scene.hdr", b"ENVI\nfile type = TIFF\n"),
        "scene.hdr is missing",
    ),
    "no header file": (only_data, "looked for scene.img.hdr and scene.hdr"),
    "short data": (short_data, "120 bytes, but .* has 119"),
    "short GeoTIFF": (short_tiff, "cannot be read"),
    "many bands of nothing": (many_bands, "65535 bands"),
    "broken GeoTIFF": (written("scene.tif", b"II*\0" + bytes(60)), "cannot be read"),
    "no interleave": (envi(interleave=None), "interleave = nothing"),
    "unknown interleave": (envi(interleave="bsx"), "interleave = bsx"),
    "absurd size": (envi(samples=2_000_000_000, lines=2_000_000_000), "shorter"),
    "absurd number": (envi(samples="9" * 400), "whole number"),
    "absurd compression": (
        envi(samples=2_000_000_000, lines=2_000_000_000, file_compression=1),
        "shorter",
    ),
    "absurd GeoTIFF": (absurd_tiff, "claims .*chunks='auto'"),
    "absurd height": (claiming(257, 2**24), "claims|cannot be read"),
    "absurd packed width": (claiming(256, 2**24, **IN_PIXELS), "claims|cannot be read"),
    "absurd tile": (claiming(322, 2**24, **IN_TILES), "claims|cannot be read"),
    "absurd tile of many bands": (claiming(277, 4097, **IN_TILES), "claims|cannot be read"),
    "absurd virtual raster": (wide_virtual, "claims"),
    "absurd .npy": (written("scene.npy", HUGE_NPY), "cannot be read"),
    "negative size": (envi(lines=-4), "lines = -4"),
    "no size": (envi(lines=0), "lines = 0"),
    "size as text": (envi(bands="three"), "bands = three"),
    "missing size": (envi(samples=None), "samples = nothing"),
    "unknown type": (envi(data_type=7), "data type = 7"),
    "complex type": (envi(data_type=6), "data type = 6.*complex"),
    "byte order": (envi(byte_order=2), "byte order = 2"),
    "frame offsets": (envi(minor_frame_offsets="{2, 3}"), "minor frame offsets"),
    "spectral library": (envi(file_type="ENVI Spectral Library"), "Spectral Library"),
    "too few wavelengths": (envi(wavelength="{400, 500}"), "'wavelength' has 2 values for 3"),
    "too many wavelengths": (envi(wavelength="{1,2,3,4}"), "'wavelength' has 4 values for 3"),
    "too few widths": (envi(wavelength="{400,500,600}", fwhm="{9}"), "'fwhm' has 1 values"),
    "too few flags": (envi(bbl="{1, 1}"), "'bbl' has 2 values"),
    "wavelength as text": (envi(wavelength="{400, red, 600}"), "'red' in 'wavelength'"),
    "a unit in the wavelengths": (envi(wavelength="{0.55 um, 0.6 um, 0.7 um}"), "wavelength units"),
    "scale factor as text": (envi(reflectance_scale_factor="ten"), "'ten' in"),
    "scale factor of zero": (envi(reflectance_scale_factor="0"), "above 0"),
    "too few gains": (envi(data_gain_values="{2, 2}"), "'data gain values' has 2 values"),
    "gain of zero": (envi(data_gain_values="{0, 1, 1}"), "other than 0"),
    "nodata as text": (envi(data_ignore_value="none"), "data ignore value = none"),
    "empty nodata": (envi(data_ignore_value=""), "data ignore value"),
    "negative NaN": (envi(data_ignore_value="-nan"), "data ignore value = -nan"),
    "pixels of size 0": (envi(map_info=UTM_33.replace("30", "0")), "size 0"),
    "place as text": (envi(map_info=UTM_33.replace("500000", "west")), "'west' in 'map info'"),
    "a place nowhere": (envi(map_info=UTM_33.replace("500000", "nan")), "nowhere"),
    "no header text": (text_header(b"Dear reader,\nthis is no header."), "must be 'ENVI'"),
    "an open list": (text_header(b"ENVI\nbands = 3\nbbl = {1,\n1"), "'bbl' is opened"),
    "UTF-16 header": (text_header("ENVI\nbands = 3".encode("utf-16")), "byte-order mark"),
    "marked header": (text_header(b"\xef\xbb\xbfENVI\nbands = 3"), "byte-order mark"),
    "binary header": (text_header(bytes(range(256))), "binary"),
    "empty header": (text_header(b""), "must be 'ENVI'"),
    "text alone": (written("notes.txt", b"no scene"), "not a raster"),
    "text as header": (written("notes.hdr", b"no scene"), "is missing|must be"),
    "empty file": (written("scene", b""), "looked for scene.hdr[.]"),
    "all NaN ENVI": (lambda folder: write_envi(folder, nan(2, 3, 4)), "no data"),
    "all NaN GeoTIFF": (tif(nan(2, 3, 4)), "no data"),
    "all nodata": (tif(np.full((2, 3, 4), 7, np.int16), nodata=7), "no data"),
    "all NaN .npy": (npy(nan(4, 4, 9)), "no data"),
    "complex GeoTIFF": (tif(np.ones((2, 3, 4), np.complex64)), "complex"),
    "complex .npy": (npy(np.ones((2, 3, 4), np.complex64)), "complex"),
    "complex .mat": (mat(cube=np.ones((2, 3, 4), np.complex64)), "complex"),
    "complex records": (npy(np.zeros((2, 3, 4), [("real", "f4"), ("imag", "f4")])), "complex"),
    "records": (npy(np.zeros((2, 3, 4), [("a", "f4"), ("b", "i4")])), "not numbers"),
    "objects in .npy": (npy(np.array([None, {}], dtype=object)), "cannot be read"),
    "four axes": (npy(np.ones((2, 3, 4, 5))), "3 axes .*2 x 3 x 4 x 5"),
    "several arrays": (mat(first=CUBE, second=CUBE), r"first \(3 x 4 x 5\), second"),
    "several arrays in HDF5": (
        lambda folder: save_hdf5(folder / "scene.mat", first=CUBE, second=CUBE),
        r"first \(3 x 4 x 5\), second",
    ),
    "no array": (mat(note="only text"), "no array of numbers"),
    "an array in a struct": (mat(scene={"cube": CUBE}), "structs"),
    "broken .mat": (
        written("scene.mat", b"MATLAB 5.0 MAT-file" + bytes(200)),
        "cannot be read|no array",
    ),
    "absurd .mat": (absurd_mat, "claims"),
    "empty .mat": (written("scene.mat", b""), "truncated|empty"),
    "text as .mat": (written("scene.mat", b"hello " * 50), "cannot be read"),
    "text as .npy": (written("scene.npy", b"hello"), "not a NumPy file"),
    "unknown type in .mat": (unknown_type(packed=False), "unknown type 77"),
    "unknown type in packed .mat": (unknown_type(packed=True), "unknown type 77"),
    "bands of two types": (written("scene.vrt", TWO_TYPES), "one type"),
    "a part is missing": (written("scene.vrt", NO_PART), "nowhere.tif"),
    "several pages": (pages, "2 images"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_sentence_in_python_and_on_the_command_line(
    tmp_path: Path, name: str, monkeypatch, capsys
) -> None:
    make, message = CASES[name]
    path = make(tmp_path)
    with pytest.raises(HsrejectError, match=message) as caught:
        hr.open_scene(path)
    assert "\n" not in str(caught.value)
    assert path.stem in str(caught.value)
    if name in {"absurd GeoTIFF", "absurd virtual raster"}:
        return  # `info` reads it block by block
    monkeypatch.setattr(sys, "argv", ["hsreject", "info", str(path)])
    with pytest.raises(SystemExit) as stopped:
        main()
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.out == ""
    assert printed.err.startswith("hsreject: ")
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err


def test_opening_lazily_checks_the_same(tmp_path: Path) -> None:
    for name in ("absurd size", "short data", "unknown interleave", "complex type"):
        make, message = CASES[name]
        with pytest.raises(HsrejectError, match=message):
            hr.open_scene(make(tmp_path), chunks="auto")


def cut_tiff(folder: Path, end: int) -> Path:
    """A GeoTIFF that lacks its end; what a reader needs to open it stands in front."""
    path = write_with_gdal(folder / "scene.tif", random_cube(shape=(9, 300, 200)))
    path.write_bytes(path.read_bytes()[:end])
    return path


def damaged_tiff(folder: Path) -> Path:
    """A GeoTIFF with zeros in the middle of its packed pixels."""
    cube = random_cube(shape=(9, 300, 200))
    path = write_with_gdal(folder / "scene.tif", cube, compress="deflate")
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2] + bytes(1000) + raw[len(raw) // 2 + 1000 :])
    return path


def test_damage_found_when_pixels_are_read_is_that_of_the_input(tmp_path: Path) -> None:
    path = damaged_tiff(tmp_path)
    lazy = hr.open_scene(path, chunks="auto")
    with pytest.raises(HsrejectError, match=r"scene.tif cannot be read.* copy or export it again"):
        lazy.compute()
    with pytest.raises(HsrejectError, match=r"scene.tif cannot be read") as caught:
        hr.write_map(lazy[0].drop_vars("band"), tmp_path / "out.tif")
    assert "out.tif" not in str(caught.value)
    assert not (tmp_path / "out.tif").exists()


def test_an_error_that_is_kept_does_not_lock_hdf5(tmp_path: Path) -> None:
    """Notebooks keep the last error; other threads must be able to read all the same."""
    good = save_hdf5(tmp_path / "good.mat", cube=CUBE)
    odd = save_hdf5(tmp_path / "odd.mat", cube=CUBE)
    with h5py.File(odd, "r+") as file:  # a type that NumPy does not have
        space = h5py.h5s.create_simple((3,))
        h5py.h5d.create(file.id, b"times", h5py.h5t.UNIX_D32LE, space)
    with pytest.raises(HsrejectError, match="cannot be read") as kept:
        hr.open_scene(odd)
    thread = threading.Thread(target=hr.open_scene, args=[good], daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    del kept


def test_wrong_options_are_named(tmp_path: Path) -> None:
    scene, labels = tmp_path / "scene.npy", tmp_path / "labels.npy"
    np.save(scene, np.ones((3, 4, 5)))
    np.save(labels, np.ones((3, 4)))
    for read, path, options, message in (
        (hr.open_scene, scene, {"band_axis": 3}, "band_axis"),
        (hr.open_scene, scene, {"chunks": {"lines": 2}}, "lines"),
        (hr.open_labels, labels, {"like": "scene.npy"}, "got str"),
        (hr.open_labels, labels, {"align": "cubic"}, "align"),
    ):
        with pytest.raises(HsrejectError, match=message):
            read(path, **options)


def test_an_unreadable_file(tmp_path: Path, monkeypatch) -> None:
    path = write_envi(tmp_path, CUBE)
    refuse = Mock(side_effect=PermissionError(13, "Permission denied"))
    monkeypatch.setattr(Path, "open", refuse)  # root may read everything
    with pytest.raises(HsrejectError, match="Permission denied"):
        hr.open_scene(path)


@pytest.mark.posix
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "scene.img")
    with pytest.raises(HsrejectError, match="is a pipe or a device"):
        hr.open_scene(tmp_path / "scene.img")


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/sc\xe8ne.tif"))
    write_with_gdal(tmp_path / "plain.tif", CUBE).rename(path)
    with pytest.raises(HsrejectError, match=r"The name '.*sc\\udce8ne.tif' is not in UTF-8"):
        hr.open_scene(path)


HEAVY = ("sklearn", "numba", "scipy.stats", "scipy.interpolate", "pyogrio", "distributed")


def test_files_are_looked_at_without_heavy_imports(tmp_path: Path) -> None:
    """Commands look for their files with `files`; reading a raster takes no more than it needs."""
    path = write_with_gdal(tmp_path / "scene.tif", CUBE)
    code = (
        "import sys, hsreject.files\n"
        "print([m for m in ('rasterio', 'numpy') if m in sys.modules])\n"
        "from hsreject import describe\n"
        f"assert 'Values' in dict(describe({str(path)!r}).rows)\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]
