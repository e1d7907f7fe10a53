import numpy as np
import pytest
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.schema.classes import ClassTable


@pytest.fixture
def cube() -> xr.DataArray:
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    values[0, 0, 0] = np.nan
    values[1, 2, 3] = np.nan
    return xr.DataArray(values, dims=schema.CUBE_DIMS)


def test_a_pixel_needs_every_good_band(cube: xr.DataArray) -> None:
    assert schema.valid_pixels(cube).values.sum() == 10
    masked = cube.assign_coords(good_band=("band", [True, False]))
    valid = schema.valid_pixels(masked)
    assert valid.dims == schema.MAP_DIMS
    assert valid.values.sum() == 11
    assert valid.values[2, 3]
    infinite = cube.fillna(0.0)
    infinite[0, 0, 0] = np.inf
    assert schema.valid_pixels(infinite).values.sum() == 11


def test_dims_are_put_in_order_or_refused(cube: xr.DataArray) -> None:
    turned = cube.transpose("x", "y", "band")
    assert schema.check_dims(turned, schema.CUBE_DIMS, name="cube").dims == schema.CUBE_DIMS
    with pytest.raises(InputError, match=r"\(category, y, x\) \(got \(band, y, x\)\)"):
        schema.check_dims(cube, schema.FIELD_DIMS, name="probability")
    with pytest.raises(InputError, match="got ndarray"):
        schema.check_dims(cube.values, schema.CUBE_DIMS, name="cube")
    with pytest.raises(InputError, match="complex"):
        schema.check_dims(cube + 1j, schema.CUBE_DIMS, name="cube")


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], None),
        ([0.0, 1.0, 2.0], [0.0, 1.0], "1 rows x 3 columns but labels has 1 rows x 2 columns"),
        ([0.0, 1.0, 2.0], [0.5, 1.5, 2.5], r"up to 0.5 \(pixel size 1\)"),
        (["a", "b"], [0.0, 1.0], None),  # names say nothing about a place
        # unsigned numbers do not wrap around
        (np.array([3, 4], np.uint8), np.array([4, 5], np.uint8), "up to 1 .* Resample labels"),
    ],
)
def test_grids_are_compared(ours, theirs, message) -> None:
    first, second = (
        xr.DataArray(np.zeros((1, len(x))), dims=("y", "x"), coords={"x": x})
        for x in (ours, theirs)
    )
    if message is None:
        schema.check_same_grid(first, second, names=("scene", "labels"))
        return
    with pytest.raises(InputError, match=message):
        schema.check_same_grid(first, second, names=("scene", "labels"))


def test_only_pixels_with_a_reference_differ_from_0() -> None:
    labels = xr.DataArray(np.array([[1, 0, 255]], np.uint8), dims=("y", "x"))
    assert schema.fill_value(labels) is None
    filled = labels.assign_attrs(_FillValue=255)
    assert schema.fill_value(filled) == 255
    labels.encoding["_FillValue"] = 255
    assert schema.fill_value(labels) == 255
    found = schema.reference_values(filled.values, fill=255)
    assert found.dtype == np.uint8
    assert found.tolist() == [[1, 0, 0]]
    negative = np.array([[1, -1, 0]])
    assert schema.reference_values(negative, fill=-1).tolist() == [[1, 0, 0]]
    with pytest.raises(InputError, match="found -1"):
        schema.reference_values(negative)
    assert schema.reference_values(np.zeros((0, 3), int)).size == 0


def test_references_lie_on_the_grid_and_only_pixels_with_data_are_compared() -> None:
    label = xr.DataArray(np.array([[1, 2, 255], [2, 2, 1]], np.uint8), dims=("y", "x"))
    reference = np.array([[1, 0, 1], [1, 2, 9]])
    filled = xr.DataArray(np.where(reference == 0, 9, reference), dims=("y", "x"))
    for given, n_used in ((reference, 4), (filled.assign_attrs(_FillValue=9), 3)):
        used, correct = schema.reference_pixels(label, given)
        assert used.sum() == n_used
        assert correct.tolist() == [True, False, True, False][:n_used]
    for wrong, message in (
        (reference[1:], "1 rows x 3 columns"),
        (reference.ravel(), r"\(6,\)"),
        (reference.astype(float), "float64"),
        (-reference, "negative"),
        (0 * reference, "0 everywhere"),
        (np.array([[0, 0, 7], [0, 0, 0]]), "1 pixels have a label in it, and none"),
        (np.ma.masked_equal(reference, 1), "masked"),
    ):
        with pytest.raises(InputError, match=message):
            schema.reference_pixels(label, wrong)


def test_class_table_travels_in_attributes() -> None:
    table = ClassTable.from_names(
        ["Corn-notill", "Grass pasture"], values=[3, 7], colors=["#FF0000", "#00ff00"]
    )
    field = xr.DataArray(np.zeros((2, 1, 1)), dims=schema.FIELD_DIMS, coords={"category": [3, 7]})
    carried = schema.attach_classes(field, table)
    assert list(carried.class_name.values) == ["Corn-notill", "Grass pasture"]
    assert schema.class_table(carried) == table
    assert carried.attrs["flag_meanings"] == "Corn-notill Grass_pasture"


def test_classes_without_a_table_are_called_by_value() -> None:
    labels = xr.DataArray(np.array([[0, 2], [5, 255]], np.uint8), dims=("y", "x"))
    filled = labels.assign_attrs(_FillValue=255)
    assert schema.class_table(filled).names == ("class 2", "class 5")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": (1, 1)}, "positive and distinct"),
        ({"values": (0, 1)}, "0 is reserved"),
        ({"names": ("a", "a")}, "given twice: a"),
        ({"names": ("a",)}, "2 values, 1 names"),
        ({"colors": ("red", "#000000")}, "must look like"),
        ({"names": ("a", "b\x00")}, r"b\\x00.* files cannot"),
        ({"names": ("\udcff", "b")}, "files cannot"),
        ({"names": ("a\uffff", "b")}, "files cannot"),
    ],
)
def test_impossible_class_tables_are_refused(change, message) -> None:
    good = {"values": (1, 2), "names": ("a", "b"), "colors": ("#000000", "#ffffff")}
    with pytest.raises(InputError, match=message):
        ClassTable(**(good | change))


def test_palette_never_runs_out_or_repeats_early() -> None:
    assert len(set(ClassTable.plain(range(1, 61)).colors)) == 60
