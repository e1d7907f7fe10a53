"""Files that are not what they seem: one sentence that says so."""

from pathlib import Path

import h5py
import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import FileError, HsrejectError
from tests.io.products.writers import (
    reflectance,
    write_aviris,
    write_emit,
    write_emit_mask,
    write_enmap,
    write_neon,
    write_prisma,
    write_tanager,
    write_tiff,
)

CUBE = reflectance()


def emit(folder: Path) -> Path:
    return write_emit(folder / "EMIT_L2A_RFL_001.nc", CUBE, (np.ones((2, 2)),) * 2)


def changed(folder: Path, change) -> Path:
    path = emit(folder)
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def own(folder: Path, **arrays: np.ndarray) -> Path:
    with h5py.File(folder / "own.h5", "w") as file:
        for name, values in arrays.items():
            file[name] = values
    return folder / "own.h5"


def prisma(folder: Path, level: str) -> Path:
    counts = np.ones((2, 3, 4))
    centres = ((500.0, 400.0), (1500.0, 1000.0))
    return write_prisma(folder / "p.he5", counts, counts, centres, ((0, 1),) * 2, level=level)


def too_few_wavelengths(file: h5py.File) -> None:
    del file["sensor_band_parameters/wavelengths"]
    file["sensor_band_parameters/wavelengths"] = [400.0, 500.0]


def words_for_numbers(file: h5py.File) -> None:
    del file["sensor_band_parameters/wavelengths"]
    file["sensor_band_parameters/wavelengths"] = ["red", "green", "blue", "a", "b", "c"]


def two_axes(file: h5py.File) -> None:
    del file["reflectance"]
    file["reflectance"] = np.ones((3, 4))


def text_in_pixels(file: h5py.File) -> None:
    del file["reflectance"]
    file["reflectance"] = np.full((2, 2, 6), b"red")


def enmap_without_image(folder: Path) -> Path:
    image, described = write_enmap(folder, np.ones((2, 3, 4), dtype="int16"))
    image.unlink()
    return described


def enmap_of_two_detectors(folder: Path) -> Path:
    image, described = write_enmap(folder, np.ones((2, 3, 4), dtype="int16"))
    image.rename(image.with_name(image.name.replace("IMAGE", "IMAGE_VNIR")))
    return described


def enmap_described_as(folder: Path, text: str) -> Path:
    image, described = write_enmap(folder, np.ones((2, 3, 4), dtype="int16"))
    described.write_text(text)
    return image


def enmap_of_another_size(folder: Path) -> Path:
    image, _ = write_enmap(folder, np.ones((2, 3, 4), dtype="int16"))
    write_tiff(image, np.ones((3, 3, 4), dtype="int16"))
    return image


def text_that_is_too_long(folder: Path) -> Path:
    path = write_neon(folder / "n.h5", np.ones((2, 3, 4), dtype="int16"), code="32633")
    with h5py.File(path) as file:
        place = file["ABBY/Reflectance/Metadata/Coordinate_System/EPSG Code"].id.get_offset()
    with path.open("r+b") as stream:
        stream.seek(place)
        stream.write((2**27).to_bytes(4, "little"))
    return path


