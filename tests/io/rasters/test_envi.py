"""The header's fields survive any way of writing them, and nonsense never passes in silence."""

from pathlib import Path

import numpy as np
import pytest
import spectral.io.envi
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import hsreject as hr
from hsreject.errors import FileError
from hsreject.io.rasters import envi
from tests.io.writers import ENVI_TYPES, write_envi

HERE = Path("scene.hdr")
in_one_folder = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
blanks = st.text(alphabet=" \t", max_size=3)
words = st.text(alphabet="abcXYZ019äßÉйλ中½", min_size=1)


@given(
    names=st.lists(words, min_size=1, max_size=6),
    gap=st.sampled_from([",", ", ", " ,\n ", ",\n", ",\t"]),
    pads=st.tuples(blanks, blanks, blanks),
)
def test_lists_survive_any_layout(names, gap, pads) -> None:
    text = f"ENVI\n{pads[0]}Band Names{pads[1]}={pads[2]}{{{gap.join(names)}}}\nbands = 3\n"
    fields = envi.parse_fields(text, path=HERE)
    assert envi.items(fields, "band names") == names
    assert fields["bands"] == "3"


@in_one_folder
@given(
    shape=st.tuples(*[st.integers(1, 5)] * 3),
    dtype=st.sampled_from(sorted(set(ENVI_TYPES) - {"complex64", "complex128"})),
    interleave=st.sampled_from(["bil", "bip", "bsq"]),
    byte_order=st.integers(0, 1),
    prefix=st.binary(max_size=9),
    seed=st.integers(0, 9),
)
def test_three_readers_agree(
    tmp_path: Path, shape, dtype, interleave, byte_order, prefix, seed
) -> None:
    """What was written, what `spectral` reads and what hsreject reads are the same numbers."""
    written = np.random.default_rng(seed).integers(0, 120, shape).astype(dtype)
    assume(written.nbytes + len(prefix) > 1)  # GDAL opens no file of a single byte
    path = write_envi(
        tmp_path, written, interleave=interleave, byte_order=byte_order, prefix=prefix
    )
    theirs = spectral.io.envi.open(str(tmp_path / "scene.hdr"), str(path)).open_memmap(
        interleave="bsq"
    )
    cube = hr.open_scene(path)
    np.testing.assert_array_equal(cube.values, written)
    np.testing.assert_array_equal(theirs, written)


@in_one_folder
@given(
    numbers=st.lists(st.floats(0.3, 14), min_size=3, max_size=3),
    micrometres=st.booleans(),
    stated=st.booleans(),
)
def test_wavelengths_survive_their_units(tmp_path: Path, numbers, micrometres, stated) -> None:
    values = np.array(numbers) * (1 if micrometres else 1000)
    units = ("Micrometers" if micrometres else "Nanometers") if stated else None
    listed = ", ".join(repr(float(value)) for value in values)
    fields = {"wavelength": f"{{{listed}}}", "wavelength units": units}
    path = write_envi(tmp_path, np.ones((3, 2, 2), dtype=np.uint8), fields=fields)
    # to_nanometres rounds at 1e-9 nm
    np.testing.assert_allclose(
        hr.open_scene(path).wavelength, np.array(numbers) * 1000, rtol=1e-12, atol=1e-9
    )


@in_one_folder
@given(
    name=st.sampled_from(["samples", "lines", "bands", "data type", "byte order", "header offset"]),
    value=st.one_of(
        st.integers(-(10**20), 10**20).map(str), st.text(max_size=6), st.floats().map(repr)
    ),
)
def test_no_number_field_is_believed_blindly(tmp_path: Path, name, value) -> None:
    """Whatever stands in a number field: the file is refused, or read as GDAL reads it."""
    cube = np.ones((2, 3, 4), dtype=np.uint8)
    value = value.replace("\n", " ").replace("\r", " ")
    path = write_envi(tmp_path, cube, fields={name: value}, encoding="utf-8")
    try:
        opened = hr.open_scene(path)
    except FileError:
        return
    assert opened.size * opened.dtype.itemsize <= path.stat().st_size


@given(st.text(max_size=200))
def test_any_text_is_parsed_or_refused(text) -> None:
    try:
        fields = envi.parse_fields(text, path=HERE)
    except FileError:
        return
    assert text.startswith("ENVI")
    assert all(name == name.lower() for name in fields)


@pytest.mark.parametrize(
    ("plain", "odd"),
    [
        ("data type", "data  type"),
        ("lines", "\tlines"),
        ("map info = ", "map\tinfo = "),
        ("map info = ", "map info =\n"),
        ("data ignore value = 7", "data  ignore value = 7"),
        ("data ignore value = 7", "data ignore value = {7}"),
    ],
)
def test_what_gdal_would_pass_over_is_refused(tmp_path: Path, plain, odd) -> None:
    """GDAL reads another type, place or nodata then, without a word."""
    fields = {
        "map info": "{UTM, 1, 1, 364095, 5809965, 30, 30, 33, North, WGS-84}",
        "data ignore value": 7,
    }
    path = write_envi(tmp_path, np.ones((2, 3, 4), dtype=np.uint16), fields=fields)
    assert hr.open_scene(path).rio.crs is not None
    header = tmp_path / "scene.hdr"
    header.write_text(header.read_text().replace(plain, odd))
    with pytest.raises(FileError, match=f"understand '{plain.partition(' =')[0]}' as it is"):
        hr.open_scene(path)


def test_odd_blanks_and_lines_do_not_hide_other_fields(tmp_path: Path) -> None:
    fields = {"wavelength \t units": "Micrometers", "wavelength": "\n{0.5,\n0.6}"}
    path = write_envi(tmp_path, np.ones((2, 3, 4), dtype=np.uint16), fields=fields)
    cube = hr.open_scene(path)
    np.testing.assert_array_equal(cube.wavelength, [500, 600])
    assert not any("units" in guess for guess in cube.attrs["guesses"])


def test_two_headers_are_told_apart(tmp_path: Path) -> None:
    path = write_envi(tmp_path, np.ones((2, 3, 4), dtype=np.uint16), header_name="scene.img.hdr")
    (tmp_path / "scene.hdr").write_text("ENVI\nsamples = 1\n")
    assert hr.open_scene(path).shape == (2, 3, 4)
    with pytest.raises(FileError, match="lines = nothing"):
        hr.open_scene(tmp_path / "scene.hdr")


def test_several_data_files_are_named(tmp_path: Path) -> None:
    cube = np.ones((2, 3, 4), dtype=np.uint16)
    write_envi(tmp_path, cube, data_name="scene.dat")
    write_envi(tmp_path, cube, data_name="scene.img")
    with pytest.raises(FileError, match=r"Several files could belong .* scene.dat, scene.img"):
        hr.open_scene(tmp_path / "scene.hdr")
    (tmp_path / "scene.img").write_bytes(b"shorter")
    assert hr.open_scene(tmp_path / "scene.hdr").attrs["source"] == "scene.dat"


@pytest.mark.parametrize("interleave", ["bil", "bip", "bsq"])
@pytest.mark.parametrize("stated", ["-3.4028235e+38", "0.1", "nan"])
def test_float_nodata_counts_as_it_was_rounded(tmp_path: Path, interleave, stated) -> None:
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    values[:, 1] = np.float32(stated)
    fields = {"data ignore value": stated}
    path = write_envi(tmp_path, values, interleave=interleave, fields=fields)
    for chunks in (None, "auto"):
        missing = np.isnan(hr.open_scene(path, chunks=chunks).values)
        assert missing[:, 1].all()
        assert not missing[:, [0, 2]].any()
