"""Operating points, found at reference pixels alone, against those read off whole maps."""

import numpy as np
import pytest
import xarray as xr

from hsreject.confidence import CONFIDENCES, label_map
from hsreject.errors import InputError
from hsreject.measures.curve import rejection_curve
from hsreject.rejection import Calibration, PixelwiseRejector, RankedRejector, SequentialRejector
from hsreject.schema import reference_pixels

SHAPE = (9, 11)


def make_maps(
    n_classes: int = 4, *, dtype: str = "float32", distinct: int = 10**6
) -> tuple[xr.Dataset, np.ndarray]:
    """Return maps with a corner without data, in the two layouts of a field, and a reference.

    Few distinct values make ties, of the categories of a pixel and of confidences.
    """
    rng = np.random.default_rng(5)
    fields = rng.dirichlet(np.full(n_classes, 0.5), size=(2, *SHAPE))
    fields = np.ceil(fields * distinct)
    fields = (fields / fields.sum(axis=-1, keepdims=True)).astype(dtype)
    fields[:, :2, :3] = np.nan
    dims = ("category", "y", "x")
    by_rows = np.ascontiguousarray(fields[0].swapaxes(1, 2)).swapaxes(1, 2)  # as the solvers do
    maps = xr.Dataset(
        {
            "hidden_field": (dims, np.moveaxis(by_rows, 2, 0)),
            "probability": (dims, np.ascontiguousarray(np.moveaxis(fields[1], 2, 0))),
        },
        coords={"category": 3 * np.arange(n_classes) + 2, "y": -np.arange(9.0)},
    )
    reference = np.where(rng.random(SHAPE) < 0.6, label_map(maps["probability"]).values, 0)
    reference[reference == 255] = 2  # some reference pixels have no data
    return maps, reference


def plain_points(
    rejector: RankedRejector, maps: xr.Dataset, reference: np.ndarray, **options: Calibration
) -> xr.Dataset:
    """Return the operating points the long way: whole maps first, then their reference pixels."""
    ranking = rejector.rank(maps, **options)
    used, correct = reference_pixels(ranking["label"], reference)
    points = rejection_curve(correct, ranking["confidence"].values[used])
    accuracy = np.full(points.sizes["operating_point"], correct.mean())
    long_name = {"long_name": "accuracy with nothing rejected"}
    return points.assign(overall_accuracy=("operating_point", accuracy, long_name))


@pytest.mark.parametrize("confidence", list(CONFIDENCES))
@pytest.mark.parametrize("kind", [SequentialRejector, PixelwiseRejector])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_classes": 2},
        {"n_classes": 1},
        {"distinct": 4},
        {"n_classes": 2, "distinct": 3},
        {"dtype": "float64"},
        {"n_classes": 90},
    ],
    ids=str,
)
def test_reference_pixels_alone_suffice(kind, confidence, options) -> None:
    maps, reference = make_maps(**options)
    rejector = kind(confidence=confidence)
    found = rejector.operating_points(maps, reference)
    expected = plain_points(rejector, maps, reference)
    xr.testing.assert_identical(found, expected)
    assert list(found) == list(expected)
    assert [found[name].dtype for name in found] == [expected[name].dtype for name in expected]


@pytest.mark.parametrize("confidence", list(CONFIDENCES))
@pytest.mark.parametrize("chunked", [("hidden_field",), ("probability",), None])
def test_lazy_maps_give_the_same(confidence, chunked, tmp_path) -> None:
    maps, reference = make_maps()
    rejector = SequentialRejector(confidence=confidence)
    expected = rejector.operating_points(maps, reference)
    if chunked is None:  # lazy without dask: read from the file when asked for
        maps.to_netcdf(tmp_path / "maps.nc", engine="h5netcdf")
        with xr.open_dataset(tmp_path / "maps.nc", engine="h5netcdf") as opened:
            xr.testing.assert_identical(rejector.operating_points(opened, reference), expected)
        return
    lazy = maps.assign({name: maps[name].chunk({"y": 4, "x": 5}) for name in chunked})
    xr.testing.assert_identical(rejector.operating_points(lazy, reference), expected)


