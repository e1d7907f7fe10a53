"""What SegSALSA says of input that it cannot use."""

from __future__ import annotations

import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import ConfigError, InputError
from tests.context.scenes import example_image, regions

SCENE = regions((3, 18, 45), seed=1)


def spoilt(index: tuple[object, ...], value: float) -> np.ndarray:
    probability = SCENE.copy()
    probability[index] = value
    return probability


def test_bad_probabilities_are_refused() -> None:
    for probability, message in (
        (SCENE * 1.3, "1.3"),
        (spoilt((0, 2, 3), np.nan), "1 pixels .*row 2, column 3"),
        (spoilt((slice(None), 2, 3), 0.0), "0 in every class at 1 pixels"),
        (spoilt((0, 2, 3), -0.5), "-0.5"),
        (spoilt((0, 2, 3), np.inf), "sum to 1"),
        (SCENE * np.nan, "every pixel"),
        (SCENE[0], r"\(category, y, x\)"),
        (SCENE[:, :0], "non-empty"),
    ):
        with pytest.raises(InputError, match=message):
            hr.SegSALSA(hr.VectorTV(1.0)).solve(probability)


class Elsewhere:
    """An array that cannot be converted, as a tensor of another device."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        raise TypeError("call .cpu() first")


GIVEN = {
    "masked": (lambda array: np.ma.masked_array(array, array == array.flat[0]), "masked"),
    "complex": (lambda array: array.astype(complex), "complex128"),
    "text": (lambda array: array.astype(str), "<U"),
    "elsewhere": (lambda array: Elsewhere(), "Elsewhere|object"),
}


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("name", ["probability", "image", "train", "edges", "partition"])
def test_arrays_that_are_none_are_refused(name: str, kind: str) -> None:
    spoil, word = GIVEN[kind]
    arrays = {"probability": SCENE, "image": SCENE, "train": SCENE[0] > 0.5}
    arrays["train"] = arrays["train"].astype(int)
    if name in arrays:
        arrays[name] = spoil(arrays[name])
        with pytest.raises(InputError, match=f"{name} .*({word})"):
            hr.SegSALSA(hr.VectorTV(edges="image")).solve(**arrays)
    elif name == "edges":
        with pytest.raises(InputError, match=f"edges .*({word})"):
            hr.VectorTV(edges=spoil(np.ones((18, 2, 45))))
    else:
        with pytest.raises(InputError, match=f"partition.*({word})"):
            hr.GraphTV(partitions=[spoil(np.ones((18, 45), int))])


def test_class_priors_that_are_not_numbers_are_refused() -> None:
    for given in (["a", "b", "c"], [None] * 3, [1j, 1, 1]):
        with pytest.raises(InputError, match="class_prior must hold real numbers"):
            hr.SegSALSA(hr.VectorTV(1.0), class_prior=given).solve(SCENE)


def test_bad_options_are_refused() -> None:
    prior = hr.VectorTV(1.0)
    for options, message in [
        ({"tol": 0.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"n_threads": 0}, "n_threads must be"),
        ({"dtype": "float16"}, "dtype must be"),
        ({"solver": "amdm"}, "Did you mean 'admm'"),
    ]:
        with pytest.raises((InputError, ConfigError), match=message):
            hr.SegSALSA(prior, **options)
    for wrong in ([], "vector_tv", [prior, 3], 1.0, None, hr.VectorTV):
        with pytest.raises(InputError, match="prior must be a Prior"):
            hr.SegSALSA(wrong)
    for class_prior, message in [([0.5, 0.5], "per class, 3"), ([1, 1, 0], "above 0")]:
        with pytest.raises(InputError, match=message):
            hr.SegSALSA(prior, class_prior=class_prior).solve(SCENE)


def test_bad_images_and_edges_are_refused() -> None:
    image = example_image((4, 18, 45), seed=9)
    cases = [
        (hr.VectorTV(edges="image"), None, "needs the image"),
        (hr.VectorTV(edges="image"), image[:, 1:], "grid of probability"),
        (hr.VectorTV(edges=np.ones((18, 2, 44))), image, r"shape \(y, 2, x\)"),
        (hr.VectorTV(edges=-np.ones((18, 2, 45))), image, "at least 0"),
        (hr.VectorTV(edges="image"), np.where(image > 1, np.nan, image), "NaN or infinite"),
    ]
    for prior, given, message in cases:
        with pytest.raises(InputError, match=message):
            hr.SegSALSA(prior).solve(SCENE, image=given)
    for edges in ("picture", [0, 4], np.ones(3)):
        with pytest.raises(InputError, match="edges must be None"):
            hr.VectorTV(edges=edges)


def test_a_prior_with_a_column_per_class_says_so_in_joint_rejection() -> None:
    class PerClass(hr.VectorTV):
        def bind(self, grid):
            np.ones(3) * np.ones(grid.n_classes)
            return super().bind(grid)

    hr.SegSALSA(PerClass(1.0)).solve(SCENE)
    with pytest.raises(InputError, match="n_rejection_classes"):
        hr.JointRejector(hr.SegSALSA(PerClass(1.0))).reject(SCENE, fraction=0.2)
