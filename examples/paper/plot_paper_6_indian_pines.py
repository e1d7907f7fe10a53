"""
Figure 6: rejecting borders or rejecting regions
================================================

Indian Pines, learned from ten pixels per class; both maps reject a tenth of the scene.
*Sequential* rejection (SegSALSA-SCR) smooths the map and then rejects its least certain pixels,
which lie along the borders of fields. *Joint* rejection (SegSALSA-JCR) makes rejection one more
class of the smoothing, so that whole regions are given up.

The paper does not publish its training pixels, features, weights and rejected fractions. Here
they are a random draw, 15 components and a weight of 2.
"""

import matplotlib.pyplot as plt

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)
model = hr.SceneClassifier(hr.SparseMultinomialRegression(), features=[hr.MNF(15)])
probability = model.fit(cube, train).predict_proba(cube)

context = hr.SegSALSA(hr.VectorTV(weight=2))
joint = hr.JointRejector(context).reject(probability, fraction=0.1)
sequential = hr.SequentialRejector(context).reject(probability, fraction=0.1)

with hr.plot.print_style():
    fig, axes = plt.subplots(1, 4, figsize=(10, 2.5), layout="compressed")
    hr.plot.FalseColorDisplay.from_cube(cube, wavelengths=hr.plot.INFRARED).plot(axes[0])
    hr.plot.ClassMapDisplay.from_labels(labels).plot(axes[1], legend=False)
    hr.plot.RejectMapDisplay.from_labels(joint.label_with_rejection).plot(axes[2], legend=False)
    hr.plot.RejectMapDisplay.from_labels(sequential.label_with_rejection).plot(axes[3])
    for ax, title in zip(axes, ("near infrared", "reference", "joint", "sequential"), strict=True):
        ax.set_title(title)
plt.show()
