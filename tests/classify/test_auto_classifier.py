"""The classifier that chooses by itself: its maps, what it carries, and what it refuses."""

import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threadpoolctl import threadpool_limits

import hsreject as hr
from hsreject import schema
from hsreject.classify.candidates import TwoExperts
from hsreject.classify.training_pixels import Training
from hsreject.errors import (
    EmptyClassWarning,
    FewPolygonsWarning,
    InputError,
    LargeSceneWarning,
)
from hsreject.features import windows
from hsreject.splits.polygons import polygon_numbers


@pytest.fixture(scope="module")
def scene():
    cube, labels = hr.synthetic_scene(rows=40, columns=44, n_classes=4, n_bands=10, seed=2)
    return cube, *hr.sample_per_class(labels, 6, seed=0)


@pytest.fixture(scope="module")
def fitted(scene):
    cube, train, _ = scene
    model = hr.AutoClassifier()
    return model, model.fit_predict_proba(cube, train)


def accuracy(probability, test) -> float:
    found = probability.fillna(0).idxmax("category")
    return float((found == test).where(test > 0).mean())


def test_it_maps_a_scene_and_says_what_it_tried(scene, fitted) -> None:
    cube, train, test = scene
    model, probability = fitted
    valid = schema.valid_pixels(cube).values
    total = probability.sum("category", skipna=False).values
    np.testing.assert_allclose(total[valid], 1, atol=1e-5)
    assert np.isnan(total[~valid]).all()
    assert schema.class_table(probability) == schema.class_table(train)
    assert accuracy(probability, test) > 0.9
    tried = model.tried_
    assert {"chain", "profile", "brier_score", "temperature", "weight"} == set(tried.data_vars)
    np.testing.assert_allclose(tried.weight.sum(), 1)
    assert set(tried.chain.values) == {"mnf", "raw", "normalized"}  # the bands alone are carried
    assert model.halo == 32  # what is carried is fitted when it is first needed
    assert "bands pixels" in model.carried_pools_[0].names_
    assert model.n_training_pixels_ == int(((train.values > 0) & valid).sum())


def test_what_is_carried_does_not_depend_on_what_was_mapped(scene, fitted) -> None:
    cube, train, test = scene
    model, probability = fitted
    carried = model.predict_proba(cube)
    assert schema.CALIBRATED in probability.attrs
    assert schema.CALIBRATED not in carried.attrs
    assert not np.allclose(carried.values, probability.values, equal_nan=True)
    assert accuracy(carried, test) > 0.8
    np.testing.assert_array_equal(carried, hr.AutoClassifier().fit(cube, train).predict_proba(cube))
    alone = hr.AutoClassifier(spatial=False)
    own = alone.fit_predict_proba(cube, train)
    np.testing.assert_array_equal(own, carried)
    assert schema.CALIBRATED in own.attrs


def test_experts_agree_less_where_a_scene_is_unlike(scene, fitted) -> None:
    cube, _, _ = scene
    model, _ = fitted
    label = model.predict_proba(cube).fillna(0).argmax("category").values
    valid = schema.valid_pixels(cube).values
    votes, weights = [], []  # one by one, each with features of its own
    for pool, times in zip(model.carried_pools_, ({}, {"far": (3, 30, 300)}), strict=True):
        known = {"pixels": (0,), "near": (0, 3), "farthest": (300,), **times}
        for name, weight in zip(pool.names_, pool.weights_, strict=True):
            chain, profile = name.split()
            features = cube
            for step in model.chains_[chain]:
                features = step.transform(features)
            for t in known[profile] if weight else ():
                seen = hr.Diffuse(t).fit(features).transform(features).values[:, valid].T
                best = model.experts_[f"{chain} {t}"].predict_proba(seen).argmax(axis=1)
                votes.append((best == label[valid]).mean())
                weights.append(weight / len(known[profile]))
    np.testing.assert_allclose(model.agreement(cube), np.average(votes, weights=weights), atol=2e-3)
    noise = np.random.default_rng(0).uniform(0, 1, cube.shape).astype("f4")
    assert model.agreement(cube.copy(data=noise)) < model.agreement(cube) - 0.1
    assert hr.SceneClassifier("lda").agreement(cube) is None


