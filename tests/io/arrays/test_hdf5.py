"""HDF5 files that lead to other files, or that are damaged."""

import re
from pathlib import Path

import h5py
import numpy as np
import pytest
import rioxarray  # noqa: F401 - registers the .rio accessor
import xarray as xr

import hsreject as hr
from hsreject.errors import FileError, HsrejectError
from tests.io.products.writers import (
    reflectance,
    write_emit,
)


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


@pytest.mark.parametrize("reserved", [0, 35])
def test_a_heap_that_hdf5_would_read_for_ever(tmp_path: Path, reserved) -> None:
    path = tmp_path / "result.nc"
    hr.write_dataset(xr.Dataset({"a": ("x", np.arange(3))}), path)
    raw = bytearray(path.read_bytes())
    heap = raw.index(b"GCOL")
    raw[heap + 7] = reserved
    raw[heap + 16 : heap + 32] = bytes(16)  # its first entry, now free and without a length
    path.write_bytes(raw)
    with pytest.raises(HsrejectError, match="heap"):
        hr.open_dataset(path)


def test_a_heap_that_claims_more_than_the_file(tmp_path: Path) -> None:
    """HDF5 would make room for it: four gigabytes that are not there."""
    path = tmp_path / "result.nc"
    hr.write_dataset(xr.Dataset({"a": ("x", np.arange(3))}), path)
    raw = bytearray(path.read_bytes())
    heap = raw.index(b"GCOL")
    raw[heap + 12] = 1  # its length
    path.write_bytes(raw)
    with pytest.raises(HsrejectError, match="heaps is longer"):
        hr.open_dataset(path)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("userblock", [0, 512])
def test_no_room_is_made_for_texts_longer_than_their_file(tmp_path, libver, userblock) -> None:
    path = tmp_path / "a.mat"
    with h5py.File(path, "w", libver=libver, userblock_size=userblock) as file:
        file["cube"] = np.ones((3, 4, 5))
        file["name"] = "ABC"
        file["names"] = ["ABC", "DEF"]
        for owner in (file, file["cube"]):
            owner.attrs["unit"] = "ABC"
            owner.attrs["units"] = ["ABC", "DEF"]
            for kind in ("f8", "i4"):
                lists = np.empty(1, object)
                lists[0] = np.arange(3, dtype=kind)
                owner.attrs.create(kind, lists, dtype=h5py.vlen_dtype(kind))
    assert hr.open_scene(path).size == 60
    raw = path.read_bytes()
    heap = (raw.index(b"GCOL") - userblock).to_bytes(8, "little")
    references = [found.start() for found in re.finditer(b"\x03\0\0\0" + re.escape(heap), raw)]
    assert len(references) == 13
    for place in references:
        path.write_bytes(raw[:place] + b"\xff\xff\xff\xff" + raw[place + 4 :])
        with pytest.raises(FileError, match="longer than the file"):
            hr.open_scene(path)
