"""
How much to reject, for every cost
==================================

An error costs 1, and a rejected pixel costs a share of that: somebody has to look at it. The
left picture shows what a pixel costs at best, the right one how much is rejected for it. One
computation answers for all costs. The cheaper a visit, the more is rejected; with context the
same money buys fewer errors.
"""

import matplotlib.pyplot as plt

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)
model = hr.SceneClassifier(hr.SparseMultinomialRegression(), features=[hr.MNF(15)])
probability = model.fit(cube, train).predict_proba(cube)

rejectors = {
    "pixel by pixel": hr.PixelwiseRejector(),
    "with context": hr.SequentialRejector(hr.SegSALSA(hr.VectorTV(weight=2))),
}
curves = {name: r.operating_points(probability, test) for name, r in rejectors.items()}
hr.plot.CostEnvelopeDisplay.from_curves(curves).plot()
plt.show()