def test_a_block_with_its_halo_is_mapped_as_the_whole_scene() -> None:
    cube, labels = hr.synthetic_scene(rows=40, columns=130, n_classes=4, n_bands=10, seed=2)
    train, _ = hr.sample_per_class(labels, 6, seed=0)
    model = hr.AutoClassifier().fit(cube, train)
    assert model.halo == 32
    whole = model.predict_proba(cube)
    block = model.predict_proba(cube.isel(x=slice(28, 102))).isel(x=slice(32, -32))
    np.testing.assert_allclose(block.values, whole.values[:, :, 60:70], atol=0.01)
    lazy = model.predict_proba(cube.chunk(y=16, x=16))
    assert lazy.chunks is not None
    np.testing.assert_allclose(lazy.values, whole.values, rtol=1e-4, atol=1e-5)
    from_chunks = clone(model).fit(cube.chunk(y=16, x=16), train).predict_proba(cube)
    np.testing.assert_allclose(from_chunks.values, whole.values, atol=0.02)


def test_a_large_scene_is_mapped_in_windows_without_seams(monkeypatch) -> None:
    cube, labels = hr.synthetic_scene(rows=40, columns=200, n_classes=4, n_bands=10, seed=2)
    train, _ = hr.sample_per_class(labels, 20, seed=0)
    whole = hr.AutoClassifier().fit_predict_proba(cube, train)
    monkeypatch.setattr(windows, "_LARGEST_WHOLE", 4000)
    monkeypatch.setattr(windows, "_SIDE", 100)
    with pytest.warns(LargeSceneWarning, match="2 windows"):  # before the work
        cut = hr.AutoClassifier().fit_predict_proba(cube, train)
    same = whole.fillna(0).argmax("category") == cut.fillna(0).argmax("category")
    assert float(same.mean()) >= 0.999
    with pytest.warns(LargeSceneWarning):
        lazy = hr.AutoClassifier().fit_predict_proba(cube.chunk(y=17, x=50), train)
    assert lazy.chunks is None  # one array of single precision, whatever the scene
    np.testing.assert_allclose(lazy.values, cut.values, atol=0.02)


def test_the_same_again_whatever_the_threads(scene, fitted) -> None:
    cube, train, _ = scene
    model, probability = fitted
    with threadpool_limits(1):
        again = clone(model).fit_predict_proba(cube, train)
    np.testing.assert_array_equal(again.values, probability.values)


@pytest.mark.parametrize("spatial", [True, False])
def test_held_out_maps_are_those_of_a_pool_without_the_fold(scene, spatial) -> None:
    cube, train, _ = scene
    model = hr.AutoClassifier(spatial=spatial)
    mapped = model.fit_predict_proba(cube, train)
    labelled = (train.values > 0) & schema.valid_pixels(cube).values
    seen = np.zeros(labelled.shape, dtype=int)
    right = []
    for probability, left_out in model.held_out_proba(cube, train):
        assert probability.dims == schema.FIELD_DIMS
        seen += left_out
        found = probability.category.values[probability.values[:, left_out].argmax(axis=0)]
        right.append(found == train.values[left_out])
    np.testing.assert_array_equal(seen, labelled)
    assert np.concatenate(right).mean() > 0.7
    # a seed that is left out is no longer certain
    at_seeds = mapped.values[:, left_out].max(axis=0)
    assert probability.values[:, left_out].max(axis=0).mean() < at_seeds.mean()
    other_folds = list(model.held_out_proba(cube, train, n_folds=2, seed=5))
    assert len(other_folds) == 2


