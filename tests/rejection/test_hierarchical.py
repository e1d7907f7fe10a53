"""Hierarchical rejection against a search through all nodes, pixel by pixel."""

import math

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject import schema
from hsreject.errors import InputError

NAMES = ["roof", "pavement", "grass", "tree", "soil", "water"]
GROUPS = {
    "sealed": ["roof", "pavement"],
    "vegetation": ["grass", "tree"],
    "unsealed": ["vegetation", "soil"],
}
MEMBERS = {name: {name} for name in NAMES} | {
    "sealed": {"roof", "pavement"},
    "vegetation": {"grass", "tree"},
    "unsealed": {"grass", "tree", "soil"},
}
DEPTH = dict(zip([*NAMES, *GROUPS], [2, 2, 3, 3, 2, 1, 1, 2, 1], strict=True))
REJECTOR = hr.HierarchicalRejector(GROUPS)


def scene(n: int, *, seed: int, decimals: int = 8) -> tuple[xr.DataArray, np.ndarray]:
    """Return probabilities (category, 1, x) with ties where rounded, and a reference like them."""
    rng = np.random.default_rng(seed)
    values = rng.dirichlet(np.full(6, 0.4), n).T
    reference = np.array([rng.choice(6, p=column) for column in values.T]) + 1
    values = np.round(values, decimals)
    values[values.argmax(axis=0), np.arange(n)] += 1 - values.sum(axis=0)
    field = xr.DataArray(values[:, None], dims=schema.FIELD_DIMS)
    table = hr.ClassTable.from_names(NAMES)
    return schema.attach_classes(field, table), reference[None]


def sums_of(pixel: np.ndarray) -> dict[str, float]:
    chance = dict(zip(NAMES, pixel, strict=True))
    return {node: math.fsum(chance[one] for one in names) for node, names in MEMBERS.items()}


def path_of(pixel: np.ndarray) -> list[str]:
    """Return the path by the definition: the likeliest class in the finest majority."""
    chance = sums_of(pixel)
    majority = [node for node in MEMBERS if chance[node] > 0.5]
    inside = min((MEMBERS[node] for node in majority), key=len, default=set(NAMES))
    label = max((name for name in NAMES if name in inside), key=chance.__getitem__)
    return sorted((n for n in MEMBERS if label in MEMBERS[n]), key=lambda n: len(MEMBERS[n]))


def answer_of(pixel: np.ndarray, theta: float) -> str:
    chance = sums_of(pixel)
    return next((node for node in path_of(pixel) if chance[node] >= theta), "rejected")


def names_at(probability: xr.DataArray, **wish: float) -> list[str]:
    answers = REJECTOR.reject(probability, **wish).label_with_rejection
    table = schema.class_table(answers)
    names = {0: "rejected"} | dict(zip(table.values, table.names, strict=True))
    return [names[code] for code in answers.values[0].tolist()]


@pytest.mark.parametrize("theta", [0.0, 0.2, 0.35, 0.5, 0.55, 0.7, 0.9, 0.999])
def test_answers_are_those_of_the_definition(theta) -> None:
    probability, _ = scene(400, seed=1)
    pixels = probability.values[:, 0].T
    assert names_at(probability, threshold=theta) == [answer_of(one, theta) for one in pixels]


@pytest.mark.parametrize("theta", [0.51, 0.7, 0.9])
def test_above_one_half_it_is_the_finest_of_all_nodes_that_reach_the_threshold(theta) -> None:
    probability, _ = scene(400, seed=2)
    expected = []
    for pixel in probability.values[:, 0].T:
        chance = sums_of(pixel)
        reaching = [node for node in MEMBERS if chance[node] >= theta]
        expected.append(min(reaching, key=lambda node: len(MEMBERS[node]), default="rejected"))
    assert names_at(probability, threshold=theta) == expected
    assert {"rejected", "grass", "vegetation", "unsealed", "sealed"} <= set(expected)


def test_answers_only_get_coarser() -> None:
    probability, _ = scene(300, seed=3)
    before = names_at(probability, threshold=0.0)
    for theta in np.linspace(0.05, 1.05, 21):
        after = names_at(probability, threshold=theta)
        for finer, coarser in zip(before, after, strict=True):
            assert coarser == "rejected" or MEMBERS[finer] <= MEMBERS[coarser]
        before = after


