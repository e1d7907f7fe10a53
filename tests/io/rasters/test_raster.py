"""Whatever a file says is honoured, noted or refused, never dropped in silence."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
import scipy.io

import hsreject as hr
from hsreject import schema
from hsreject.errors import FileError
from tests.io.writers import both_ways, random_cube, write_envi, write_with_gdal

CUBE = random_cube("uint16", (3, 4, 5))
MASK = np.full(CUBE.shape, 255, dtype=np.uint8)
MASK[0, 0, 0] = MASK[1, 1, 1] = MASK[2, 2, :] = 0
MASKED = np.where(MASK, CUBE, np.nan)


def beside(folder: Path) -> Path:
    """A .msk file with a mask per band: its flags do not say that one mask is for all."""
    path = write_with_gdal(folder / "scene.tif", CUBE)
    mask = write_with_gdal(folder / "mask.tif", MASK)
    with rasterio.open(mask, "r+") as file:
        file.update_tags(**{f"INTERNAL_MASK_FLAGS_{band}": "0" for band in (1, 2, 3)})
    mask.rename(folder / "scene.tif.msk")
    return path


def virtual(folder: Path) -> Path:
    """A virtual raster whose bands have masks of their own."""
    write_with_gdal(folder / "scene.tif", CUBE)
    write_with_gdal(folder / "mask.tif", MASK)

    def source(name: str, band: int) -> str:
        return (
            f'<SimpleSource><SourceFilename relativeToVRT="1">{name}</SourceFilename>'
            f"<SourceBand>{band}</SourceBand></SimpleSource>"
        )

    bands = "".join(
        f'<VRTRasterBand dataType="UInt16" band="{band}">{source("scene.tif", band)}'
        f'<MaskBand><VRTRasterBand dataType="Byte">{source("mask.tif", band)}</VRTRasterBand>'
        "</MaskBand></VRTRasterBand>"
        for band in (1, 2, 3)
    )
    path = folder / "scene.vrt"
    path.write_text(f'<VRTDataset rasterXSize="5" rasterYSize="4">{bands}</VRTDataset>')
    return path


@pytest.mark.parametrize("make", [beside, virtual])
def test_masks_per_band(tmp_path: Path, make) -> None:
    for cube in both_ways(make(tmp_path)):
        np.testing.assert_array_equal(cube.values, MASKED)


def test_an_internal_mask_beside_nodata_of_each_band(tmp_path: Path) -> None:
    path = tmp_path / "scene.tif"
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        write_with_gdal(path, CUBE, nodata=float(CUBE[1, 3, 3]))
        with rasterio.open(path, "r+") as file:
            file.write_mask(MASK[0])
    expected = np.where((MASK[0] > 0) & (CUBE[1, 3, 3] != CUBE), CUBE, np.nan)
    for cube in both_ways(path):
        np.testing.assert_array_equal(cube.values, expected)


def test_nodata_values_must_match_in_all_bands(tmp_path: Path) -> None:
    written = CUBE.copy()
    written[:, 0, 0] = written[:, 3, 4] = (7, 8, 9)
    written[:, 1, 0] = (7, 8, 1)  # not all of them
    path = write_with_gdal(tmp_path / "scene.tif", written)
    with rasterio.open(path, "r+") as file:
        file.update_tags(NODATA_VALUES="7 8 9")
    expected = written.astype(float)
    expected[:, [0, 3], [0, 4]] = np.nan
    for cube in both_ways(path):
        np.testing.assert_array_equal(cube.values, expected)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("sensor type = new {\ndata type = 12\nbbl = {1, 1, 1}\n", "data type = 12"),
        ("sensor type = new {\nheader offset = 2\nbbl = {1, 1, 1}\n", "header offset = 2"),
        ("sensor type = new {\nbyte order = 1\nbbl = {1, 1, 1}\n", "byte order = 1"),
        ("sensor type = new {\ninterleave = bip\nbbl = {1, 1, 1}\n", "interleave = bip"),
        ("sensor type = new {\ndata ignore value = 3\nbbl = {1, 1, 1}\n", "data ignore value = 3"),
    ],
)
def test_where_gdal_reads_another_header(tmp_path: Path, lines: str, named: str) -> None:
    """GDAL takes a stray brace for the start of a list and reads on to the next closing one."""
    name = named.partition(" = ")[0]
    path = write_envi(tmp_path, CUBE, fields={name: None}, prefix=b"..")
    header = tmp_path / "scene.hdr"
    header.write_text(header.read_text() + lines)
    with pytest.raises(FileError, match=f"{named}.* GDAL.* reads 'nothing'"):
        hr.open_scene(path)


def test_what_info_notes(tmp_path: Path) -> None:
    inf = CUBE.astype(np.float32)
    inf[1, 2, 3] = np.inf
    inf[2, 0, 0] = -np.inf
    bare = write_envi(tmp_path, CUBE, fields={"byte order": None})
    infinite = write_with_gdal(tmp_path / "inf.tif", inf)
    mat = tmp_path / "first.mat"
    scipy.io.savemat(
        mat, {"cube": random_cube(shape=(6, 4, 5)), "wavelength": np.arange(4, 10) * 100}
    )
    for path, told in (
        (bare, "byte order"),
        (infinite, "Band 2-3 has infinite values"),
        (mat, "Axis 0 of 6 x 4 x 5 was taken for the bands"),
    ):
        assert told in " ".join(hr.describe(path).guesses), path


def test_class_colors_survive(tmp_path: Path) -> None:
    """From a palette without names, from ENVI, and into both formats, with names given or not."""
    values = (CUBE[:1] % 4).astype(np.uint8)
    colors = {0: (0, 0, 0, 255), 1: (200, 10, 20, 255), 2: (1, 2, 3, 255), 3: (9, 8, 7, 255)}
    wanted = ("#c80a14", "#010203", "#090807")
    tif = write_with_gdal(tmp_path / "labels.tif", values)
    with rasterio.open(tif, "r+") as file:
        file.write_colormap(1, colors)
    lookup = ", ".join(str(c) for value in range(4) for c in colors[value][:3])
    fields = {"file type": "ENVI Classification", "classes": 4}
    fields |= {"class names": "{none, a, b, c}", "class lookup": "{" + lookup + "}"}
    for source in (tif, write_envi(tmp_path, values, fields=fields)):
        for names in (None, ["x", "y", "z"]):
            labels = hr.open_labels(source, names=names)
            assert schema.class_table(labels).colors == wanted
            hr.write_map(labels, tmp_path / "out.tif", overwrite=True)
            assert schema.class_table(hr.open_map(tmp_path / "out.tif")).colors == wanted
            assert schema.class_table(hr.open_labels(tmp_path / "out.tif")).colors == wanted


def test_colors_of_tags(tmp_path: Path) -> None:
    values = (CUBE[:1] % 3).astype(np.uint8)
    path = write_with_gdal(tmp_path / "labels.tif", values)
    with rasterio.open(path, "r+") as file:
        tags = {"flag_values": "1 2", "class_names": '["a", "b"]', "flag_colors": "#0a0b0c #010203"}
        file.update_tags(1, **tags)
    assert schema.class_table(hr.open_labels(path)).colors == ("#0a0b0c", "#010203")
