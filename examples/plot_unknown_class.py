"""
A class missing from the training
=================================

One kind of grass of Indian Pines is left out of the training, as if nobody knew of it; white
lines show where it grows. Class probabilities hardly notice: they say which known class a pixel
resembles most, not whether it resembles any. The distance to the training pixels does
(:class:`hsreject.Novelty`), and rejectors look at both. AUC is the
chance that a pixel of the unknown class is rejected before one of a known class; 0.5 is chance.
"""

import matplotlib.pyplot as plt
from sklearn.metrics import RocCurveDisplay

import hsreject as hr

cube, labels = hr.load_indian_pines()
unknown = labels == 6  # grass and trees
train, test = hr.sample_per_class(labels.where(~unknown, 0).astype(labels.dtype), 10, seed=0)

model = hr.SceneClassifier(hr.SparseMultinomialRegression(), features=[hr.MNF(30), hr.Smooth(2)])
evidence = model.fit_predict_proba(cube, train).to_dataset()
evidence["p_value"] = hr.Novelty().fit_p_value(cube, train)

rejectors = {
    "probabilities": hr.PixelwiseRejector(novelty=False),
    "with novelty": hr.PixelwiseRejector(),
}
judged = (unknown | (test > 0)).values
with hr.plot.print_style():
    fig, (left, right) = plt.subplots(1, 2, figsize=(6.4, 2.9), layout="compressed")
    for name, rejector in rejectors.items():
        ranking = rejector.rank(evidence)
        scores = ranking.scores()  # what is unknown comes first
        RocCurveDisplay.from_predictions(
            unknown.values[judged], -scores[judged], name=name, ax=right
        )
    quarter = hr.decide(ranking, hr.Goal(fraction=0.25)).threshold
    hr.plot.RejectMapDisplay.from_labels(ranking.answers(quarter)).plot(left, legend=False)
    left.contour(labels.x, labels.y, unknown, levels=[0.5], colors="white", linewidths=1.2)
    left.set_title("a quarter rejected, with novelty")
    right.set(xlabel="rejected share of known classes", ylabel="rejected share of the unknown one")
plt.show()