@pytest.mark.parametrize("decimals", [8, 1])
def test_the_sweep_is_that_of_all_thresholds_one_by_one(decimals) -> None:
    probability, reference = scene(80, seed=4, decimals=decimals)
    points = REJECTOR.operating_points(probability, reference)
    ranking = REJECTOR.rank(probability)
    thetas = [*np.unique(ranking.confidence), np.inf]
    assert points.threshold.values.tolist() == thetas
    assert (decimals > 1) == (len(thetas) > 100)
    truth = [NAMES[code - 1] for code in reference[0]]
    coarsest = [path_of(pixel)[-1] for pixel in probability.values[:, 0].T]
    last_wrong = 80
    for theta, point in zip(thetas, range(len(thetas)), strict=True):
        row = points.isel(operating_point=point)
        answers = names_at(probability, threshold=theta)
        kept = [(t, a) for t, a in zip(truth, answers, strict=True) if a != "rejected"]
        rejected = [
            (t, c) for t, c, a in zip(truth, coarsest, answers, strict=True) if a == "rejected"
        ]
        right = [t in MEMBERS[a] for t, a in kept]
        would = [t in MEMBERS[c] for t, c in rejected]
        expected = hr.OperatingPoint(
            sum(right), len(right) - sum(right), sum(would), len(would) - sum(would)
        )
        assert hr.OperatingPoint.from_curve(row) == expected
        assert row.rejected_fraction == len(rejected) / 80
        np.testing.assert_allclose(row.overall_accuracy, expected.overall_accuracy)
        bits = [math.log2(6 / len(MEMBERS[a])) for _, a in kept]
        groups = [r and len(MEMBERS[a]) > 1 for r, (_, a) in zip(right, kept, strict=True)]
        assert row.accurate_coarse == sum(groups)
        np.testing.assert_allclose(row.information, sum(bits) / 80, atol=1e-12)
        if kept:
            depth = np.mean([DEPTH[a] for _, a in kept])
            np.testing.assert_allclose(row.mean_information, np.mean(bits), atol=1e-12)
            np.testing.assert_allclose(row.mean_depth, depth, atol=1e-12)
        else:
            assert np.isnan(row.mean_information)
        height = [[a for _, a in kept if len(MEMBERS[a]) == size] for size in (1, 2, 3)]
        np.testing.assert_allclose(row.kept_at_level, [len(one) / 80 for one in height])
        assert expected.misclassified_kept <= last_wrong  # wrong answers only become fewer
        last_wrong = expected.misclassified_kept
    assert last_wrong == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_curve_of_deep_trees_is_that_of_answers_one_by_one(dtype) -> None:
    rng = np.random.default_rng(14)
    groups = {"ab": ["a", "b"], "abc": ["ab", "c"], "abcd": ["abc", "d"], "ef": ["e", "f"]}
    tree = hr.ClassTree.from_groups(list("abcdefg"), groups)
    levels = np.sort(rng.random((4, 60)).round(1).astype(dtype), axis=0) - dtype(0.5)
    label, truth = rng.integers(1, 8, 60), rng.integers(1, 9, 60)  # 8 is no class of the tree
    curve = hr.level_curve(label, levels, truth, tree)
    assert curve.threshold.values.tolist() == [*np.unique(levels).tolist(), np.inf]
    codes = np.array(tree.table.values)[tree.over[:, label - 1]]  # (level, sample)
    right = tree.holds(codes, truth)
    for row in (curve.isel(operating_point=place) for place in range(curve.threshold.size)):
        height = (levels < row.threshold.item()).sum(axis=0)
        kept = height < 4
        answer = height[kept], np.flatnonzero(kept)
        expected = hr.operating_point(np.where(kept, right[height % 4, range(60)], right[3]), ~kept)
        assert hr.OperatingPoint.from_curve(row) == expected
        nodes = tree.over[:, label - 1][answer]
        assert row.accurate_coarse == (right[answer] & (nodes >= 7)).sum()
        assert row.information.item() == pytest.approx(tree.information[nodes].sum() / 60)
        shares = np.bincount(answer[0], minlength=4) / 60
        np.testing.assert_array_equal(row.kept_at_level, shares)


def test_a_fraction_counts_the_root_and_takes_the_finest_answers() -> None:
    probability, reference = scene(200, seed=5)
    nothing = REJECTOR.reject(probability, fraction=0.0)
    xr.testing.assert_equal(nothing.label_with_rejection, nothing.label)
    some = REJECTOR.reject(probability, fraction=0.2)
    assert some.attrs["rejected_fraction"] == 0.2
    points = REJECTOR.operating_points(probability, reference)
    assert some.attrs["threshold"] == hr.choose_point(points, fraction=0.2).threshold
    coarser = REJECTOR.reject(
        probability, threshold=float(some.confidence.where(~some.rejected).min())
    )
    xr.testing.assert_equal(coarser.rejected, some.rejected)


def test_accuracy_and_cost_are_those_of_the_sweep() -> None:
    probability, reference = scene(500, seed=6)
    points = REJECTOR.operating_points(probability, reference)
    calibration = hr.Calibration(reference, training=None)
    accurate = REJECTOR.reject(probability, accuracy=0.9, calibration=calibration)
    tree = hr.ClassTree.from_attrs(accurate.label_with_rejection.attrs)
    kept = ~accurate.rejected.values
    right = tree.holds(accurate.label_with_rejection.values[kept], reference[kept])
    assert right.mean() >= 0.9
    reached = points.nonrejected_accuracy.values >= 0.9
    assert (~kept).mean() == points.rejected_fraction.values[reached].min()
    for coarse_cost in (0.0, 0.4, 1.0):
        rejector = hr.HierarchicalRejector(GROUPS, coarse_cost=coarse_cost)
        maps = rejector.reject(probability, rejection_cost=0.4, calibration=calibration)
        cost = (
            points.misclassified_kept + 0.4 * points.accurate_rejected
            + 0.4 * points.misclassified_rejected + 0.4 * coarse_cost * points.accurate_coarse
        ) / 500  # fmt: skip
        assert maps.attrs["threshold"] == points.threshold.values[np.argmin(cost.values.round(12))]


