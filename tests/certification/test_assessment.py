"""Assessments against the worked tables of the papers, exact cases and redraws."""

import csv
from dataclasses import astuple, replace

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binomtest

import hsreject as hr
from hsreject.errors import HsrejectWarning, InputError
from tests.certification.scenes import labelled_to_the_end, placed, ranked_map

# Olofsson et al. (2014), tables 8 and 9 and section 5: deforestation, forest gain, stable forest,
# stable non-forest; pixels of 30 m, rows of the error matrix are map classes.
OLOFSSON_PIXELS = (200_000, 150_000, 3_200_000, 6_450_000)
OLOFSSON_MATRIX = ((66, 0, 5, 4), (0, 55, 8, 12), (1, 0, 153, 11), (2, 1, 9, 313))


@pytest.fixture(scope="module")
def olofsson() -> hr.Assessment:
    values = np.repeat(np.arange(1, 5, dtype=np.uint8), OLOFSSON_PIXELS).reshape(2000, 5000)
    sample = np.zeros(values.size, dtype=np.uint8)
    starts = np.cumsum((0, *OLOFSSON_PIXELS))
    for start, counts in zip(starts, OLOFSSON_MATRIX, strict=False):
        sample[start : start + sum(counts)] = np.repeat(np.arange(1, 5), counts)
    label = placed(values, names=("deforestation", "gain", "forest", "other"))
    return hr.assess(label, sample.reshape(values.shape))


def column(found: hr.Assessment, quantity: str, statistic: str = "estimate") -> np.ndarray:
    return found.by_class[quantity].sel(statistic=statistic).values


def test_areas_of_olofsson_2014(olofsson) -> None:
    assert olofsson.area_unit == "ha"
    np.testing.assert_allclose(
        column(olofsson, "area"), [21_158, 11_686, 285_770, 581_386], atol=0.5
    )
    # the paper leaves out that the map is finite, which widens its intervals by up to 1 ha
    half_width = 1.96 * column(olofsson, "area", "standard_error")
    np.testing.assert_allclose(half_width, [6158, 3756, 15_510, 16_282], atol=1.5)
    assert column(olofsson, "area")[0] / 0.09 == pytest.approx(235_086, abs=0.5)
    np.testing.assert_allclose(
        olofsson.by_class.mapped_area, 0.09 * np.array(OLOFSSON_PIXELS), rtol=1e-9
    )


def test_accuracies_of_olofsson_2014(olofsson) -> None:
    assert olofsson.overall_accuracy.value == pytest.approx(0.947, abs=5e-4)
    assert 1.96 * olofsson.overall_accuracy.standard_error == pytest.approx(0.018, abs=5e-4)
    assert olofsson.kept_accuracy == olofsson.overall_accuracy
    half = 5e-3  # of the last digit that the paper gives
    np.testing.assert_allclose(
        column(olofsson, "users_accuracy"), [0.88, 0.73, 0.93, 0.96], atol=half
    )
    users_width = 1.96 * column(olofsson, "users_accuracy", "standard_error")
    np.testing.assert_allclose(users_width, [0.07, 0.10, 0.04, 0.02], atol=half)
    np.testing.assert_allclose(
        column(olofsson, "producers_accuracy"), [0.75, 0.85, 0.93, 0.96], atol=half
    )
    # of equation 7; the 0.23 and 0.01 printed for the second and the last do not follow from it
    producers_width = 1.96 * column(olofsson, "producers_accuracy", "standard_error")
    np.testing.assert_allclose(producers_width, [0.21, 0.254, 0.034, 0.018], atol=half)


def test_intervals_of_olofsson_2014_are_made_of_exact_ones(olofsson) -> None:
    """SciPy's exact limits for each stratum, put together as differences of shares are (MOVER)."""
    matrix, pixels = np.array(OLOFSSON_MATRIX), np.array(OLOFSSON_PIXELS)
    counts = matrix.sum(axis=1)
    limits = [
        [binomtest(int(k), int(n)).proportion_ci(method="exact") for k in row]
        for row, n in zip(matrix, counts, strict=True)
    ]
    share = matrix / counts[:, None]
    for side, end in ((-1, "lower"), (1, "upper")):
        distance = np.array([[getattr(one, "low" if side < 0 else "high") for one in row]
                             for row in limits]) - share  # fmt: skip
        users = np.diagonal(share + distance)
        np.testing.assert_allclose(column(olofsson, "users_accuracy", end), users, rtol=1e-3)
        spread = np.sqrt(((pixels[:, None] * distance) ** 2).sum(axis=0))
        area = 0.09 * (pixels @ share + side * spread)
        np.testing.assert_allclose(column(olofsson, "area", end), area, rtol=1e-3)


