"""The search for a failure probability, and the sweep: jumps, tangents, plateaus."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.rejection.joint_search import Bracket, Probe, crossing
from tests.rejection.scene import CONTEXT, LARGE, SMALL, with_p_value

BLOCKS = np.add.outer(np.arange(36) // 12, np.arange(36) // 12) % 4  # nine of them


def sure_classes() -> np.ndarray:
    """Return probabilities of a classifier that is sure everywhere: blocks fall one by one."""
    score = np.random.default_rng(0).normal(size=(4, 36, 36))
    score += 8 * (np.arange(4)[:, None, None] == BLOCKS)
    return (np.exp(score) / np.exp(score).sum(axis=0)).astype(np.float32)


@pytest.mark.parametrize("wanted", [0.2, 0.4, 0.5, 0.6])
def test_both_sides_of_a_jump_are_found(wanted) -> None:
    """All changes lie in a thousandth of the scale, and each is the fall of whole blocks.

    Solved to 1e-6. Next to a jump, a solve to 1e-4 ends while a block is falling: at the q where
    the search for 0.5 ended so, 0.336 is rejected by a solve to 1e-6, but 0.502 or 0.508 by one to
    1e-4, as the last digits of earlier objectives, and with them q in its seventh digit, decide.
    """
    exact = replace(CONTEXT, tol=1e-6, max_iter=20_000, dtype="float64")
    rejector = hr.JointRejector(exact)
    maps = rejector.reject(sure_classes(), fraction=wanted)
    assert maps.attrs["search"] == "jump"
    below, above = maps.attrs["reachable_fractions"]
    assert below < wanted < above
    blocks = 9 * np.array([below, above])
    np.testing.assert_allclose(blocks, blocks.round(), atol=0.1)  # a few pixels of others as well
    nearer = below if wanted - below < above - wanted else above
    assert maps.attrs["rejected_fraction"] == pytest.approx(nearer)
    assert maps.attrs["n_solves"] <= 12
    # a ten-thousandth further in log-odds the fraction is on the other side
    odds = maps.attrs["failure_probability"] / (1 - maps.attrs["failure_probability"])
    odds *= np.exp(1e-4 if nearer == below else -1e-4)
    other = rejector.reject(sure_classes(), failure_probability=odds / (1 + odds))
    assert (other.attrs["rejected_fraction"] > wanted) == (nearer == below)


def test_changes_in_a_narrow_interval_are_found() -> None:
    largest = 0.7 + 0.01 * np.random.default_rng(1).random((40, 50))
    probability = np.stack([largest, (1 - largest) / 2, (1 - largest) / 2])
    maps = hr.JointRejector(hr.SegSALSA(hr.VectorTV(weight=1e-3))).reject(probability, fraction=0.2)
    assert maps.attrs["search"] == "near enough"
    assert maps.attrs["rejected_fraction"] == pytest.approx(0.2, abs=0.005)


@pytest.mark.parametrize(
    ("rejection_classes", "novelty", "class_prior"),
    [(1, False, None), (3, False, None), (3, True, None), (3, True, (0.5, 0.3, 0.2))],
)
def test_the_objective_is_concave_with_the_rejected_mass_as_slope(
    rejection_classes, novelty, class_prior
) -> None:
    maps = with_p_value(SMALL, np.random.default_rng(2).uniform(0.02, 0.1, SMALL.reference.shape))
    exact = {"tol": 1e-7, "max_iter": 20_000, "dtype": "float64"}
    context = replace(CONTEXT, class_prior=class_prior, **exact)
    rejector = hr.JointRejector(context, rejection_classes=rejection_classes, novelty=novelty)
    problem = rejector._problem(maps)
    log_odds = np.array([-1.2, -1.0, -0.999, -0.8, -0.5])
    if class_prior is not None:
        log_odds += 1  # classes p / prior are likelier, and fall later
    found = [problem.solve(float(1 / (1 + np.exp(-one)))) for one in log_odds]
    objective = np.array([one.objective for one in found])
    mass = np.array([one.rejected_mass for one in found])
    assert (np.diff(mass) > 0).all()
    slope = np.diff(objective) / np.diff(log_odds)
    assert ((-slope >= mass[:-1] - 1e-3) & (-slope <= mass[1:] + 1e-3)).all()
    assert -slope[1] == pytest.approx(mass[1], rel=0.02)
    everything = problem.solve(problem.rejects_all)
    assert everything.rejected_mass == pytest.approx(1, abs=1e-5)
    assert everything.objective == pytest.approx(problem.everything.objective, abs=1e-5)
    nothing = problem.solve(0.0)
    assert nothing.rejected_mass == 0
    assert nothing.objective >= objective[0] - 1e-7


def test_tangents_meet_at_a_jump() -> None:
    """Below log-odds of -0.3 a tenth is rejected, above them three tenths."""

    def probe(log_odds: float) -> Probe:
        mass = 0.1 if log_odds < -0.3 else 0.3
        return Probe(1 / (1 + np.exp(-log_odds)), mass, 0.5 - mass * (log_odds + 0.3), mass)

    assert crossing(Bracket(probe(-1.0), probe(-0.1))) == pytest.approx(-0.3)
    assert np.isnan(crossing(Bracket(probe(-1.0), probe(-0.5))))
    assert np.isnan(crossing(Bracket(Probe(0.1, 0.1), probe(-0.1))))


def test_one_calibration_pixel_is_looked_for_all_the_way() -> None:
    rejector = hr.JointRejector(CONTEXT)
    few = rejector.reject(LARGE.probability, fraction=0.02)
    y, x = np.argwhere(few.rejected.values)[0]
    labels = np.zeros(few.rejected.shape, int)
    labels[y, x] = 77  # never right
    maps = rejector.reject(
        LARGE.probability,
        rejection_cost=0.2,
        calibration=hr.Calibration(labels, training=None),
    )
    assert bool(maps.rejected[y, x])
    assert maps.attrs["rejected_fraction"] < 0.1


@pytest.mark.parametrize(
    ("wanted", "known_field"),
    [(0.2, True), (0.45, False), (0.45, True), (0.55, False), (0.8, True)],
)
def test_the_edge_of_a_plateau_is_found(wanted, known_field) -> None:
    """Half of the scene says nothing: it falls first, and then for long nothing more."""
    score = 1.5 * np.random.default_rng(0).normal(size=(4, 24, 24))
    score[:, 12:] *= 0.2
    probability = np.exp(score) / np.exp(score).sum(axis=0)
    maps = xr.Dataset({"probability": (("category", "y", "x"), probability)})
    if known_field:
        maps["hidden_field"] = (("category", "y", "x"), CONTEXT.solve(probability).hidden_field)
    found = hr.JointRejector(CONTEXT).reject(maps, fraction=wanted)
    assert found.attrs["rejected_fraction"] == pytest.approx(wanted, abs=0.005)
    assert found.attrs["n_solves"] <= 12


def test_a_sweep_finds_changes_in_a_thousandth_of_the_scale() -> None:
    rejector = hr.JointRejector(CONTEXT)
    points = rejector.operating_points(sure_classes(), BLOCKS + 1)
    fraction = points.rejected_fraction.values
    between = np.unique(fraction[(fraction > 0) & (fraction < 1)].round(2))
    assert between.size >= 4
    assert np.diff([0, *between, 1]).max() < 3.5 / 9
