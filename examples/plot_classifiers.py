"""
Classifiers side by side
========================

Every scikit-learn classifier can be asked where it does not know. All of these learned from the
same ten pixels per class: a random forest on the bands, the sparse regression on 15 components,
the same with context, and the pool that chooses by itself (:class:`hsreject.AutoClassifier`).
The last one looks at nothing but the place of a pixel. It belongs in every such comparison,
because randomly drawn training pixels flatter every method.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)

regression = hr.SceneClassifier(hr.SparseMultinomialRegression(), features=[hr.MNF(15)])
context = hr.SequentialRejector(hr.SegSALSA(hr.VectorTV(weight=2)))
systems = {
    "pool": (hr.AutoClassifier(), hr.PixelwiseRejector()),
    "regression with context": (regression, context),
    "regression": (regression, hr.PixelwiseRejector()),
    "random forest": (
        hr.SceneClassifier(RandomForestClassifier(random_state=0)),
        hr.PixelwiseRejector(),
    ),
    "place alone": (
        hr.SceneClassifier("nearest_neighbor", features=["coordinates"]),
        hr.PixelwiseRejector(),
    ),
}
curves = {}
for name, (model, rejector) in systems.items():
    probability = model.fit_predict_proba(cube, train)
    curves[name] = rejector.operating_points(probability, test)

with hr.plot.print_style():
    fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
    display = hr.plot.RejectionCurveDisplay.from_curves(curves, marked={})
    display.plot([ax], measures=["nonrejected_accuracy"], legend=False)
    ax.legend(handlelength=2.6)
plt.show()
