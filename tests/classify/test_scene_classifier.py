import hashlib

import dask
import numpy as np
import pytest
import xarray as xr
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_info, threadpool_limits

import hsreject as hr
from hsreject import schema
from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.classify.scene_model import SceneModel
from hsreject.errors import ConfigError, InputError
from hsreject.pipeline.plan import make_plan


@pytest.fixture(scope="module")
def scene() -> tuple[xr.DataArray, xr.DataArray]:
    return hr.synthetic_scene(rows=40, columns=44, n_classes=4, n_bands=12, seed=2)


@pytest.fixture(scope="module")
def cube(scene) -> xr.DataArray:
    return scene[0]


@pytest.fixture(scope="module")
def train(scene) -> xr.DataArray:
    return hr.sample_per_class(scene[1], 12, seed=0)[0]


@pytest.fixture(scope="module")
def model(cube, train) -> hr.SceneClassifier:
    features = [hr.MNF(5), hr.Smooth(1.0)]
    return hr.SceneClassifier(LinearDiscriminantAnalysis(), features=features).fit(cube, train)


def test_is_the_classifier_itself_on_the_labelled_pixels(cube, train, model) -> None:
    features = hr.Smooth(1.0).fit_transform(hr.MNF(5).fit_transform(cube))
    valid = schema.valid_pixels(cube).values
    labelled = (train.values > 0) & valid
    direct = LinearDiscriminantAnalysis().fit(
        features.values[:, labelled].T.astype(np.float64), train.values[labelled]
    )
    expected = direct.predict_proba(features.values[:, valid].T.astype(np.float64))
    found = model.predict_proba(cube)
    np.testing.assert_allclose(found.values[:, valid].T, expected, atol=1e-6)
    assert np.isnan(found.values[:, ~valid]).all()
    assert model.n_training_pixels_ == labelled.sum()


def test_probability_says_what_it_is(cube, train, model) -> None:
    probability = model.predict_proba(cube)
    assert probability.dims == schema.FIELD_DIMS
    assert probability.dtype == np.float32
    assert list(probability.category.values) == [1, 2, 3, 4]
    assert schema.class_table(probability) == schema.class_table(train)
    assert list(probability.class_name.values) == list(schema.class_table(train).names)
    for name in ("y", "x", "spatial_ref"):
        assert probability.coords[name].variable.identical(cube.coords[name].variable)
    assert "wavelength" not in probability.coords
    assert probability.rio.crs == cube.rio.crs


def test_chunks_change_nothing_but_rounding(cube, train, model) -> None:
    def refuse(dsk, keys, **options):
        raise AssertionError("computed too early")

    expected = model.predict_proba(cube)
    for chunks in ({"band": 5, "y": 13, "x": 9}, {"y": 40}):
        lazy = cube.copy(data=cube.chunk(chunks).data)
        with dask.config.set(scheduler=refuse):
            probability = model.predict_proba(lazy)
        xr.testing.assert_allclose(probability.compute(), expected, atol=1e-6)
        refitted = clone(model).fit(lazy, train).predict_proba(lazy)
        # float32 features that differ in the last digit move probabilities by about as much
        xr.testing.assert_allclose(refitted.compute(), expected, atol=1e-4)


def test_values_of_pixels_without_data_change_nothing(cube, train, model) -> None:
    garbage = cube.copy(deep=True)
    garbage.values[1:, ~schema.valid_pixels(cube).values] = -1e8
    refitted = clone(model).fit(garbage, train)
    np.testing.assert_array_equal(
        refitted.predict_proba(garbage).values, model.predict_proba(cube).values
    )


def test_bad_bands_of_the_training_scene_stay_out(cube, train) -> None:
    good = np.ones(12, dtype=bool)
    good[[0, 6]] = False
    marked = cube.assign_coords(good_band=("band", good))
    model = hr.SceneClassifier("lda").fit(marked.where(marked.good_band), train)
    assert model.classifier_.n_features_in_ == 10
    expected = hr.SceneClassifier("lda").fit(cube.isel(band=good), train)
    np.testing.assert_allclose(
        model.predict_proba(cube).values,
        expected.predict_proba(cube.isel(band=good)).values,
        atol=1e-6,
    )


