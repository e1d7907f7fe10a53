"""Operating points of rejectors that rank pixels, against those read off whole maps."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy.stats import rankdata

import hsreject as hr
from hsreject.confidence import CONFIDENCES, label_map
from hsreject.errors import InputError

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
    rejector: hr.RankedRejector, maps: xr.Dataset, reference: np.ndarray
) -> xr.Dataset:
    """Return the curve of the pixels with a reference and data, one pixel at a time."""
    ranking = rejector.rank(maps)
    label, sure = ranking.label.values, ranking.confidence.values
    nodata = np.iinfo(label.dtype).max
    used = [(y, x) for y, x in np.argwhere(reference > 0) if label[y, x] != nodata]
    correct = np.array([label[place] == reference[place] for place in used])
    points = hr.rejection_curve(correct, np.array([sure[place] for place in used]))
    accuracy = np.full(points.sizes["operating_point"], correct.mean())
    long_name = {"long_name": "accuracy with nothing rejected"}
    return points.assign(overall_accuracy=("operating_point", accuracy, long_name))


@pytest.mark.parametrize("confidence", list(CONFIDENCES))
@pytest.mark.parametrize("kind", [hr.SequentialRejector, hr.PixelwiseRejector])
@pytest.mark.parametrize(
    "options", [{}, {"n_classes": 1}, {"n_classes": 90, "distinct": 3}], ids=str
)
def test_points_are_those_of_the_pixels_with_reference_and_data(kind, confidence, options) -> None:
    maps, reference = make_maps(**options)
    rejector = kind(confidence=confidence)
    found = rejector.operating_points(maps, reference)
    expected = plain_points(rejector, maps, reference)
    xr.testing.assert_identical(found, expected)
    assert [found[name].dtype for name in found] == [expected[name].dtype for name in expected]


@pytest.mark.parametrize("confidence", ["tie_broken_maximum", "margin"])
def test_lazy_maps_give_the_same(confidence, tmp_path) -> None:
    maps, reference = make_maps()
    rejector = hr.SequentialRejector(confidence=confidence)
    expected = rejector.operating_points(maps, reference)
    for name in ("hidden_field", "probability"):
        lazy = maps.assign({name: maps[name].chunk({"y": 4, "x": 5})})
        xr.testing.assert_identical(rejector.operating_points(lazy, reference), expected)
    maps.to_netcdf(tmp_path / "maps.nc", engine="h5netcdf")  # lazy without dask
    with xr.open_dataset(tmp_path / "maps.nc", engine="h5netcdf") as opened:
        xr.testing.assert_identical(rejector.operating_points(opened, reference), expected)


@pytest.mark.parametrize("confidence", ["tie_broken_maximum", "entropy"])
def test_novelty_raises_the_doubt_of_a_rank(confidence) -> None:
    maps, reference = make_maps()
    p_value = np.random.default_rng(6).uniform(0.01, 0.3, SHAPE)
    maps["p_value"] = ("y", "x"), p_value
    aware = hr.SequentialRejector(confidence=confidence)
    ranking, found = replace(aware, novelty=False).rank(maps), aware.rank(maps)
    has_data = ranking.confidence.notnull().values
    plain, lowered = (one.confidence.values[has_data] for one in (ranking, found))
    rank = (rankdata(plain) - 1) / (has_data.sum() - 1)
    doubt = (1 - rank) * np.maximum(1, 0.1 / p_value[has_data]) ** 0.2
    np.testing.assert_array_equal(lowered == plain, p_value[has_data] >= 0.1)
    known = p_value[has_data] >= 0.025
    inside = (doubt < 1) & known
    np.testing.assert_allclose(
        lowered[inside], np.quantile(plain, 1 - doubt[inside]), rtol=1e-5, atol=1e-6
    )
    assert (lowered[(doubt > 1) & known] < plain.min()).all()
    assert (lowered[doubt > 1] > 2 * plain.min() - plain.max()).all()
    np.testing.assert_array_equal(found.unknown, (p_value < 0.025) & has_data)
    xr.testing.assert_identical(
        aware.operating_points(maps, reference), plain_points(aware, maps, reference)
    )


def test_a_rejector_of_maps_only_needs_nothing_else() -> None:
    class ByColumn(hr.RankedRejector):
        def label_and_confidence(self, evidence, progress):
            label = label_map(evidence.probability)
            return label, xr.zeros_like(label, dtype=float) + np.arange(SHAPE[1])

    maps, reference = make_maps()
    expected = plain_points(ByColumn(), maps, reference)
    xr.testing.assert_identical(ByColumn().operating_points(maps, reference), expected)
    assert expected.sizes["operating_point"] == SHAPE[1] + 1


@pytest.mark.parametrize("confidence", ["tie_broken_maximum", "posterior"])
@pytest.mark.parametrize("chunks", [{}, {"y": 4}])
@pytest.mark.parametrize("category", [3, slice(None)])
def test_a_field_without_probabilities_is_refused_everywhere(confidence, chunks, category) -> None:
    maps, reference = make_maps()
    label = label_map(maps["hidden_field"]).values
    y, x = np.argwhere((label == maps.category.values[-1]) & (reference > 0))[0]
    maps["probability"][category, y, x] = np.nan
    maps = maps.chunk(chunks) if chunks else maps
    rejector = hr.SequentialRejector(confidence=confidence)
    for ask in (rejector.rank, lambda given: rejector.operating_points(given, reference)):
        with pytest.raises(InputError, match=r"no class probabilities \(1 of them\)"):
            ask(maps)


@pytest.mark.parametrize("chunks", [None, {"y": 4}])
@pytest.mark.parametrize(
    ("hidden", "likely"), [((2, 5, 8), (5, 8, 11)), ((2, 5), (2, 5, 8)), ((5, 8), (2, 5, 8))]
)
def test_other_categories_of_the_hidden_field_are_named(chunks, hidden, likely) -> None:
    maps, reference = make_maps()
    mixed = xr.Dataset(
        {
            "hidden_field": maps["hidden_field"].sel(category=list(hidden)),
            "probability": maps["probability"].sel(category=list(likely)),
        }
    )
    mixed = mixed if chunks is None else mixed.chunk(chunks)
    named = (
        f"different categories: .*{', '.join(map(str, hidden))}, .*{', '.join(map(str, likely))}"
    )
    rejectors = [hr.SequentialRejector()]
    if chunks is None:  # lazily, pixelwise rejection checks block by block and sees no other map
        rejectors.append(hr.PixelwiseRejector())
    for rejector in rejectors:
        for ask in (
            rejector.rank,
            lambda given, by=rejector: by.operating_points(given, reference),
        ):
            with pytest.raises(InputError, match=named):
                ask(mixed)


def test_a_label_without_confidence_is_refused() -> None:
    class Blind(hr.RankedRejector):
        def label_and_confidence(self, evidence, progress):
            label = label_map(evidence.probability)
            return label, xr.full_like(label, np.nan, dtype=float)

    maps, _ = make_maps()
    with pytest.raises(InputError, match=r"have a label but no confidence.*\(93 of them\)"):
        Blind().reject(maps, fraction=0.5)


@pytest.mark.parametrize("kind", [hr.PixelwiseRejector, hr.SequentialRejector])
def test_a_scene_without_data_is_refused(kind) -> None:
    maps, reference = make_maps()
    with pytest.raises(InputError, match="No pixel"):
        kind().reject(maps * np.nan, fraction=0.5)
    with pytest.raises(InputError, match="none of them has data"):
        kind().operating_points(maps * np.nan, reference)


@pytest.mark.parametrize("kind", [hr.PixelwiseRejector, hr.SequentialRejector, hr.JointRejector])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (np.log, "at least 0"),
        (lambda p: 100 * p, "from 100 to 100"),
        (lambda p: np.where(p > 0.9, np.inf, p), "to inf"),
        (lambda p: np.where(p > 0.9, -np.inf, p), "at least 0"),
        (lambda p: 0 * p, "93 pixels"),
        (lambda p: np.where(p > 0.9, np.nan, p), "NaN in some classes"),
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


def test_rounding_below_0_and_whole_numbers_are_no_faults_of_probabilities() -> None:
    rounded = np.array([[[1.0, 0.5]], [[-1e-8, 0.5]]])
    found = hr.PixelwiseRejector().reject(rounded, fraction=0.5)
    assert found.label_with_rejection.values.tolist() == [[1, 0]]
    found = hr.PixelwiseRejector().reject(np.array([[[1, 0, 1]], [[0, 1, 0]]]), fraction=0.0)
    assert found.label_with_rejection.values.tolist() == [[1, 2, 1]]
