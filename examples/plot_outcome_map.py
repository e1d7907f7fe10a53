"""
Which rejections were right
===========================

Where the truth is known, every pixel has one of four outcomes: accurate or misclassified, kept or
rejected. A good rejector leaves green (right and kept) and black (wrong and rejected). Orange
is an error that slipped through, blue a right label lost. Here a fifth of Indian Pines is rejected.
Most errors that are kept are whole fields, mistaken for another crop with high confidence: no
rejector finds errors of which its classifier is certain.
"""

import matplotlib.pyplot as plt

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)
model = hr.SceneClassifier(hr.SparseMultinomialRegression(), features=[hr.MNF(15)])
probability = model.fit(cube, train).predict_proba(cube)
maps = hr.SequentialRejector(hr.SegSALSA(hr.VectorTV(weight=2))).reject(probability, fraction=0.2)

with hr.plot.print_style():
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.16, 2.8), layout="compressed")
    hr.plot.RejectMapDisplay.from_labels(maps.label_with_rejection).plot(left, legend=False)
    hr.plot.OutcomeMapDisplay.from_maps(maps.label, test, maps.rejected).plot(right)
    left.set_title("the map, rejected pixels black")
    right.set_title("was it right?")
plt.show()