def test_dear_coarse_answers_are_fewer() -> None:
    probability, reference = scene(500, seed=7)
    calibration = hr.Calibration(reference, training=None)
    shares = []
    for coarse_cost in (0.0, 1.0):
        rejector = hr.HierarchicalRejector(GROUPS, coarse_cost=coarse_cost)
        maps = rejector.reject(probability, rejection_cost=0.5, calibration=calibration)
        shares.append(float((maps.label_with_rejection > 6).mean()))
    assert shares[1] < shares[0]


def test_flat_and_hierarchical_stand_side_by_side() -> None:
    probability, reference = scene(500, seed=8)
    rejectors = {"flat": hr.PixelwiseRejector(), "tree": REJECTOR}
    table = hr.compare_rejectors(rejectors, probability, reference)
    curves = {name: table.isel(operating_point=table.rejector.values == name) for name in rejectors}
    assert np.isnan(curves["flat"].mean_information).all()
    points = {name: hr.choose_point(curve, accuracy=0.9) for name, curve in curves.items()}
    assert points["tree"].rejected_fraction < points["flat"].rejected_fraction
    beta = hr.relative_optimality(
        points["tree"].nonrejected_accuracy, points["tree"].rejected_fraction,
        points["flat"].nonrejected_accuracy, points["flat"].rejected_fraction,
    )  # fmt: skip
    assert hr.compare(points["tree"], points["flat"]).relative_optimality == beta
    assert beta > 0


def test_the_hidden_field_is_looked_at_where_there_is_a_context() -> None:
    probability, _ = scene(60, seed=9)
    hidden = probability.copy(data=np.roll(probability.values, 1, axis=0))
    maps = xr.Dataset({"probability": probability, "hidden_field": hidden})
    inside = hr.HierarchicalRejector(GROUPS, hr.SegSALSA(hr.VectorTV(weight=1.0)))
    mixed = (hidden + 1e-3 * probability) / (1 + 1e-3)
    mixed.attrs = probability.attrs
    found, expected = inside.rank(maps), REJECTOR.rank(mixed)
    np.testing.assert_allclose(found.confidence, expected.confidence, atol=1e-12)
    xr.testing.assert_equal(found.label, expected.label)
    plain = REJECTOR.rank(maps)
    xr.testing.assert_equal(plain.label, REJECTOR.rank(probability).label)
    assert (inside.needs_context, REJECTOR.needs_context) == (True, False)


def test_many_groups_need_a_larger_type_of_map() -> None:
    names = [f"class {number}" for number in range(1, 251)]
    groups = {f"group {at}": names[2 * at : 2 * at + 2] for at in range(10)}
    values = np.full((250, 1, 2), 1 / 250)
    values[:2, 0, 0] = (1 - 248 / 1e6) / 2
    values[2:, 0, 0] = 1e-6
    field = xr.DataArray(values, dims=schema.FIELD_DIMS)
    field = schema.attach_classes(field, hr.ClassTable.from_names(names))
    answers = hr.HierarchicalRejector(groups).reject(field, threshold=0.9).label_with_rejection
    assert answers.dtype == np.uint16
    assert answers.values.tolist() == [[251, 0]]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"groups": {"sealed": ["roof", "street"]}}, "'street'"),
        ({"groups": GROUPS, "coarse_cost": 2}, "coarse_cost"),
        ({"groups": GROUPS, "context": hr.VectorTV(weight=1.0)}, "SegSALSA"),
    ],
)
def test_bad_options_are_refused(options, word) -> None:
    probability, _ = scene(5, seed=0)
    with pytest.raises(InputError, match=word):
        hr.HierarchicalRejector(**options).reject(probability, fraction=0.1)


def test_a_curve_needs_confidences_that_do_not_fall() -> None:
    tree = hr.ClassTree.from_groups(NAMES, {"sealed": ["roof", "pavement"]})
    with pytest.raises(InputError, match="does not fall"):
        hr.level_curve([1, 2], [[0.9, 0.9], [0.8, 1.0]], [1, 2], tree)
    with pytest.raises(InputError, match="2 levels"):
        hr.level_curve([1, 2, 3], [[0.9, 0.9], [0.9, 1.0]], [1, 2, 3], tree)
    with pytest.raises(InputError, match="lacks"):
        hr.level_curve([1, 7], [[0.9, 0.9], [0.9, 1.0]], [1, 2], tree)