def test_categories_are_the_classes_with_training_pixels(cube, train) -> None:
    without = train.where(train != 2, 0).astype(train.dtype)
    probability = hr.SceneClassifier("lda").fit(cube, without).predict_proba(cube)
    assert list(probability.category.values) == [1, 3, 4]
    assert schema.class_table(probability) == schema.class_table(train).subset([1, 3, 4])
    bare = xr.DataArray(train.values, dims=schema.MAP_DIMS)
    probability = hr.SceneClassifier("lda").fit(cube, bare).predict_proba(cube)
    assert schema.class_table(probability) == hr.ClassTable.plain([1, 2, 3, 4])


@pytest.mark.parametrize("name", list(CLASSIFIERS))
def test_every_named_classifier_gives_probabilities_and_the_same_again(cube, train, name) -> None:
    """The same in whatever order the dimensions come."""
    features = ["coordinates"] if name == "nearest_neighbor" else [hr.MNF(5)]
    model = CLASSIFIERS.create(name)
    if not isinstance(model, SceneModel):  # or it works on scenes by itself
        model = hr.SceneClassifier(name, features=features)
    probability = model.fit_predict_proba(cube, train)
    again = clone(model).fit_predict_proba(cube.transpose("y", "x", "band"), train)
    np.testing.assert_array_equal(again.values, probability.values)
    valid = schema.valid_pixels(cube)
    total = probability.sum("category", skipna=False).values
    np.testing.assert_allclose(total[valid.values], 1, atol=1e-5)
    labelled = (train.values > 0) & valid.values
    best = probability.category.values[np.nan_to_num(probability.values).argmax(axis=0)]
    assert (best == train.values)[labelled].mean() > 0.9


def test_impossible_labels_are_refused(cube, train) -> None:
    for labels, message in [
        (xr.zeros_like(train), "no training pixel"),
        (train.where(train == 1, 0).astype(train.dtype), r"single class \(1\)"),
        (train.where(train != 4, 9).astype(train.dtype), r"\[9\]"),
        (train.astype(int).where(train != 4, -3), "negative"),
        (train.astype(float), "integers"),
        (train.isel(x=slice(20)), "40 rows x 44 columns .* 40 rows x 20"),
        (train.assign_coords(x=train.x + 15), "different grids"),
        (train.expand_dims("time"), r"\(y, x\)"),
    ]:
        with pytest.raises(InputError, match=message):
            hr.SceneClassifier("lda").fit(cube, labels)
    with pytest.raises(InputError, match="labelled pixels has data"):
        hr.SceneClassifier("lda").fit(cube.where(train == 0), train)


def test_labels_without_data_and_fill_values_are_skipped(cube, train) -> None:
    whole = hr.SceneClassifier("lda").fit(cube, train)
    row, column = np.argwhere((train.values > 0) & schema.valid_pixels(cube).values)[0]
    holed = cube.copy(deep=True)
    holed.values[3, row, column] = np.nan
    few = hr.SceneClassifier("lda").fit(holed, train)
    assert few.n_training_pixels_ == whole.n_training_pixels_ - 1
    filled = train.where(train > 0, 255).astype("uint8").assign_attrs(train.attrs, _FillValue=255)
    found = hr.SceneClassifier("lda").fit(cube, filled).predict_proba(cube)
    np.testing.assert_array_equal(found.values, whole.predict_proba(cube).values)


def test_impossible_parts_are_refused(cube, train) -> None:
    for classifier, features, error, message in [
        (LinearSVC(), [], InputError, "LinearSVC has no predict_proba"),
        ("ldaa", [], ConfigError, r"'ldaa'.*Did you mean 'lda'"),
        ("lda", [StandardScaler()], InputError, "pipeline"),
        ("lda", ["mnff"], ConfigError, "'mnff'"),
    ]:
        with pytest.raises(error, match=message):
            hr.SceneClassifier(classifier, features=features).fit(cube, train)
    with pytest.raises(InputError, match="DataArray"):
        hr.SceneClassifier("lda").fit(cube.values, train)


