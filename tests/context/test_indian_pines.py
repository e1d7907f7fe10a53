"""What the context is for: better maps of a real scene."""

from __future__ import annotations

import numpy as np

import hsreject as hr


def test_context_adds_points_of_accuracy_on_indian_pines() -> None:
    """Ten pixels per class, 15 MNF components: at least 8 points on the mean of ten draws."""
    cube, labels = hr.load_indian_pines()
    features = hr.MNF(15).fit(cube).transform(cube)
    gains = []
    for seed in range(10):
        train, test = hr.sample_per_class(labels, 10, seed=seed)
        model = hr.SceneClassifier(hr.SparseMultinomialRegression()).fit(features, train)
        probability = model.predict_proba(features)
        label = hr.SegSALSA(hr.VectorTV(2.0)).solve(probability).label.values
        pixelwise = probability.category.values[probability.values.argmax(axis=0)]
        tested = test.values > 0
        gains.append(((label == test.values) * 1.0 - (pixelwise == test.values))[tested].mean())
    assert np.mean(gains) >= 0.08
