"""
Does 0.9 mean nine out of ten?
==============================

A confidence ranks pixels; a probability also says how often a label is right. On the diagonal
it is calibrated. A regression that has seen ten pixels per class is overconfident, and so is the
hidden field of SegSALSA, in which neighbours confirm each other: both rank well, but they are
not probabilities. The pool (:class:`hsreject.AutoClassifier`) calibrates itself on
training pixels that were left out. Marks are groups of test pixels of about the same
confidence; ECE is their mean distance from the diagonal.
"""

import matplotlib.pyplot as plt

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)
model = hr.SceneClassifier(hr.SparseMultinomialRegression(), features=[hr.MNF(15)])
probability = model.fit(cube, train).predict_proba(cube)

fields = {
    "regression": probability,
    "regression with context": hr.SegSALSA(hr.VectorTV(weight=2)).solve(probability).hidden_field,
    "pool": hr.AutoClassifier().fit_predict_proba(cube, train),
}
tables = {}
for name, field in fields.items():
    maps = hr.PixelwiseRejector(confidence="maximum").rank(field)
    samples = hr.evaluation_samples(test, maps.label, maps.confidence)
    tables[name] = hr.reliability(samples.correct, samples.confidence, n_bins=8)
hr.plot.ReliabilityDisplay(tables).plot()
plt.show()
