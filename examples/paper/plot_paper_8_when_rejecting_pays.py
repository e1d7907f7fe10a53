"""
Figure 8: when rejecting pays
=============================

Joint and sequential rejection on Indian Pines, as in
:ref:`sphx_glr_gallery_paper_plot_paper_7_joint_and_sequential.py`. Left and middle, each operating
point against each other one: orange rows cost less than the column they are compared with, if a
rejection costs half an error. Where all points have the same labels (sequential), they also make
more right decisions; the points of joint rejection have labels of their own. Right, what a
rejection may cost: as long as it is cheaper than the line, an error costing 1, it is better to
reject that much than nothing.
"""

import matplotlib.pyplot as plt

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)
model = hr.SceneClassifier(hr.SparseMultinomialRegression(), features=[hr.MNF(15)])
probability = model.fit(cube, train).predict_proba(cube)

context = hr.SegSALSA(hr.VectorTV(weight=2))
rejectors = {
    "sequential": hr.SequentialRejector(context),
    "joint": hr.JointRejector(context, n_points=12),
}
curves = {name: r.operating_points(probability, test) for name, r in rejectors.items()}

with hr.plot.print_style():
    fig, axes = plt.subplots(1, 3, figsize=(9, 2.7), layout="constrained")
    for ax, (name, curve) in zip(axes, curves.items(), strict=False):
        pairs = hr.plot.RelativeOptimalityDisplay.from_curve(curve)
        pairs.plot(ax, colorbar=name == "joint").set_title(name)
    hr.plot.BreakEvenCostDisplay.from_curves(curves, isolated=["joint"]).plot(axes[2])
plt.show()
