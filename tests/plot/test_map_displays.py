"""Maps and images: what is drawn where, in which color, and what the legend says."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

import hsreject as hr
from hsreject.errors import InputError
from hsreject.plot import (
    INFRARED,
    ClassMapDisplay,
    ConfidenceMapDisplay,
    FalseColorDisplay,
    OutcomeMapDisplay,
    RejectMapDisplay,
)
from hsreject.plot.map_displays import color_distance
from tests.plot.drawing import legend, row

NODATA = 255


@pytest.fixture
def ax() -> Axes:
    return row(1)[0]


def pixels(ax: Axes) -> np.ndarray:
    return np.asarray(ax.get_images()[0].get_array())


def as_bytes(color: str) -> list[int]:
    return [round(255 * channel) for channel in to_rgb(color)]


def test_class_map_draws_each_class_in_its_own_color(ax: Axes) -> None:
    table = hr.ClassTable.from_names(["soil", "water"], colors=["#aa5500", "#0033cc"])
    labels = np.array([[1, 2, 0, NODATA]], dtype=np.uint8)
    drawn = pixels(ClassMapDisplay.from_labels(labels, classes=table).plot(ax))
    assert drawn[0, 0].tolist() == [*as_bytes("#aa5500"), 255]
    assert drawn[0, 1].tolist() == [*as_bytes("#0033cc"), 255]
    assert drawn[0, 2].tolist() == [255, 255, 255, 255]
    assert drawn[0, 3, 3] == 0, "no data is transparent"
    assert legend(ax) == ["soil", "water", "no reference", "no data"]


def test_class_map_shows_only_what_occurs_and_names_what_no_table_knows(ax: Axes) -> None:
    table = hr.ClassTable.from_names(["soil", "water", "roof"])
    ClassMapDisplay.from_labels(np.array([[3, 3, 9]]), classes=table).plot(ax)
    assert legend(ax) == ["roof", "not in the class table"]


def test_class_table_comes_with_the_labels_and_has_no_class_for_nodata() -> None:
    table = hr.ClassTable.from_names(["soil", "water"])
    labels = xr.DataArray(np.array([[1, 2]]), dims=("y", "x"), attrs=table.to_attrs())
    assert ClassMapDisplay.from_labels(labels).classes == table
    plain = ClassMapDisplay.from_labels(np.array([[1, 2, NODATA]], dtype=np.uint8))
    assert plain.classes.values == (1, 2)


def test_rejected_no_data_and_classes_are_told_apart(ax: Axes) -> None:
    label = np.array([[1, 2, 2, NODATA]], dtype=np.uint8)
    rejected = np.array([[True, False, False, True]])  # a mask may say True where there is no data
    display = RejectMapDisplay.from_maps(label, rejected)
    drawn = pixels(display.plot(ax))
    assert drawn[0, 0].tolist() == [0, 0, 0, 255]
    assert drawn[0, 3, 3] == 0
    assert display.rejected_fraction == pytest.approx(1 / 3)
    assert legend(ax) == ["class 2", "rejected (33.3 %)", "no data"]


def test_class_map_of_a_reject_map_calls_zero_rejected(ax: Axes) -> None:
    labels = xr.DataArray(np.array([[0, 2]]), dims=("y", "x"), name="label_with_rejection")
    drawn = pixels(ClassMapDisplay.from_labels(labels).plot(ax))
    assert legend(ax) == ["class 2", "rejected"]
    assert drawn[0, 0].tolist() == [0, 0, 0, 255]


def test_reject_map_from_label_with_rejection_is_the_same_map() -> None:
    both = RejectMapDisplay.from_maps(np.array([[1, 2]]), np.array([[True, False]]))
    one = RejectMapDisplay.from_labels(np.array([[0, 2]]), classes=both.classes)
    xr.testing.assert_equal(both.label_with_rejection, one.label_with_rejection)


def color_of(drawn: np.ndarray) -> str:
    return "#" + bytes(drawn[0, 0, :3].tolist()).hex()


def test_rejected_and_no_reference_have_colors_that_no_class_comes_near() -> None:
    extremes = hr.ClassTable.from_names(["night", "snow"], colors=["#000000", "#ffffff"])
    for display, table, least in (
        *((RejectMapDisplay, hr.ClassTable.plain(range(1, n + 1)), 20) for n in (2, 16, 40)),
        (RejectMapDisplay, extremes, 25),
        (ClassMapDisplay, extremes, 20),
    ):
        shown = display.from_labels(np.array([[0, 1, 2]]), classes=table)
        chosen = color_of(pixels(shown.plot(row(1)[0])))
        assert min(color_distance(chosen, color) for color in table.colors) > least


def test_maps_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="rejected has 1 rows x 3"):
        RejectMapDisplay.from_maps(np.array([[1, 2]]), np.zeros((1, 3), dtype=bool))
    with pytest.raises(InputError, match="two dimensions"):
        ClassMapDisplay.from_labels(np.array([1, 2]))


def test_outcome_codes_by_hand(ax: Axes) -> None:
    label = np.array([[1, 2, 1, 2, 1, NODATA]], dtype=np.uint8)
    reference = np.array([[1, 1, 1, 1, 0, 1]], dtype=np.uint8)
    rejected = np.array([[False, False, True, True, False, False]])
    display = OutcomeMapDisplay.from_maps(label, reference, rejected)
    assert display.outcome.values.tolist() == [[1, 2, 3, 4, 0, -1]]
    display.plot(ax)
    assert legend(ax) == [
        "accurate, kept (25.0 %)",
        "misclassified, kept (25.0 %)",
        "accurate, rejected (25.0 %)",
        "misclassified, rejected (25.0 %)",
        "no reference",
        "no data",
    ]


def test_confidence_map_keeps_nan_transparent_and_marks_clipped_ends(ax: Axes) -> None:
    confidence = np.array([[0.1, 0.6, 0.9, np.nan]])
    ConfidenceMapDisplay.from_confidence(confidence, limits=(0.5, 1.0)).plot(ax)
    image = ax.get_images()[0]
    assert np.ma.getmaskarray(image.get_array()).tolist() == [[False, False, False, True]]
    assert image.get_clim() == (0.5, 1.0)
    assert image.colorbar.extend == "min"
    assert image.colorbar.ax.get_ylabel() == "confidence"
    with pytest.raises(InputError, match="no finite value"):
        ConfidenceMapDisplay.from_confidence(np.full((2, 2), np.nan))


def scene() -> xr.DataArray:
    values = np.random.default_rng(0).uniform(100, 200, (4, 20, 30)).astype(np.float32)
    values[:, 0, 0] = np.nan
    values[1, 5, 5] = 1e6  # one hot pixel must not darken the rest
    return xr.DataArray(
        values,
        dims=("band", "y", "x"),
        coords={
            "wavelength": ("band", [470.0, 550.0, 640.0, 860.0]),
            "x": 100.0 + 10 * np.arange(30),
            "y": 900.0 - 10 * np.arange(20),
        },
    )


def test_false_color_chooses_by_wavelength() -> None:
    assert FalseColorDisplay.from_cube(scene()).bands == (2, 1, 0)
    shown = FalseColorDisplay.from_cube(scene(), wavelengths=INFRARED)
    assert shown.bands == (3, 2, 1)
    assert len(set(FalseColorDisplay.from_cube(scene().drop_vars("wavelength")).bands)) == 3
    far = scene().assign_coords(wavelength=("band", [1000.0, 900.0, 1200.0, 1100.0]))
    assert FalseColorDisplay.from_cube(far).bands == (3, 0, 1), "spread, long waves as red"


def test_false_color_passes_over_bad_and_empty_bands() -> None:
    cube = scene().assign_coords(good_band=("band", [True, False, True, True]))
    assert 1 not in FalseColorDisplay.from_cube(cube).bands
    empty = scene()
    empty[2] = np.nan
    assert 2 not in FalseColorDisplay.from_cube(empty).bands


def test_false_color_stretch_is_robust_and_keeps_nodata_transparent(ax: Axes) -> None:
    picture = FalseColorDisplay.from_cube(scene()).picture.values
    assert picture[0, 0].tolist() == [0, 0, 0, 0]
    assert picture[1:, :, 3].min() == 255
    assert 100 < np.median(picture[..., 1]) < 155, "the hot pixel took the whole range"
    constant = xr.DataArray(np.full((3, 2, 2), 7, dtype=np.uint16), dims=("band", "y", "x"))
    picture = FalseColorDisplay.from_cube(constant).picture.values
    assert np.unique(picture[..., :3]).tolist() == [128]
    with pytest.raises(InputError, match="4 bands"):
        FalseColorDisplay.from_cube(scene(), bands=(0, 1, 4))
    FalseColorDisplay.from_cube(scene()).plot(ax)
    assert ax.get_images()[0].get_extent() == [95.0, 395.0, 705.0, 905.0], "where it lies"


def test_large_maps_are_thinned_before_they_are_drawn() -> None:
    large = np.zeros((10, 4500), dtype=np.uint8)
    assert ClassMapDisplay.from_labels(large).labels.shape == (4, 1500)
    assert ClassMapDisplay.from_labels(large[:, :2000]).labels.shape == (10, 2000)