def test_a_carried_model_survives_a_file(scene, tmp_path) -> None:
    cube, train, _ = scene
    model = hr.AutoClassifier()
    model.fit_predict_proba(cube, train)
    carried = hr.MapModel(model, hr.PixelwiseRejector())
    again = hr.load_model(hr.save_model(carried, tmp_path / "auto.skops"))
    assert again.halo == model.halo == 32
    assert again.classifier.predict_proba(cube).equals(model.predict_proba(cube))
    assert again.classifier.tried_.equals(model.tried_)
    mapped = hr.map_scene(cube, again, hr.Goal(fraction=0.1))
    assert mapped.maps.label.shape == cube.shape[1:]


def squares(labels, corners) -> xr.DataArray:
    """Keep the labels of some squares of 3 x 3 pixels."""
    kept = np.zeros(labels.shape, dtype=bool)
    for row, column in corners:
        kept[row : row + 3, column : column + 3] = True
    return labels.where(kept, 0).astype(labels.dtype)


def test_polygons_are_left_out_whole() -> None:
    cube, _ = hr.synthetic_scene(rows=24, columns=40, n_classes=2, n_bands=8, noise=0.5, seed=1)
    labels = xr.zeros_like(cube[0], dtype=int)
    labels[:, :20], labels[:, 20:] = 1, 2
    cube = cube + 0.3 * labels
    train = squares(labels, [(0, 1), (9, 12), (20, 3), (2, 22), (11, 33), (19, 25)])
    model = hr.AutoClassifier()
    with pytest.warns(FewPolygonsWarning, match="6 clusters"):
        probability = model.fit_predict_proba(cube, train)
    assert schema.CALIBRATED in probability.attrs
    assert "bands pixels" in model.tried_.candidate  # a forest, where neighbours tell too little
    polygons = polygon_numbers(train)
    for every in (model, hr.SceneClassifier("lda"), hr.RandomWalker()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewPolygonsWarning)
            masks = [left_out for _, left_out in every.held_out_proba(cube, train)]
        np.testing.assert_array_equal(np.sum(masks, axis=0), polygons > 0)
        for left_out in masks:
            assert not np.intersect1d(polygons[left_out], polygons[~left_out & (polygons > 0)]).size
    named = train.assign_coords(polygon=(("y", "x"), np.where(polygons > 3, 4, polygons)))
    with pytest.warns(FewPolygonsWarning, match="4 clusters"):
        hr.AutoClassifier().fit(cube, named)


def test_a_class_whose_only_polygon_has_no_data_is_refused() -> None:
    cube, labels = hr.synthetic_scene(rows=40, columns=44, n_classes=3, n_bands=8, seed=2)
    train = xr.zeros_like(labels)
    for value in (1, 2, 3):
        row, column = np.argwhere(labels.values == value)[40]
        train[row : row + 4, column : column + 4] = value
    holed = cube.where(train != 3)
    with (
        pytest.warns(EmptyClassWarning),
        pytest.raises(InputError, match=r"no data in any polygon of class 3"),
    ):
        hr.AutoClassifier().fit(holed, train)


def test_one_polygon_per_class_calibrates_nothing() -> None:
    cube, _ = hr.synthetic_scene(rows=24, columns=40, n_classes=2, n_bands=8, noise=0.5, seed=1)
    labels = xr.zeros_like(cube[0], dtype=int)
    labels[:, :20], labels[:, 20:] = 1, 2
    with pytest.warns(FewPolygonsWarning, match="five small ones beat one large"):
        probability = hr.AutoClassifier().fit_predict_proba(
            cube + 0.3 * labels, squares(labels, [(9, 12), (11, 33)])
        )
    assert schema.CALIBRATED not in probability.attrs


