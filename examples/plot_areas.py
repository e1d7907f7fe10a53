"""
Areas with intervals
====================

How much soybean is there? Counting the pixels of a map counts its errors, too, and leaves out
what was rejected. A random sample of 600 labelled pixels estimates every area with an interval
(:func:`hsreject.assess`). Here the truth is known: the diamonds. Of a hundred such intervals
some 95 contain it, while counted pixels can be far off.
"""

import matplotlib.pyplot as plt
import numpy as np

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)
model = hr.SceneClassifier(hr.SparseMultinomialRegression(), features=[hr.MNF(15)])
probability = model.fit(cube, train).predict_proba(cube)
on_reference = probability.where(test > 0)  # the map ends where the reference ends
maps = hr.PixelwiseRejector().reject(on_reference, fraction=0.1)

sample = hr.draw_sample(maps.label_with_rejection, 600, seed=0).with_reference(test)
assessment = hr.assess(maps.label_with_rejection, sample)

ax = hr.plot.AreaDisplay(assessment).plot()
truth = np.bincount(test.values.ravel())[1:]
ax.plot(truth, np.arange(truth.size), "D", color="#d55e00", markersize=3.5, zorder=1)
ax.set_title("diamonds: the truth", color="#d55e00", fontsize=8)
plt.show()