# Stehman (2014), table 2: ten points in each of four strata that differ from the map classes.
STEHMAN_PIXELS = (40_000, 30_000, 20_000, 10_000)
STEHMAN_MAP = "AAAAAAABBB" + "ABBBBBBBBB" + "BBCCCCCCBB" + "DDDDDDDDDD"
STEHMAN_REFERENCE = "AAAAACBABC" + "ABBBBBAABB" + "CCCCCDDBBA" + "DDDDDDDCCB"


@pytest.fixture
def stehman(tmp_path) -> hr.Assessment:
    """A file of another software: strata and their sizes stand in it, as in ours."""
    label = np.full((100, 1000), 1, dtype=np.uint8)
    label[0, :40] = ["ABCD".index(name) + 1 for name in STEHMAN_MAP]
    label[1, :4] = [1, 2, 3, 4]
    rows = [
        {
            "row": 0,
            "column": point,
            "reference": "ABCD".index(name) + 1,
            "stratum": point // 10,
            "pixels": STEHMAN_PIXELS[point // 10],
            "design": "stratified n=40 pixels=100000 seed=0 map=0000000000000000",
        }
        for point, name in enumerate(STEHMAN_REFERENCE)
    ]
    with (tmp_path / "stehman.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return hr.assess(label, tmp_path / "stehman.csv")


def test_stehman_2014(stehman) -> None:
    """Pages 4932 to 4936 of the paper."""
    assert stehman.overall_accuracy.value == pytest.approx(0.63)
    assert stehman.overall_accuracy.standard_error == pytest.approx(0.085, abs=5e-4)
    share = column(stehman, "area") / stehman.total_area
    assert share[[0, 2]] == pytest.approx([0.35, 0.20])
    error = column(stehman, "area", "standard_error") / stehman.total_area
    assert error[[0, 2]] == pytest.approx([0.082, 0.064], abs=5e-4)
    assert column(stehman, "users_accuracy")[1] == pytest.approx(0.574, abs=5e-4)
    assert column(stehman, "users_accuracy", "standard_error")[1] == pytest.approx(0.125, abs=5e-4)
    assert column(stehman, "producers_accuracy")[1] == pytest.approx(0.794, abs=5e-4)
    found = column(stehman, "producers_accuracy", "standard_error")[1]
    assert found == pytest.approx(0.116, abs=1e-3)


def test_a_census_knows_everything() -> None:
    label, _, truth = ranked_map()
    found = hr.assess(label, truth)
    assert found.overall_accuracy.value == pytest.approx((label == truth).mean())
    assert found.overall_accuracy.standard_error == 0
    assert found.overall_accuracy.lower == found.overall_accuracy.upper
    np.testing.assert_allclose(column(found, "area"), np.bincount(truth.ravel())[1:])
    for value in (1, 2, 3):
        users, producers = ((label == truth)[which == value].mean() for which in (label, truth))
        assert column(found, "users_accuracy")[value - 1] == pytest.approx(users)
        assert column(found, "producers_accuracy")[value - 1] == pytest.approx(producers)


def rejecting_map() -> tuple[np.ndarray, np.ndarray]:
    label, confidence, truth = ranked_map(steepness=2)
    rejected = (confidence < 0.3) | ((truth == 2) & (confidence < 0.5))
    return np.where(rejected, 0, label), truth


def true_values(label: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    kept, right = label != 0, label == truth
    return {
        "overall": right.mean(),
        "kept": right[kept].mean(),
        "users": right[label == 2].mean(),
        "producers": right[truth == 2].mean(),
        "area": float((truth == 2).sum()),
    }


def estimates(found: hr.Assessment) -> dict[str, tuple[float, float, float]]:
    table = found.by_class.sel(category=2, statistic=["estimate", "lower", "upper"])
    of_map = {"overall": found.overall_accuracy, "kept": found.kept_accuracy}
    return {name: (e.value, e.lower, e.upper) for name, e in of_map.items()} | {
        "users": tuple(table.users_accuracy.values),
        "producers": tuple(table.producers_accuracy.values),
        "area": tuple(table.area.values),
    }


@pytest.mark.parametrize("design", ["random", "stratified", "strata of another map"])
def test_estimates_are_unbiased_and_intervals_hold_over_redraws(design) -> None:
    label, truth = rejecting_map()
    wanted = true_values(label, truth)
    drawn_from = np.where(truth == 3, 1, 2) if design.startswith("strata") else label
    kind = "random" if design == "random" else "stratified"
    n_draws = 80
    found = []
    for seed in range(n_draws):
        sample = hr.draw_sample(drawn_from, 250, design=kind, seed=seed).with_reference(truth)
        found.append(estimates(hr.assess(label, sample)))
    for name, value in wanted.items():
        numbers = np.array([one[name] for one in found])
        spread = numbers[:, 0].std() / np.sqrt(n_draws)
        assert abs(numbers[:, 0].mean() - value) < 4 * spread, name
        covered = ((numbers[:, 1] <= value) & (value <= numbers[:, 2])).mean()
        # 95 %, less 2 % for the normal approximation and 4 standard errors of 80 draws
        assert covered > 0.93 - 4 * np.sqrt(0.05 * 0.95 / n_draws), name


def test_without_reference_among_the_rejected_their_area_is_unknown() -> None:
    label, truth = rejecting_map()
    sample = hr.draw_sample(label, 400).with_reference(truth)
    blind = replace(sample, reference=np.where(sample.label == 0, 0, sample.reference))
    array = np.zeros_like(truth)
    array[blind.row, blind.column] = blind.reference
    for given in (blind, array):
        found = hr.assess(label, given)
        assert found.unknown_area == found.rejected_area == (label == 0).sum()
        kept_total = column(found, "area").sum()
        assert kept_total == pytest.approx((label != 0).sum())  # never scaled up
        assert kept_total + found.unknown_area == found.total_area
        assert np.isnan(column(found, "producers_accuracy")).all()
        assert ("area in pixels", "unknown (rejected)") in {row[:2] for row in found.rows()}
    known = hr.assess(label, sample)
    assert known.unknown_area == 0
    assert column(known, "area").sum() == pytest.approx(label.size)
    for name in ("kept_accuracy", "overall_accuracy"):
        assert astuple(getattr(known, name)) == pytest.approx(astuple(getattr(found, name)))
    lonely = blind.reference.copy()
    lonely[np.flatnonzero(sample.label == 0)[0]] = 1  # one point says nothing about its spread
    assert hr.assess(label, replace(blind, reference=lonely)).unknown_area == found.unknown_area


def test_strata_of_another_map_without_reference_among_the_rejected() -> None:
    """Points that nobody labelled still say that their place is not among the kept."""
    label, truth = rejecting_map()
    other = np.where(truth == 3, 1, 2)
    totals = []
    for seed in range(60):
        sample = hr.draw_sample(other, 250, design="stratified", seed=seed).with_reference(truth)
        hidden = label[sample.row, sample.column] == 0
        blind = replace(sample, reference=np.where(hidden, 0, sample.reference))
        totals.append(column(hr.assess(label, blind), "area"))
    wanted = np.bincount(truth[label != 0], minlength=4)[1:]
    spread = np.std(totals, axis=0) / np.sqrt(60)
    assert (np.abs(np.mean(totals, axis=0) - wanted) < 4 * spread).all()


def test_a_class_that_the_map_does_not_know_has_an_area() -> None:
    label, _, truth = ranked_map()
    truth = np.where(truth == 3, 7, truth)
    found = hr.assess(label, hr.draw_sample(label, 500).with_reference(truth))
    unknown = found.by_class.sel(category=7)
    assert unknown.mapped_area == 0
    assert np.isnan(unknown.users_accuracy.values).all()
    assert unknown.producers_accuracy.sel(statistic="estimate") == 0
    lower, upper = unknown.area.sel(statistic=["lower", "upper"]).values
    assert lower < (truth == 7).sum() < upper
    assert found.error_matrix.sel(reference=7, decision=7) == 0


def test_where_all_points_agree_the_interval_is_not_empty() -> None:
    label = np.ones((50, 50), dtype=int)
    found = hr.assess(label, hr.draw_sample(label, 40).with_reference(label))
    assert found.kept_accuracy.value == 1
    assert found.kept_accuracy.standard_error == 0
    # the exact bound of n of n is the n-th root of 0.025; 40 of a map of 2,500 are a few more
    left = 1 - 40 / 2500
    assert found.kept_accuracy.lower == pytest.approx(0.025 ** (left / 40))


def test_where_each_class_agrees_with_itself_no_area_is_certain() -> None:
    label = np.repeat([1, 1, 1, 2, 2, 3], 70).reshape(20, 21)
    for seed in range(20):  # the shares are not round numbers, and rounding is not variance
        found = hr.assess(label, hr.draw_sample(label, 40, seed=seed).with_reference(label))
        area = found.by_class.area
        assert (area.sel(statistic="standard_error") == 0).all()
        assert (area.sel(statistic="upper") > area.sel(statistic="estimate") + 1).all()


def test_classes_with_too_few_points_are_put_together() -> None:
    label = np.ones((40, 50), dtype=int)
    label[0, :4], label[1, :30] = 2, 3
    truth = label.copy()
    sample = np.zeros_like(label)
    sample[::5, ::5] = truth[::5, ::5]  # one of class 2, several of class 1 and 3
    sample[1, :6] = 3
    found = hr.assess(label, sample)
    assert column(found, "area").sum() == pytest.approx(label.size)
    assert np.isfinite(found.overall_accuracy.standard_error)


def test_a_rare_class_without_a_point_of_its_own_may_still_be_right() -> None:
    """It is put together with others; that none of its pixels was drawn does not make it wrong."""
    label = np.ones((40, 50), dtype=int)
    label[0, :12], label[1, :4] = 2, 3
    truth = label.copy()
    truth[5, 0] = 2
    sample = np.zeros_like(label)
    sample[5::5, ::5] = truth[5::5, ::5]  # one of class 2, which the map calls class 1
    found = hr.assess(label, sample).by_class.producers_accuracy.sel(category=2)
    assert found.sel(statistic="estimate") == 0
    assert found.sel(statistic="upper") > (truth == label)[truth == 2].mean() > 0.9


def test_points_without_a_reference_are_left_out_with_a_warning() -> None:
    label, _, truth = ranked_map()
    sample = hr.draw_sample(label, 100).with_reference(truth)
    some = replace(sample, reference=np.where(sample.id <= 70, sample.reference, 0))
    with pytest.warns(HsrejectWarning, match="30 of 100"):
        found = hr.assess(label, some)
    assert found.n_points == 70
    fewer = hr.assess(label, sample.select(sample.id <= 70), assume_random=True)
    assert found.overall_accuracy == fewer.overall_accuracy


def test_what_cannot_be_assessed_is_refused() -> None:
    label, _, truth = ranked_map()
    sample = hr.draw_sample(label, 100).with_reference(truth)
    with pytest.raises(InputError, match="assume_random"):
        hr.assess(label, replace(sample, design=None))
    assert hr.assess(label, replace(sample, design=None), assume_random=True).n_points == 100
    with pytest.raises(InputError, match="confidence_level"):
        hr.assess(label, sample, confidence_level=1.0)
    with pytest.raises(InputError, match="No sampled pixel"):
        hr.assess(label, hr.draw_sample(label, 10))
    with pytest.raises(InputError, match="Fewer than two"):
        hr.assess(label, sample.select(sample.id == 1), assume_random=True)
    with pytest.raises(InputError, match="99 of the 100 points"):
        hr.assess(label, sample.select(sample.id == 1))
    strata = hr.draw_sample(label, 60, design="stratified").with_reference(truth)
    first = strata.stratum == strata.stratum[0]
    for seen in (np.cumsum(first) == 1, False):
        with (
            pytest.warns(HsrejectWarning, match="no reference"),
            pytest.raises(InputError, match="two"),
        ):
            hr.assess(
                label, replace(strata, reference=np.where(~first | seen, strata.reference, 0))
            )
    confidence = np.linspace(0, 1, label.size).reshape(label.shape)
    with pytest.raises(InputError, match="sequential"):
        hr.assess(label, labelled_to_the_end(label, confidence, truth, 60))
    with pytest.raises(InputError, match="grid"):
        hr.assess(label[1:], sample)


@pytest.mark.parametrize("design", ["random", "stratified"])
@pytest.mark.parametrize("kind", ["accurate", "rare class", "zero-error strata"])
def test_intervals_hold_where_few_points_are_wrong(design, kind) -> None:
    """Too short on either side: R +- z SE left out the truth above in up to 9 % of such draws."""
    rng = np.random.default_rng(4)
    label = rng.choice([1, 2, 3], p=[0.6, 0.36, 0.04], size=(70, 80))
    truth = label.copy()
    # "zero-error strata": those of a rare class are right, and missed in others
    rate = {"accurate": 0.02, "rare class": 0.1}.get(kind, np.where(label == 2, 0.02, 0.0))
    wrong = rng.uniform(size=label.shape) < rate
    truth[wrong] = label[wrong] % 3 + 1
    value = 1 if kind == "accurate" else 3
    wanted = {
        "overall": (label == truth).mean(),
        "users": (label == truth)[label == value].mean(),
        "producers": (label == truth)[truth == value].mean(),
        "area": (truth == value).sum(),
    }
    n_draws = 120
    inside = dict.fromkeys(wanted, 0)
    for seed in range(n_draws):
        sample = hr.draw_sample(label, 200, design=design, seed=seed).with_reference(truth)
        found = hr.assess(label, sample)
        table = found.by_class.sel(category=value, statistic=["lower", "upper"])
        ends = {
            "overall": (found.overall_accuracy.lower, found.overall_accuracy.upper),
            "users": table.users_accuracy.values,
            "producers": table.producers_accuracy.values,
            "area": table.area.values,
        }
        for name, (lower, upper) in ends.items():
            inside[name] += lower - 1e-9 <= wanted[name] <= upper + 1e-9
    # 95 %, less 2 % for the approximation and 2.5 standard errors of 120 draws
    for name, count in inside.items():
        assert count / n_draws > 0.93 - 2.5 * np.sqrt(0.05 * 0.95 / n_draws), name


def test_a_stratum_that_is_sampled_whole_leaves_no_doubt() -> None:
    label = np.ones((20, 50), dtype=int)
    label[0, :20] = 2
    truth = label.copy()
    truth[0, :4] = 1
    sample = hr.draw_sample(label, 150, design="stratified", seed=1).with_reference(truth)
    assert (sample.label == 2).sum() == 20
    found = hr.assess(label, sample).by_class.users_accuracy.sel(category=2)
    np.testing.assert_allclose(found.values, [0.8, 0, 0.8, 0.8])


def test_nothing_exceeds_what_is_kept() -> None:
    label, truth = rejecting_map()
    sample = hr.draw_sample(label, 30, seed=2).with_reference(np.where(label > 0, label, truth))
    found = hr.assess(label, sample)
    assert found.overall_accuracy.upper <= (label > 0).mean()
    blind = replace(sample, reference=np.where(sample.label == 0, 0, sample.reference))
    areas = hr.assess(label, blind).by_class.area.sel(statistic="upper")
    assert (areas <= (label > 0).sum()).all()


def test_points_that_nobody_could_label_widen_the_intervals_by_all_they_may_be() -> None:
    label, truth = rejecting_map()
    sample = hr.draw_sample(label, 300).with_reference(truth)
    untold = sample.reference.copy()
    untold[::10] = -1
    found = hr.assess(label, replace(sample, reference=untold))
    assert (found.n_points, found.n_cannot_tell) == (270, 30)
    extremes = [
        hr.assess(label, replace(sample, reference=np.where(untold == -1, guess, untold)))
        for guess in (9, np.where(sample.label == 0, 9, sample.label))
    ]
    assert found.kept_accuracy.lower <= extremes[0].kept_accuracy.lower
    assert found.kept_accuracy.upper >= extremes[1].kept_accuracy.upper
    dropped = hr.assess(label, sample.select(untold != -1), assume_random=True)
    assert found.kept_accuracy.value == pytest.approx(dropped.kept_accuracy.value)
    for value in (1, 2, 3):
        every = hr.assess(
            label, replace(sample, reference=np.where(untold == -1, value, untold))
        ).by_class.sel(category=value)
        mine = found.by_class.sel(category=value)
        for quantity in ("users_accuracy", "producers_accuracy", "area"):
            wide, one = mine[quantity], every[quantity]
            assert wide.sel(statistic="lower") <= one.sel(statistic="estimate")
            assert wide.sel(statistic="upper") >= one.sel(statistic="estimate")


def test_areas_are_those_on_the_ground() -> None:
    """A pixel of Web Mercator at 60 degrees north is a quarter of what it says."""
    values = np.repeat([1, 2], 1800).reshape(60, 60)
    y = 8_399_738.0 - 10.0 * np.arange(60)
    place = {"y": y, "x": 1e6 + 10.0 * np.arange(60)}
    label = xr.DataArray(values, dims=("y", "x"), coords=place).rio.write_crs("EPSG:3857")
    found = hr.assess(label, hr.draw_sample(label, 100).with_reference(values))
    # 0.5025: the ellipsoid is not a sphere
    assert found.total_area == pytest.approx(36 * 0.2523, rel=0.01)
    degrees = xr.DataArray(
        values,
        dims=("y", "x"),
        coords={"y": 60 - np.arange(60) / 10, "x": 20 + np.arange(60) / 10},
    ).rio.write_crs("EPSG:4326")
    sample = hr.draw_sample(degrees, 400, design="stratified").with_reference(values)
    found = hr.assess(degrees, sample)
    lower, upper = found.by_class.area.sel(category=1, statistic=["lower", "upper"]).values
    north, both = found.by_class.mapped_area.sel(category=1).item(), found.total_area
    assert north < 0.49 * both  # of as many pixels
    assert lower <= north <= upper


def test_figures_say_what_they_are_about_where_pixels_could_not_be_drawn() -> None:
    label, _, truth = ranked_map()
    train = np.zeros_like(label)
    train[:5] = 1
    for design in ("random", "stratified"):
        found = hr.assess(
            label, hr.draw_sample(label, 300, design=design, exclude=train).with_reference(truth)
        )
        assert "7500 of the 8000 pixels" in found.drawn
        assert column(found, "area").sum() == pytest.approx(8000)
    assert "of the" not in hr.assess(label, hr.draw_sample(label, 300).with_reference(truth)).drawn


def test_tables_for_spreadsheets(tmp_path) -> None:
    label, truth = rejecting_map()
    found = hr.assess(placed(label), hr.draw_sample(placed(label), 300).with_reference(truth))
    found.write_tables(tmp_path)
    rows = list(csv.DictReader((tmp_path / "assessment.csv").read_text().splitlines()))
    (water,) = [r for r in rows if (r["quantity"], r["class"]) == ("area in ha", "water")]
    assert float(water["estimate"]) == pytest.approx(column(found, "area")[2])
    matrix = list(csv.reader((tmp_path / "error-matrix.csv").read_text().splitlines()))
    assert matrix[0] == ["reference", "corn", "bare soil", "water", "rejected"]
    assert sum(int(cell) for row in matrix[1:] for cell in row[1:]) == 300


def test_cells_that_a_spreadsheet_would_compute_are_text(tmp_path) -> None:
    values, truth = rejecting_map()
    label = placed(values, names=("=1+1", "-dry", "@home"))
    sample = hr.draw_sample(label, 300).with_reference(truth)
    hr.assess(label, sample).write_tables(tmp_path)
    sample.write(tmp_path / "sample.csv", show_label=True)
    for name in ("assessment.csv", "error-matrix.csv", "sample.csv"):
        rows = list(csv.reader((tmp_path / name).read_text().splitlines()))
        cells = {
            cell for row in rows for cell in row if not cell.lstrip("-").replace(".", "").isdigit()
        }
        assert "'=1+1" in cells
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    back = hr.open_sample(tmp_path / "sample.csv", label)
    np.testing.assert_array_equal(back.reference, sample.reference)
