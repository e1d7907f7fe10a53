"""Virtual rasters, and masks beside rasters, that would lead GDAL to other files."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import rasterio
import rioxarray  # noqa: F401 - registers the .rio accessor

import hsreject as hr
from hsreject.errors import FileError
from tests.io.writers import random_cube, write_envi, write_virtual, write_with_gdal


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
    write_virtual(folder / "inner.tif", str(secret), relative=0)
    path = write_virtual(folder / "a.vrt", name.replace("<", "&lt;"), relative=relative)
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
    path = write_virtual(folder / "a.vrt", name, relative=0)
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
    inner = write_virtual(folder / name, str(secret), relative=0)
    content = (before + inner.read_text()).encode("utf-8" if before == "\ufeff" else "latin-1")
    inner.write_bytes(content)
    (folder / "part.hdr").write_text(header(len(content)))
    path = write_virtual(folder / "a.vrt", name)
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
        hr.open_scene(write_virtual(tmp_path / "sent" / "a.vrt", "part.h5"))


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_a_mask_beside_a_raster_is_a_plain_one(tmp_path: Path) -> None:
    values = random_cube("uint8", (1, 4, 5))
    secret = write_with_gdal(tmp_path / "secret.tif", values)
    path = write_with_gdal(tmp_path / "a.tif", values)
    tag = "<Metadata><MDI key='INTERNAL_MASK_FLAGS_1'>2</MDI></Metadata>"
    side = write_virtual(tmp_path / "a.tif.msk", str(secret), relative=0)
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
    path = write_virtual(tmp_path / "a.vrt", data.name)
    np.testing.assert_array_equal(hr.open_scene(path).values, cube[:1])


def test_a_virtual_raster_of_its_own_folder(tmp_path: Path) -> None:
    values = random_cube("uint8", (1, 4, 5))
    write_with_gdal(tmp_path / "part.tif", values)
    for relative, name in ((1, "part.tif"), (0, str(tmp_path / "part.tif"))):
        path = write_virtual(tmp_path / "a.vrt", name, relative=relative)
        np.testing.assert_array_equal(hr.open_scene(path).values, values)
