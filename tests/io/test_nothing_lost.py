"""Whatever a file says is honoured, noted or refused, never dropped in silence."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
import scipy.io

import hsreject as hr
from hsreject import schema
from hsreject.errors import FileError
from tests.io.writers import UTM, both_ways, guesses, random_cube, write_envi, write_with_gdal

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


@pytest.mark.parametrize("nodata", [None, 7.0])
def test_nodata_values_must_match_in_all_bands(tmp_path: Path, nodata) -> None:
    written = CUBE.copy()
    written[:, 0, 0] = written[:, 3, 4] = (7, 8, 9)
    written[:, 1, 0] = (7, 8, 1)  # not all of them
    path = write_with_gdal(tmp_path / "scene.tif", written, nodata=nodata)
    with rasterio.open(path, "r+") as file:
        file.update_tags(NODATA_VALUES="7 8 9")
    expected = written.astype(float)
    expected[:, [0, 3], [0, 4]] = np.nan
    for cube in both_ways(path):
        np.testing.assert_array_equal(cube.values, expected)
        assert "NODATA_VALUES" in guesses(cube)


def test_writing_beside_another_envi_file(tmp_path: Path) -> None:
    other = write_envi(tmp_path, CUBE, data_name="x.dat", header_name="x.hdr")
    before = (tmp_path / "x.hdr").read_bytes()
    labels = hr.open_map(write_with_gdal(tmp_path / "a.tif", CUBE[:1].astype("uint8")))
    for overwrite in (False, True):
        hr.write_map(labels, tmp_path / "x.img", overwrite=overwrite)
        assert (tmp_path / "x.hdr").read_bytes() == before
        np.testing.assert_array_equal(hr.open_scene(other).values, CUBE)
        np.testing.assert_array_equal(hr.open_map(tmp_path / "x.img").values, CUBE[0])
    (tmp_path / "alone").mkdir()
    hr.write_map(labels, tmp_path / "alone/x.img")
    assert {path.name for path in (tmp_path / "alone").iterdir()} == {"x.hdr", "x.img"}


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


def test_a_reference_system_that_is_only_a_name(tmp_path: Path) -> None:
    """UTM without a zone: GDAL makes a system of it into which nothing can be brought."""
    fields = {"map info": f"{{UTM, 1, 1, {UTM.c}, {UTM.f}, {UTM.a}, {-UTM.e}}}"}
    scene = hr.open_scene(write_envi(tmp_path, CUBE, fields=fields))
    assert "UTM is only a name" in guesses(scene)
    values = (CUBE[:1, :, :3] % 4).astype(np.uint8)
    path = write_with_gdal(tmp_path / "labels.tif", values)
    labels = hr.open_labels(path, like=scene, align="nearest")
    np.testing.assert_array_equal(labels[:, :3].values, values[0])
    assert not labels[:, 3:].any()


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
            for name in ("out.tif", "out.img"):
                hr.write_map(labels, tmp_path / name, overwrite=True)
                assert schema.class_table(hr.open_map(tmp_path / name)).colors == wanted
                assert schema.class_table(hr.open_labels(tmp_path / name)).colors == wanted


def attribute_table(raster: Path, kind: int, colors: list) -> None:
    """Write GDAL's side file with a table whose columns have only their titles."""
    columns = (("Value", 0), ("Class", 2), ("Red", kind), ("Green", kind), ("Blue", kind))
    fields = "".join(
        f'<FieldDefn index="{at}"><Name>{name}</Name><Type>{of}</Type><Usage>0</Usage></FieldDefn>'
        for at, (name, of) in enumerate(columns)
    )
    rows = "".join(
        f'<Row index="{at}">'
        + "".join(f"<F>{cell}</F>" for cell in (at, f"class {at}", *color))
        + "</Row>"
        for at, color in enumerate(colors)
    )
    table = f"<GDALRasterAttributeTable>{fields}{rows}</GDALRasterAttributeTable>"
    raster.with_name(f"{raster.name}.aux.xml").write_text(
        f'<PAMDataset><PAMRasterBand band="1">{table}</PAMRasterBand></PAMDataset>'
    )


def test_colors_of_attribute_tables_and_tags(tmp_path: Path) -> None:
    values = (CUBE[:1] % 3).astype(np.uint8)
    path = write_with_gdal(tmp_path / "labels.tif", values)
    for kind, full in ((0, 255), (1, 255.0), (1, 1.0)):
        attribute_table(path, kind, [(0, 0, 0), (full, 0, full / 5), (full / 5, 0, 0)])
        assert schema.class_table(hr.open_labels(path)).colors == ("#ff0033", "#330000")
    (tmp_path / "labels.tif.aux.xml").unlink()
    with rasterio.open(path, "r+") as file:
        tags = {"flag_values": "1 2", "class_names": '["a", "b"]', "flag_colors": "#0a0b0c #010203"}
        file.update_tags(1, **tags)
    assert schema.class_table(hr.open_labels(path)).colors == ("#0a0b0c", "#010203")