class Centres:
    """The nearest class mean; derived from nothing, and its `fit` returns nothing."""

    def __init__(self) -> None:
        self.fitted = 0

    def fit(self, samples, labels) -> None:
        self.fitted += 1
        self.classes_ = np.unique(labels)
        self.means = np.stack([samples[labels == one].mean(axis=0) for one in self.classes_])

    def predict_proba(self, samples) -> np.ndarray:
        distance = np.square(samples[:, None] - self.means).sum(axis=-1)
        return np.exp(-distance) / np.exp(-distance).sum(axis=1, keepdims=True)


def test_a_classifier_needs_no_more_than_it_promises(scene) -> None:
    cube, labels = scene
    given = Centres()
    plan = make_plan({"scene": (cube, labels), "features": ["scale"], "classifier": given})
    train, test = hr.sample_per_class(labels, 12, seed=0)
    model = clone(plan.model).fit(cube, train)
    label = hr.PixelwiseRejector().rank(model.predict_proba(cube)).label
    assert hr.evaluation_samples(test, label).correct.mean() > 0.6
    assert (given.fitted, model.classifier_.fitted) == (0, 1)


def test_a_classifier_without_classes_is_told(cube, train) -> None:
    class Nameless(Centres):
        def fit(self, samples, labels) -> None:
            super().fit(samples, labels)
            del self.classes_

    with pytest.raises(InputError, match="Nameless has no classes_"):
        hr.SceneClassifier(Nameless()).fit(cube, train)


@pytest.mark.parametrize("name", ["nearest_neighbor", "svm"])
def test_our_classifiers_are_honest(name) -> None:
    check_estimator(CLASSIFIERS.create(name), on_skip=None)


def test_nearest_neighbor_is_scikit_learns_with_graded_probabilities() -> None:
    random = np.random.default_rng(0)
    samples, targets = random.normal(size=(60, 2)), random.integers(0, 5, 60)
    queries = random.normal(size=(300, 2))
    reference = KNeighborsClassifier(1).fit(samples, targets)
    model = CLASSIFIERS.create("nearest_neighbor").fit(samples, targets)
    np.testing.assert_array_equal(model.predict(queries), reference.predict(queries))
    distance = np.array(
        [np.linalg.norm(queries[:, None] - samples[targets == k], axis=2).min(1) for k in range(5)]
    )
    expected = distance**-2 / (distance**-2).sum(axis=0)
    np.testing.assert_allclose(model.predict_proba(queries), expected.T, rtol=1e-10)
    np.testing.assert_array_equal(model.predict_proba(samples).max(axis=1), 1.0)


def test_support_vector_machine_is_scikit_learns() -> None:
    random = np.random.default_rng(0)
    targets = np.repeat([0, 1, 2], [20, 30, 3])
    samples = random.normal(size=(53, 4)) + targets[:, None]
    machines = OneVsRestClassifier(SVC(C=10.0))
    folds = StratifiedKFold(3, shuffle=True, random_state=0)  # the rarest class has 3
    reference = CalibratedClassifierCV(machines, ensemble=False, cv=folds).fit(samples, targets)
    model = CLASSIFIERS.create("svm").fit(samples, targets)
    queries = random.normal(size=(400, 4)) + random.integers(0, 3, (400, 1))
    found, sigmoids = model.predict_proba(queries), reference.predict_proba(queries)
    label = SVC(C=10.0).fit(samples, targets).predict(queries)
    np.testing.assert_array_equal(model.predict(queries), label)
    np.testing.assert_array_equal(found.astype(np.float32).argmax(axis=1), label)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    agree = sigmoids.argmax(axis=1) == label
    assert 0 < (~agree).sum() < 100  # both are there
    np.testing.assert_allclose(found[agree], sigmoids[agree], atol=1e-3)
    with pytest.raises(InputError, match="class 7 has 1"):
        CLASSIFIERS.create("svm").fit(np.eye(5), [1, 1, 2, 2, 7])


