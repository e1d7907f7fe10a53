"""
A promise: with 90 % confidence at most 5 % of the kept pixels are wrong
========================================================================

At most 500 pixels are labelled, batch by batch, where the promise is decided: a sequential design
that starts from the most confident pixels. A step passes when few enough of the pixels looked at
are wrong (dashes), until one fails; the last that passed is certified. With 90 % confidence at most
5 % of the pixels that it keeps are wrong, whatever the classifier and the scene
(:func:`hsreject.certify`), and you may stop at any time.

Here the map ends where the reference of Indian Pines ends, so that the truth is known.
"""

import matplotlib.pyplot as plt

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)
model = hr.SceneClassifier(hr.SparseMultinomialRegression(), features=[hr.MNF(30), hr.Smooth(2)])
probability = model.fit(cube, train).predict_proba(cube)
maps = hr.PixelwiseRejector().rank(probability.where(test > 0))  # elsewhere no data

sample = hr.draw_sample(maps.label, 500, design="sequential", confidence=maps.confidence, seed=0)
size = 0
while len(sample) > size:  # the field work, 50 points at a time
    size, sample = len(sample), sample.with_reference(test)
    sample = hr.more_points(maps.label, maps.confidence, sample, 50)
certificate = hr.certify(maps.label, maps.confidence, sample)
hr.plot.CertificateDisplay(certificate).plot()
plt.show()