def test_classes_with_one_or_two_pixels_and_rows_without_data(scene) -> None:
    cube, train, test = scene
    holed = cube.copy()
    holed[:, :3] = np.nan
    few = train.where(schema.valid_pixels(holed), 0).astype(train.dtype)
    for value, keep in ((1, 1), (2, 2)):
        rows, columns = np.nonzero(few.values == value)
        few.values[rows[keep:], columns[keep:]] = 0
    probability = hr.AutoClassifier().fit_predict_proba(holed, few)
    assert list(probability.category) == [1, 2, 3, 4]
    assert np.isnan(probability.values[:, :3]).all()
    assert accuracy(probability, test) > 0.6
    single = few.copy(data=np.zeros_like(few.values))
    for value in (1, 2, 3, 4):
        row, column = np.argwhere(few.values == value)[0]
        single[row, column] = value
    alone = hr.AutoClassifier()
    assert schema.CALIBRATED not in alone.fit_predict_proba(holed, single).attrs
    assert np.isnan(alone.tried_.brier_score).all()
    assert list(alone.held_out_proba(holed, single)) == []


def test_small_and_poor_scenes(scene) -> None:
    cube, train, _ = scene
    constant = cube.copy()
    constant[:4] = constant[:4].where(constant[:4].isnull(), 5.0)
    assert hr.AutoClassifier().fit_predict_proba(constant, train).notnull().any()
    tiny = xr.DataArray(np.random.default_rng(0).normal(size=(40, 4, 4)), dims=schema.CUBE_DIMS)
    labels = xr.zeros_like(tiny[0], dtype=int)
    labels[0, ::2], labels[3, ::2] = 1, 2
    probability = hr.AutoClassifier().fit_predict_proba(tiny, labels)
    np.testing.assert_allclose(probability.sum("category"), 1, atol=1e-5)


def test_what_cannot_be_fitted_is_said_in_words(scene) -> None:
    cube, train, _ = scene
    for labels, message in [
        (xr.zeros_like(train), "no training pixel"),
        (train.where(train == 1, 0).astype(train.dtype), "single class"),
        (train.isel(x=slice(20)), "40 rows x 44 columns"),
        (train.astype(float), "integers"),
    ]:
        with pytest.raises(InputError, match=message):
            hr.AutoClassifier().fit(cube, labels)
    with pytest.raises(InputError, match="n_folds"):
        hr.AutoClassifier(n_folds=1).fit(cube, train)
    flat = cube.where(cube.isnull(), 1.0)
    with pytest.raises(InputError, match="all bands are constant"):
        hr.AutoClassifier().fit(flat, train)
    with pytest.warns(EmptyClassWarning, match="class 2"):
        model = hr.AutoClassifier(spatial=False).fit(cube.where(train != 2), train)
    assert list(model.classes_) == [1, 3, 4]


def test_the_discriminant_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 15)
    samples = rng.normal(size=(60, 12)) * np.arange(1, 13) + labels[:, None]
    experts = TwoExperts().fit(samples, labels)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=np.full(4, 0.25))
    ours = 2 * experts.predict_proba(samples) - experts.regression_.predict_proba(samples)
    np.testing.assert_allclose(ours, theirs.fit(samples, labels).predict_proba(samples), atol=1e-9)


def test_discriminants_solve_fishers_problem() -> None:
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(4), 15)
    samples = rng.normal(size=(60, 6)) * np.arange(1, 7) + rng.normal(size=(4, 6))[labels]
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=np.full(4, 0.25))
    within = lda.fit(samples, labels).covariance_
    off_center = lda.means_ - lda.means_.mean(axis=0)
    between = off_center.T @ off_center
    found = TwoExperts().fit(samples, labels).discriminants(5)
    assert found.shape == (6, 3)  # four means span three dimensions
    np.testing.assert_allclose(found.T @ within @ found, np.eye(3), atol=1e-9)
    wanted = eigh(between, within, eigvals_only=True)[::-1][:3]
    np.testing.assert_allclose(found.T @ between @ found, np.diag(wanted), atol=1e-9)


