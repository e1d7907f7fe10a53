"""The paper's synthetic problem: four overlapping Gaussians (section V-A)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

CENTRES = np.array([[-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])


@dataclass(frozen=True, eq=False)
class FourGaussians:
    r"""Samples of four unit Gaussians at :math:`(\pm 1, \pm 1)`, classified by nearest centre.

    The classes are equally likely and share the identity covariance, so the posteriors are known
    exactly, :math:`p(k | s) \propto \exp(-\|s - m_k\|^2 / 2)`, and the nearest centre is the Bayes
    label. Its accuracy is :math:`\Phi(1)^2 \approx 0.708`.

    Parameters
    ----------
    samples : array (sample, 2)
        Where the samples lie.
    reference, label : array (sample,) of int
        Class drawn from and class of the nearest centre, 1 to 4.
    probability : array (category, sample)
        Exact class posteriors.

    Examples
    --------
    >>> problem = FourGaussians.draw(1000, seed=0)
    >>> problem.samples.shape, problem.probability.shape
    ((4000, 2), (4, 4000))
    >>> round(float(problem.correct.mean()), 1)
    0.7
    """

    samples: NDArray[np.float64]
    reference: NDArray[np.uint8]
    label: NDArray[np.uint8]
    probability: NDArray[np.float64]

    @classmethod
    def draw(cls, n_per_class: int, *, seed: int) -> FourGaussians:
        """Return `n_per_class` samples of each class."""
        if n_per_class < 1:
            raise InputError(f"n_per_class must be at least 1 (got {n_per_class}).")
        generator = np.random.default_rng(seed)
        noise = generator.standard_normal((len(CENTRES), n_per_class, 2))
        samples = (CENTRES[:, np.newaxis, :] + noise).reshape(-1, 2)
        classes = np.arange(1, len(CENTRES) + 1, dtype=np.uint8)
        distance = ((samples[np.newaxis] - CENTRES[:, np.newaxis]) ** 2).sum(axis=-1)
        weight = np.exp(-(distance - distance.min(axis=0)) / 2)
        return cls(
            samples=samples,
            reference=np.repeat(classes, n_per_class),
            label=classes[distance.argmin(axis=0)],
            probability=weight / weight.sum(axis=0),
        )

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Which labels are right."""
        right: NDArray[np.bool_] = self.label == self.reference
        return right
