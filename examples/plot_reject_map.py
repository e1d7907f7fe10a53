"""
A map that says where it does not know
======================================

Ten labelled pixels per class, and nothing is chosen by hand. A pool of classifiers is weighted
by cross-validation on the training pixels (:class:`hsreject.AutoClassifier`). SegSALSA lets
neighbours agree unless the image has an edge between them. The least certain tenth of the scene
stays without a label: black is "I do not know".
"""

import matplotlib.pyplot as plt

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)

probability = hr.AutoClassifier().fit_predict_proba(cube, train)
context = hr.SegSALSA(hr.VectorTV(weight=1, edges="image"))
field = context.solve(probability, image=cube).hidden_field
evidence = probability.to_dataset().assign(hidden_field=field)
maps = hr.SequentialRejector(context).reject(evidence, fraction=0.1)

with hr.plot.print_style():
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.16, 2.8), layout="compressed")
    hr.plot.FalseColorDisplay.from_cube(cube).plot(left).set_title("the scene")
    hr.plot.RejectMapDisplay.from_labels(maps.label_with_rejection).plot(right).set_title("the map")
plt.show()