def test_progress_reaches_the_last_row(cube, model) -> None:
    told = []
    model.predict_proba(cube, progress=lambda *step: told.append(step))
    assert told[-1] == ("classify", 40, 40)


def test_the_halo_is_the_sum_of_those_of_the_features(cube, train) -> None:
    model = hr.SceneClassifier("lda", features=[hr.Smooth(1.0), "pca", hr.Smooth(2.0)])
    assert model.fit(cube, train).halo == 4 + 8
    assert hr.SceneClassifier("lda", features=["coordinates"]).fit(cube, train).halo is None


def digest() -> str:
    """Hash the products of 500 samples and functions: BLAS would divide them if it might."""
    rng = np.random.default_rng(0)
    labels = xr.DataArray(np.arange(70 * 80).reshape(70, 80) % 7 + 1, dims=("y", "x"))
    values = rng.standard_normal((7, 60))[labels.values - 1] + rng.standard_normal((70, 80, 60))
    cube = xr.DataArray(values.transpose(2, 0, 1), dims=("band", "y", "x"))
    train = labels.where(rng.random((70, 80)) < 0.09, 0).astype("uint8")
    used = train.values > 0
    found = hashlib.sha256()
    for classifier in (hr.SparseMultinomialRegression(tol=1e-3), "lda"):
        for scene in (cube, cube.astype("float32")):
            model = hr.SceneClassifier(classifier, features=[hr.MNF(15)]).fit(scene, train)
            found.update(model.features_[0].transform(scene).values.tobytes())
            found.update(model.predict_proba(scene).values.tobytes())
    model = hr.SparseMultinomialRegression(tol=1e-3).fit(values[used], train.values[used])
    found.update(model.predict_proba(values.reshape(-1, 60)).tobytes())
    return found.hexdigest()


def test_same_bits_on_one_and_on_two_threads() -> None:
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            assert max(library["num_threads"] for library in threadpool_info()) == n_threads
            found.append(digest())
    assert found[0] == found[1]


def test_held_out_probabilities_have_not_seen_their_fold(cube, train) -> None:
    model = hr.SceneClassifier("lda", features=[hr.MNF(5)])
    labelled = (train.values > 0) & schema.valid_pixels(cube).values
    seen = np.zeros(labelled.shape, dtype=int)
    for probability, left_out in model.held_out_proba(cube, train, n_folds=3, seed=1):
        rest = train.where(~left_out, 0).astype(train.dtype)
        expected = clone(model).fit(cube, rest).predict_proba(cube)
        np.testing.assert_allclose(probability.values, expected.values, rtol=1e-6)
        seen += left_out
    np.testing.assert_array_equal(seen, labelled)


def test_classifiers_of_scenes_are_not_put_into_another(cube, train) -> None:
    with pytest.raises(InputError, match="AutoClassifier works on scenes by itself"):
        hr.SceneClassifier("auto").fit(cube, train)


@pytest.mark.parametrize("features", [[], [hr.PCA(2)], [hr.MNF(2)]])
def test_numbers_that_are_no_spectra_are_named(cube, train, model, features) -> None:
    """Not "no pixel has data", nor eigenvalues that do not converge."""
    huge = cube.astype(np.float64).where(train != 1, 1e300)
    with pytest.raises(hr.HsrejectError, match=r"1e\+300"):
        hr.SceneClassifier("lda", features=features).fit(huge, train)
    with pytest.raises(hr.HsrejectError, match=r"1e\+300"):
        model.predict_proba(huge.chunk()).compute()
    with pytest.raises(hr.HsrejectError, match="complex"):
        hr.SceneClassifier("lda", features=features).fit(cube + 1j, train)
