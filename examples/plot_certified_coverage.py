"""
A promise: at most 5 % of the kept pixels are wrong
===================================================

A random sample of 500 pixels is labelled. Coverages that were fixed beforehand are tested one
after the other, until one fails; the last that passed is certified. With 90 % confidence at
most 5 % of the pixels that it keeps are wrong, whatever the classifier and the scene
(:func:`hsreject.certify`). The threshold whose errors in the sample (crosses) are few enough
would keep more, and break the promise about every second time.

Here the map ends where the reference of Indian Pines ends, so that the truth is known.
"""

import matplotlib.pyplot as plt

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)
model = hr.SceneClassifier(hr.SparseMultinomialRegression(), features=[hr.MNF(30), hr.Smooth(2)])
probability = model.fit(cube, train).predict_proba(cube)
maps = hr.PixelwiseRejector().rank(probability.where(test > 0))  # elsewhere no data

sample = hr.draw_sample(maps.label, 500, seed=0).with_reference(test)
certificate = hr.certify(maps.label, maps.confidence, sample, max_error=0.05, confidence_level=0.9)
hr.plot.CertificateDisplay(certificate).plot()
plt.show()