@pytest.mark.parametrize("thresholds", ["equal_rejection", "equal_accuracy"])
def test_thresholds_a_class_look_at_the_whole_scene(thresholds) -> None:
    maps, reference = make_maps()
    calibration = Calibration(np.where(np.arange(11) % 2, reference, 0), training=None)
    rejector = SequentialRejector(thresholds=thresholds)
    xr.testing.assert_identical(
        rejector.operating_points(maps, reference, calibration=calibration),
        plain_points(rejector, maps, reference, calibration=calibration),
    )


@pytest.mark.parametrize("confidence", ["tie_broken_maximum", "entropy"])
def test_novelty_lowers_the_same_confidences(confidence) -> None:
    maps, reference = make_maps()
    p_value = np.random.default_rng(6).random(SHAPE)
    p_value[:2, :3] = np.nan
    maps["novelty_p_value"] = (("y", "x"), p_value)
    rejector = SequentialRejector(confidence=confidence)
    found = rejector.operating_points(maps, reference)
    xr.testing.assert_identical(found, plain_points(rejector, maps, reference))
    assert not found.equals(rejector.operating_points(maps.drop_vars("novelty_p_value"), reference))
    outside = np.flatnonzero(reference[5] == 0)[0]  # what is checked is the scene, not the pixels
    maps["novelty_p_value"][5, outside] = 2
    with pytest.raises(InputError, match="0 values are missing, 1 lie outside"):
        rejector.operating_points(maps, reference)


def test_a_rejector_of_maps_only_needs_nothing_else() -> None:
    class ByColumn(RankedRejector):
        def label_and_confidence(self, evidence, progress):
            label = label_map(evidence.probability)
            return label, xr.zeros_like(label, dtype=float) + np.arange(SHAPE[1])

    maps, reference = make_maps()
    expected = plain_points(ByColumn(), maps, reference)
    xr.testing.assert_identical(ByColumn().operating_points(maps, reference), expected)
    assert expected.sizes["operating_point"] == SHAPE[1] + 1


@pytest.mark.parametrize("thresholds", ["common", "equal_rejection"])
def test_the_fill_value_of_a_reference_is_no_reference(thresholds) -> None:
    maps, reference = make_maps()
    rejector = SequentialRejector(thresholds=thresholds)
    filled = np.where(reference == 0, 255, reference).astype("uint8")
    given = xr.DataArray(filled, dims=("y", "x"), attrs={"_FillValue": 255})
    xr.testing.assert_identical(
        rejector.operating_points(maps, given), rejector.operating_points(maps, reference)
    )


@pytest.mark.parametrize("confidence", ["tie_broken_maximum", "posterior"])
@pytest.mark.parametrize("chunks", [None, {"y": 4}])
@pytest.mark.parametrize("category", [3, slice(None)])
def test_a_field_without_probabilities_is_refused_everywhere(confidence, chunks, category) -> None:
    maps, reference = make_maps()
    label = label_map(maps["hidden_field"]).values
    where = (label == maps.category.values[-1]) & (reference > 0)
    y, x = np.argwhere(where)[0]
    maps["probability"][category, y, x] = np.nan
    if chunks is not None:
        maps = maps.chunk(chunks)
    sentence = r" have a field but no class probabilities \(1 of them\)\. Pass the probabilities"
    for thresholds in ("common", "equal_rejection"):
        rejector = SequentialRejector(confidence=confidence, thresholds=thresholds)
        with pytest.raises(InputError, match="Pixels of the scene" + sentence):
            rejector.reject(maps, fraction=1.0)
        with pytest.raises(InputError, match=sentence):
            rejector.operating_points(maps, reference)


@pytest.mark.parametrize("chunks", [None, {"y": 4}])
@pytest.mark.parametrize(
    ("hidden", "likely"), [((2, 5, 8), (5, 8, 11)), ((2, 5), (2, 5, 8)), ((5, 8), (2, 5, 8))]
)
def test_other_categories_of_the_hidden_field_are_named(chunks, hidden, likely) -> None:
    maps, reference = make_maps()
    fields = {
        name: maps[name].sel(category=list(labels))
        for name, labels in (("hidden_field", hidden), ("probability", likely))
    }
    mixed = xr.Dataset(fields)
    mixed = mixed if chunks is None else mixed.chunk(chunks)
    sentence = (
        "different categories: hidden_field has values for "
        f"{', '.join(map(str, hidden))}, probability for {', '.join(map(str, likely))}. Pass"
    )
    with pytest.raises(InputError, match=sentence):
        SequentialRejector().reject(mixed, fraction=0.5)
    with pytest.raises(InputError, match=sentence):
        SequentialRejector().operating_points(mixed, reference)


