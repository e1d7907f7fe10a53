"""Novelty against its definition, pixel by pixel, and what it tells on scenes made for it."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from scipy.spatial.distance import cdist

import hsreject as hr
from hsreject import schema
from hsreject.errors import InputError
from hsreject.features import windows
from hsreject.features.chains import CHAINS, Projection, fit_chain
from hsreject.features.pixel_kernels import nearest_squares
from hsreject.splits.polygons import polygon_numbers
from hsreject.threads import one_blas_thread


@pytest.fixture(scope="module")
def scene() -> tuple[xr.DataArray, xr.DataArray]:
    return hr.synthetic_scene(rows=40, columns=36, n_classes=4, n_bands=10, noise=0.2, seed=2)


@pytest.fixture(scope="module")
def training(scene) -> xr.DataArray:
    known = scene[1].where(scene[1] != 3, 0).astype(scene[1].dtype)
    return hr.sample_per_class(known, 15, seed=1)[0]


def by_definition(
    features: xr.DataArray, training: xr.DataArray, polygons: np.ndarray | None = None
) -> tuple[np.ndarray, float, np.ndarray]:
    """z (y, x), A and log e of one space, one pair at a time."""
    plain = features.values.astype(np.float64)
    at = (training.values > 0) & ~np.isnan(plain).any(axis=0)
    samples, classes = plain[:, at].T, training.values[at]
    cluster = np.arange(len(samples)) if polygons is None else polygons[at]

    def nearest(pixel: np.ndarray, others: np.ndarray) -> float:
        return min(np.sqrt(((pixel - other) ** 2).sum()) for other in others)

    places = range(len(samples))
    e = np.array([nearest(samples[i], samples[cluster != cluster[i]]) for i in places])
    u = np.array([nearest(samples[i], samples[classes != classes[i]]) for i in places])
    floor = 0.01 * np.median(e)
    e, u = np.maximum(e, floor), np.maximum(u, floor)
    pairs = [
        (u[classes == k][:, None] > e[classes != k]).mean()
        + (u[classes == k][:, None] == e[classes != k]).mean() / 2
        for k in np.unique(classes)
    ]
    mean = np.mean([np.log(e[classes == k]).mean() for k in np.unique(classes)])
    variance = np.mean([((np.log(e[classes == k]) - mean) ** 2).mean() for k in np.unique(classes)])
    z = np.full(training.shape, np.nan)
    for y, x in np.argwhere(~np.isnan(plain).any(axis=0)):
        distance = max(nearest(plain[:, y, x], samples), floor)
        z[y, x] = (np.log(distance) - mean) / np.sqrt(variance)
    return z, float(np.mean(pairs)), np.log(e)


def mixed(spaces: list[tuple[np.ndarray, float, np.ndarray]]) -> np.ndarray:
    weight = np.exp([auroc / 0.02 for _, auroc, _ in spaces])
    weight[weight < 0.05 * weight.max()] = 0
    return np.tensordot(weight / weight.sum(), [z for z, _, _ in spaces], 1)


def test_p_values_are_those_of_the_definition(scene, training) -> None:
    cube, _ = scene
    alone, spaces = {}, []
    for name in CHAINS:
        _, features = fit_chain(name, cube, 30)
        diffused = hr.Diffuse(300.0).fit(features).transform(features)
        alone[name] = by_definition(features, training)
        spaces += [alone[name], by_definition(diffused, training)]
    novelty = hr.Novelty()
    p_value = novelty.fit_p_value(cube, training)
    assert (p_value.name, p_value.dtype, p_value.dims) == ("p_value", "f4", schema.MAP_DIMS)
    xr.testing.assert_equal(p_value.y, cube.y)
    np.testing.assert_allclose(p_value, stats.t.sf(mixed(spaces), 30), rtol=1e-4)
    for (_, auroc, _), found in zip(spaces, novelty.auroc_.values(), strict=True):
        assert found == pytest.approx(auroc)

    one, two = mixed(list(alone.values())), alone["raw"][0]
    for found, wanted in zip(novelty.scores(cube), (one, two), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    shifted = np.maximum(one - 0.3, two - 0.1)
    carried = novelty.p_value(cube, shift=(0.3, 0.1))
    np.testing.assert_allclose(carried, np.minimum(2 * stats.t.sf(shifted, 30), 1), rtol=1e-3)


def test_pixels_of_one_polygon_do_not_tell_how_far_known_pixels_lie(scene) -> None:
    cube, labels = scene
    corners = np.zeros(labels.shape, dtype=bool)
    for row, column in np.ndindex(4, 4):
        corners[10 * row : 10 * row + 4, 9 * column : 9 * column + 4] = True
    drawn = labels.where(corners, 0).astype(labels.dtype)
    polygons = polygon_numbers(drawn)
    spaces = []
    for name in CHAINS:
        _, features = fit_chain(name, cube, 30)
        diffused = hr.Diffuse(300.0).fit(features).transform(features)
        spaces += [by_definition(one, drawn, polygons) for one in (features, diffused)]
    p_value = hr.Novelty().fit_p_value(cube, drawn)
    np.testing.assert_allclose(p_value, stats.t.sf(mixed(spaces), 30), rtol=1e-4)


def test_an_unknown_class_is_unknown_and_the_others_are_not(scene, training) -> None:
    cube, labels = scene
    for p_value, most in (
        (hr.Novelty().fit_p_value(cube, training), 0.07),
        (hr.Novelty().fit(cube, training).p_value(cube), 0.1),
    ):
        unknown = (p_value < 0.025).values
        assert unknown[labels.values == 3].mean() > 0.5
        assert unknown[(labels.values > 0) & (labels.values != 3)].mean() < most


def test_a_shift_of_the_whole_scene_is_taken_out(scene, training) -> None:
    cube, _ = scene
    novelty = hr.Novelty().fit(cube, training)
    np.testing.assert_array_equal(novelty.shift_of(cube), 0)
    moved = cube + np.float32(0.02) * cube.isel(band=0, drop=True)
    shift = novelty.shift_of(moved)
    assert (shift >= 0).all()
    assert shift.max() > 0
    unshifted, shifted = (
        float((novelty.p_value(moved, shift=by) < 0.05).mean()) for by in ((0, 0), None)
    )
    assert shifted <= unshifted
    assert not np.isnan(novelty.shift_of(cube * np.nan)).any()


def test_blocks_and_lazy_scenes_give_the_same(scene, training) -> None:
    cube, _ = scene
    novelty = hr.Novelty().fit(cube, training)
    whole = novelty.p_value(cube, shift=(0.1, 0.2))
    lazy = novelty.p_value(cube.chunk({"band": 3, "y": 7, "x": 11}), shift=(0.1, 0.2))
    assert lazy.chunks is not None
    with one_blas_thread():  # as map_scene computes it
        np.testing.assert_array_equal(lazy, whole)
    part = {"y": slice(5, 17), "x": slice(3, 9)}
    np.testing.assert_array_equal(
        novelty.p_value(cube.isel(part), shift=(0.1, 0.2)), whole.isel(part)
    )
    np.testing.assert_array_equal(whole.isnull(), cube.isnull().any("band"))


def test_spaces_of_negligible_weight_are_not_computed(scene, training, monkeypatch) -> None:
    cube, _ = scene
    novelty = hr.Novelty().fit(cube, training)
    computed = []

    def of(chains: dict) -> list:
        computed.append(set(chains))
        return projections_of(chains)

    projections_of = Projection.of
    monkeypatch.setattr(Projection, "of", of)
    novelty.p_value(cube, shift=(0, 0))
    weights = np.exp([novelty.auroc_[f"{name} 0"] / 0.02 for name in CHAINS])
    kept = {name for name, w in zip(CHAINS, weights, strict=True) if w >= 0.05 * weights.max()}
    assert len(kept) < len(CHAINS)
    assert computed == [kept | {"raw"}]


def test_distances_are_those_of_the_definition_wherever_a_pixel_stands() -> None:
    rng = np.random.default_rng(3)
    for n_features, n_samples in ((1, 1), (4, 3), (30, 50)):
        features = rng.normal(size=(n_features, 600)).astype(np.float32)
        samples = rng.normal(size=(n_samples, n_features))
        found = nearest_squares(features, samples)
        wanted = cdist(features.T.astype(np.float64), samples).min(axis=1) ** 2
        np.testing.assert_allclose(found, wanted, rtol=3e-6)
        for start, stop in ((0, 1), (250, 260), (3, 599)):
            part = nearest_squares(features[:, start:stop], samples)
            np.testing.assert_array_equal(part, found[start:stop])


def test_a_large_scene_is_looked_at_in_windows(scene, training, monkeypatch) -> None:
    cube, _ = scene
    whole = hr.Novelty().fit_p_value(cube, training)
    monkeypatch.setattr(windows, "_LARGEST_WHOLE", 1000)
    monkeypatch.setattr(windows, "_SIDE", 20)
    cut = hr.Novelty().fit_p_value(cube.chunk({"y": 7}), training)
    assert cut.chunks is None
    np.testing.assert_allclose(cut, whole, rtol=0.01)  # features at 32 pixels differ by 1e-4


def test_many_training_pixels_are_thinned(scene) -> None:
    cube, labels = scene
    novelty = hr.Novelty(n_samples=40).fit(cube, labels)
    assert 20 <= len(novelty.spaces_["raw"].samples) <= 44


def test_scenes_without_noise_and_single_pixels_work(training) -> None:
    rng = np.random.default_rng(0)
    flat = xr.DataArray(np.ones((6, 8, 8)), dims=schema.CUBE_DIMS)
    flat = flat * xr.DataArray(rng.uniform(1, 2, 6), dims="band")
    flat[:, 4:] *= 2
    labels = xr.zeros_like(flat[0], dtype=np.uint8)
    labels[0, 0], labels[7, 7] = 1, 2  # one pixel each
    p_value = hr.Novelty().fit_p_value(flat.astype("f4"), labels)
    assert ((p_value > 0) & (p_value <= 1)).all()
    assert not (p_value < 0.025).any()


def test_what_cannot_work_is_refused(scene, training) -> None:
    cube, _ = scene
    for message, call in {
        "training labels has 39 rows": lambda: hr.Novelty().fit(cube, training[:39]),
        "1.5": lambda: hr.Novelty(n_samples=1.5).fit(cube, training),
        "no training pixel": lambda: hr.Novelty().fit(cube, training * 0),
    }.items():
        with pytest.raises(InputError, match=message):
            call()
