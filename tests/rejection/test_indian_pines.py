"""Rejection on a real scene, one draw of training pixels; `make bench` has the means over five."""

import numpy as np
import pytest
import xarray as xr
from sklearn.metrics import roc_auc_score

import hsreject as hr

FRACTIONS = np.arange(0.05, 0.501, 0.05)
CONTEXT = hr.SegSALSA(hr.VectorTV(weight=1.0))


@pytest.fixture(scope="module")
def evidence() -> tuple[xr.Dataset, xr.DataArray]:
    cube, labels = hr.load_indian_pines()
    training, test = hr.sample_per_class(labels, 10, seed=2)
    regression = hr.SparseMultinomialRegression(sparsity=0.01, kernel="rbf")
    model = hr.SceneClassifier(regression, features=[hr.MNF(15)]).fit(cube, training)
    probability = model.predict_proba(cube)
    hidden_field = CONTEXT.solve(probability).hidden_field
    return xr.Dataset({"probability": probability, "hidden_field": hidden_field}), test


@pytest.fixture(scope="module")
def kept(evidence) -> dict[str, np.ndarray]:
    rejectors = {
        "pixelwise": hr.PixelwiseRejector(),
        "sequential": hr.SequentialRejector(CONTEXT),
        "joint": hr.JointRejector(CONTEXT, n_points=12),
    }
    points = hr.compare_rejectors(rejectors, *evidence)
    return {
        name: hr.accuracy_at(
            points.isel(operating_point=points.rejector.values == name), FRACTIONS
        ).values
        for name in rejectors
    }


def test_context_beats_the_pixel_at_every_fraction(kept) -> None:
    assert (kept["sequential"] > kept["pixelwise"]).all()
    assert (kept["joint"] > kept["pixelwise"]).all()


def test_joint_keeps_what_sequential_keeps(kept) -> None:
    # Half a point is asked for on the mean of five draws; a single one may vary by as much again.
    up_to = FRACTIONS < 0.401
    assert (kept["joint"] - kept["sequential"])[up_to].min() >= -0.01


@pytest.mark.parametrize("wanted", [0.1, 0.4])
def test_a_wanted_fraction_is_found(evidence, wanted) -> None:
    maps = hr.JointRejector(CONTEXT).reject(evidence[0], fraction=wanted)
    assert abs(maps.attrs["rejected_fraction"] - wanted) <= 0.005
    assert maps.attrs["n_solves"] <= 11  # and the known hidden field makes twelve


KINDS = (hr.PixelwiseRejector, hr.SequentialRejector)


def learned_without(hold: list[int]) -> tuple[xr.Dataset, xr.DataArray, xr.DataArray]:
    cube, labels = hr.load_indian_pines()
    known = labels.where(~labels.isin(hold), 0).astype(labels.dtype)
    training, test = hr.sample_per_class(known, 10, seed=0)
    regression = hr.SparseMultinomialRegression(sparsity=0.01, kernel="rbf")
    model = hr.SceneClassifier(regression, features=[hr.MNF(30), hr.Smooth(2.0)])
    probability = model.fit_predict_proba(cube, training)
    maps = {
        "probability": probability,
        "hidden_field": hr.SegSALSA(hr.VectorTV(2.0)).solve(probability).hidden_field,
        "p_value": hr.Novelty().fit_p_value(cube, training),
    }
    return xr.Dataset(maps), test, labels.isin(hold)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_class_is_rejected_early_with_novelty(kind) -> None:
    maps, test, unknown = learned_without([8])
    judged = unknown.values | (test.values > 0)

    def auroc(ranking: hr.Ranking) -> float:
        return roc_auc_score(unknown.values[judged], -ranking.scores()[judged])

    without, aware = (kind(novelty=novelty).rank(maps) for novelty in (False, True))
    assert auroc(aware) - auroc(without) > 0.03
    false_alarms = aware.unknown.values[test.values > 0].mean()
    assert false_alarms < 0.025
    assert aware.unknown.values[unknown.values].mean() > 5 * false_alarms


def test_novelty_costs_no_accuracy_where_nothing_is_unknown() -> None:
    maps, test, _ = learned_without([])
    for kind in KINDS:
        without, aware = (
            hr.accuracy_at(kind(novelty=n).operating_points(maps, test), 0.1).item()
            for n in (False, True)
        )
        assert aware - without > -0.006  # at most 0.3 points are asked for, on the mean of draws