def test_ten_pixels_per_class_map_indian_pines() -> None:
    """This draw has 96.3; coordinates alone have 78."""
    cube, labels = hr.load_indian_pines()
    train, test = hr.sample_per_class(labels, 10, seed=100)
    probability = hr.AutoClassifier().fit_predict_proba(cube, train)
    assert accuracy(probability, test) > 0.9


def test_seeds_that_everything_around_contradicts_are_overruled() -> None:
    """Of 16 wrong labels of this draw the pool gives 14 less than .01, and no right one."""
    cube, labels = hr.load_indian_pines()
    train, _ = hr.sample_per_class(labels, 10, seed=720)
    rng = np.random.default_rng(9720)
    places = rng.choice(np.flatnonzero(train.values), 16, replace=False)
    wrong = train.copy(data=train.values.copy())
    for place in places:
        others = np.setdiff1d(np.arange(1, 17), train.values.flat[place])
        wrong.values.flat[place] = rng.choice(others)
    label = hr.AutoClassifier().fit_predict_proba(cube, wrong).idxmax("category").values
    assert np.mean(label.flat[places] == train.values.flat[places]) > 0.5


@pytest.mark.parametrize("seed", [3, 7])  # the pool doubts one label of a class of two or three
def test_held_out_maps_keep_a_class_of_which_a_label_is_doubted(seed) -> None:
    cube, labels = hr.synthetic_scene(rows=24, columns=24, n_classes=4, n_bands=8, seed=3)
    train, _ = hr.sample_per_class(labels, 14, seed=seed)
    rng = np.random.default_rng(seed)
    for value, size in ((1, 3), (2, 2)):
        places = rng.permutation(np.flatnonzero(train.values == value))
        train.values.flat[places[size - 1 :]] = 0
        train.values.flat[rng.choice(np.flatnonzero(labels.values > 2))] = value  # wrong
    used = (train.values > 0) & schema.valid_pixels(cube).values
    times = np.zeros(train.shape, dtype=int)
    for probability, left_out in hr.AutoClassifier().held_out_proba(cube, train):
        assert list(probability.category) == [1, 2, 3, 4]
        times += left_out
    doubted = probability.doubted.values
    assert doubted.any()
    assert (times[doubted] == 1).all()  # given, and marked
    assert times.max() == 1
    trusted = np.bincount(train.values[used & ~doubted], minlength=5)
    # the last label of a class that is trusted is in every map
    np.testing.assert_array_equal(times[used] == 0, (~doubted & (trusted[train.values] == 1))[used])


@given(st.data())
@settings(max_examples=50, deadline=None, derandomize=True)
def test_every_class_keeps_a_trusted_label_outside_every_fold(data) -> None:
    counts = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=5), label="pixels of class")
    values = np.repeat(np.arange(1, len(counts) + 1), counts)
    labels = xr.DataArray(values[None, ::-1].copy(), dims=schema.MAP_DIMS)
    n_folds = data.draw(st.integers(2, 5), label="folds")
    training = Training.of(labels, np.arange(values.size), n_folds=n_folds)
    doubts = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    doubtful = np.array(doubts)
    for code in range(len(counts)):  # of a class that would be lost, none is doubted
        if doubtful[training.codes == code].all():
            doubtful[training.codes == code] = False
    rest = training.without(doubtful)
    for kind in rest.folds:
        for number in [None, *range(rest.n_folds(kind))]:
            learned = rest.codes[rest.outside(kind, number)]
            assert set(learned) == set(range(len(counts)))
    given_once = np.sum([*rest.left_out(), np.zeros(labels.shape, dtype=int)], axis=0)
    was_given = np.sum([*training.left_out(), np.zeros(labels.shape, dtype=int)], axis=0)
    doubted = rest.doubted()
    np.testing.assert_array_equal(given_once[doubted], was_given[doubted])