def test_a_label_without_confidence_is_refused() -> None:
    class Blind(RankedRejector):
        def label_and_confidence(self, evidence, progress):
            label = label_map(evidence.probability)
            return label, xr.full_like(label, np.nan, dtype=float)

    maps, _ = make_maps()
    with pytest.raises(InputError, match=r"have a label but no confidence.*\(93 of them\)"):
        Blind().reject(maps, fraction=0.5)


def test_a_scene_without_data_is_refused() -> None:
    maps, reference = make_maps()
    empty = maps * np.nan
    for rejector in (SequentialRejector(), PixelwiseRejector()):
        with pytest.raises(InputError, match="No pixel of the scene has data"):
            rejector.reject(empty, fraction=0.5)
        with pytest.raises(InputError, match="none of them has data in this scene"):
            rejector.operating_points(empty, reference)


@pytest.mark.parametrize("kind", [PixelwiseRejector, SequentialRejector])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (np.log, "must be at least 0 .* not scores or log-probabilities"),
        (lambda p: 100 * p, r"must sum to 1 over 'category' \(found sums from 100 to 100\)"),
        (lambda p: np.where(p > 0.9, np.inf, p), "must sum to 1 .* to inf"),
        (lambda p: np.where(p > 0.9, -np.inf, p), "must be at least 0"),
        (lambda p: 0 * p, "is 0 in every class at 93 pixels"),
        (lambda p: np.where(p > 0.9, np.nan, p), "NaN in some classes but not in all"),
    ],
    ids=["log", "percent", "infinite", "minus infinite", "zero", "partly missing"],
)
def test_what_are_no_probabilities_is_refused(kind, change, message) -> None:
    maps, reference = make_maps()
    probability = maps["probability"]
    wrong = probability.copy(data=change(probability.values))
    with pytest.raises(InputError, match=message):
        kind().reject(wrong, fraction=0.1)
    with pytest.raises(InputError, match=message):
        kind().operating_points(wrong, reference)


def test_rounding_below_0_is_no_fault_of_probabilities() -> None:
    rounded = np.array([[[1.0, 0.5]], [[-1e-8, 0.5]]])
    found = PixelwiseRejector().reject(rounded, fraction=0.5)
    assert found.label_with_rejection.values.tolist() == [[1, 0]]


def test_what_cannot_be_compared_is_refused() -> None:
    maps, reference = make_maps()
    rejector = SequentialRejector()
    with pytest.raises(InputError, match="the label map has 9 rows x 11 columns but reference has"):
        rejector.operating_points(maps, reference[1:])
    with pytest.raises(InputError, match=r"reference must be a map \(y, x\) \(got .* \(99,\)\)"):
        rejector.operating_points(maps, reference.ravel())
    with pytest.raises(InputError, match=r"reference must hold integers.*\(got float64\)"):
        rejector.operating_points(maps, reference.astype(float))
    shifted = xr.DataArray(reference, dims=("y", "x"), coords={"y": 0.5 - np.arange(9.0)})
    with pytest.raises(InputError, match="the label map and reference lie on different grids"):
        rejector.operating_points(maps, shifted)
    only_corner = np.where(np.isnan(maps["probability"].values[0]), 2, 0)
    with pytest.raises(InputError, match="6 pixels have a label in it, and none of them has data"):
        rejector.operating_points(maps, only_corner)
    with pytest.raises(InputError, match=r"it is 0 everywhere, .* class values from 1"):
        rejector.operating_points(maps, 0 * reference)
    with pytest.raises(InputError, match=r"reference must not be negative \(found -1\)\. Use 0"):
        rejector.operating_points(maps, -(reference > 0).astype("int8"))
    with pytest.raises(InputError, match="reference is a masked array with masked values"):
        rejector.operating_points(maps, np.ma.masked_equal(reference, 2))
    y, x = np.argwhere(reference[3:] > 0)[0] + (3, 0)
    maps["probability"][:, y, x] = np.nan
    with pytest.raises(InputError, match=r"no class probabilities \(1 of them\)"):
        rejector.operating_points(maps, reference)