CASES = {
    "the mask of EMIT": (
        lambda folder: write_emit_mask(folder / "m.nc", np.ones((1, 2, 2)), ["Cloud flag"]),
        "masks",
    ),
    "too few wavelengths": (lambda folder: changed(folder, too_few_wavelengths), "2 wavelengths"),
    "words": (lambda folder: changed(folder, words_for_numbers), "cannot be read"),
    "two axes": (lambda folder: changed(folder, two_axes), "2 axes"),
    "text": (lambda folder: changed(folder, text_in_pixels), "not numbers"),
    "PRISMA L1": (lambda folder: prisma(folder, "L1"), "L2D"),
    "PRISMA L2B": (lambda folder: prisma(folder, "L2B"), "L2D"),
    "another product": (lambda folder: own(folder, cube=np.ones((2, 3, 4))), r"cube \(2 x 3 x 4\)"),
    "no cube": (lambda folder: own(folder, map=np.ones((2, 3))), "open_dataset"),
    "a flat lookup table": (
        lambda folder: write_emit(folder / "e.nc", CUBE, (np.ones(4), np.ones(4))),
        "lookup table must have two axes",
    ),
    "a long text": (text_that_is_too_long, "cannot be read"),
    "EnMAP without image": (enmap_without_image, "SPECTRAL_IMAGE"),
    "EnMAP L1B": (enmap_of_two_detectors, "L1B"),
    "EnMAP without bands": (lambda folder: enmap_described_as(folder, "<a/>"), "wavelength"),
    "EnMAP in pieces": (lambda folder: enmap_described_as(folder, "<a><b>"), "XML"),
    "EnMAP of another size": (enmap_of_another_size, "2 bands, but .* has 3"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_sentence(tmp_path: Path, name: str) -> None:
    write, message = CASES[name]
    path = write(tmp_path)
    with pytest.raises(FileError, match=message):
        hr.open_scene(path, chunks="auto")


def test_a_result_is_not_a_scene(tmp_path: Path) -> None:
    hr.write_dataset(hr.open_scene(emit(tmp_path))[0].to_dataset(name="map"), tmp_path / "r.nc")
    with pytest.raises(FileError, match="open_dataset"):
        hr.open_scene(tmp_path / "r.nc")


def test_options_for_a_file_of_another_kind(tmp_path: Path) -> None:
    path = own(tmp_path, cube=np.ones((2, 3, 4)))
    with pytest.raises(FileError, match="band_axis"):
        hr.open_scene(path, variable="cube")
    with pytest.raises(FileError, match=r"It has: cube \(2 x 3 x 4\)"):
        hr.open_scene(path, variable="map", band_axis=0)


@pytest.mark.parametrize(
    "write",
    [
        emit,
        lambda folder: write_aviris(folder / "a.nc", CUBE),
        lambda folder: write_neon(folder / "n.h5", (CUBE * 100).astype("int16")),
        lambda folder: write_tanager(folder / "t.h5", CUBE),
        lambda folder: prisma(folder, "L2D"),
    ],
)
def test_a_download_that_broke_off(tmp_path: Path, write) -> None:
    path = write(tmp_path)
    whole = path.read_bytes()
    for part in np.linspace(8, len(whole) - 1, 12).astype(int):
        path.write_bytes(whole[:part])
        with pytest.raises(FileError, match="damaged"):
            hr.open_scene(path)


def test_pixels_that_are_damaged_are_blamed_on_the_file(tmp_path: Path) -> None:
    path = emit(tmp_path)
    with h5py.File(path, "r+") as file:
        del file["reflectance"]
        data = file.create_dataset(
            "reflectance", data=np.random.default_rng(0).random((8, 8, 6)), compression="gzip"
        )
        where = data.id.get_chunk_info(0)
    lazy = hr.open_scene(path, chunks="auto")
    with path.open("r+b") as stream:
        stream.seek(where.byte_offset)
        stream.write(bytes(where.size))
    with pytest.raises(FileError, match="EMIT_L2A_RFL_001"):
        lazy.compute()
    with pytest.raises(HsrejectError, match="EMIT_L2A_RFL_001"):
        hr.describe(path)


def test_parts_that_may_be_missing(tmp_path: Path) -> None:
    def strip(file: h5py.File) -> None:
        del file["sensor_band_parameters/wavelengths"], file["sensor_band_parameters/fwhm"]
        del file["reflectance"].attrs["_FillValue"], file.attrs["spatial_ref"]
        file.create_group("something/else")

    cube = hr.open_scene(changed(tmp_path, strip))
    np.testing.assert_array_equal(cube.values, CUBE)
    assert "wavelength" not in cube.coords


def test_labels_are_not_looked_for_in_products(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="opened with open_scene"):
        hr.open_labels(emit(tmp_path))
    image, described = write_enmap(tmp_path, np.ones((2, 3, 4), dtype="int16"))
    for path in (image, described):
        with pytest.raises(FileError):
            hr.open_labels(path)


def test_a_reference_system_that_is_not_understood(tmp_path: Path) -> None:
    path = changed(tmp_path, lambda file: file.attrs.update(spatial_ref="no such thing"))
    assert "reference system" in " ".join(hr.open_scene(path).attrs["guesses"])
