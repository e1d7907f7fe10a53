"""
Coarser instead of nothing
==========================

Corn whose tillage is unclear need not be rejected: with groups of classes a map answers with the
finest node whose probability reaches a threshold (:class:`hsreject.HierarchicalRejector`). Left:
more of the map is kept at the same accuracy. Right: a group tells less than a class, so the maps
are compared by the information they give, in which a rejected pixel counts as 0 bits.
"""

import matplotlib.pyplot as plt
import numpy as np

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)
model = hr.SceneClassifier(hr.SparseMultinomialRegression(), features=[hr.MNF(15)])
probability = model.fit(cube, train).predict_proba(cube)

groups = {
    "corn": ["Corn-notill", "Corn-mintill", "Corn"],
    "soybean": ["Soybean-notill", "Soybean-mintill", "Soybean-clean"],
    "grass": ["Grass-pasture", "Grass-trees", "Grass-pasture-mowed"],
    "row crops": ["corn", "soybean"],
}
flat = hr.PixelwiseRejector().operating_points(probability, test)
coarse = hr.HierarchicalRejector(groups).operating_points(probability, test)
bits = {"classes or nothing": (1 - flat.rejected_fraction) * np.log2(16)}
bits["classes, groups or nothing"] = coarse.information

with hr.plot.print_style():
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(7.16, 2.8), sharey=True, layout="constrained"
    )
    for (name, information), curve in zip(bits.items(), (flat, coarse), strict=True):
        left.plot(1 - curve.rejected_fraction, curve.nonrejected_accuracy, label=name)
        right.plot(information, curve.nonrejected_accuracy, label=name)
    left.set(xlabel="share of pixels kept", ylabel="accuracy of what is kept")
    right.set(xlabel="information, bits per pixel")
    left.legend()
plt.show()
