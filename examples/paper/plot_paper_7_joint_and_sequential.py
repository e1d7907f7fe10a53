"""
Figure 7: joint beside sequential rejection
===========================================

The measures of both rejectors of :ref:`sphx_glr_gallery_paper_plot_paper_6_indian_pines.py` on the
test pixels. Sequential rejection sorts one map and has every operating point. Each open symbol
of joint rejection is a problem of its own, solved for another probability that the classifier
fails; between them nothing is known. Filled symbols mark the least cost where a rejection costs
half an error: of sequential rejection, whose points have the same labels, the largest Q.
On this draw the joint rule of the paper mostly keeps less accuracy than the sequential one.
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
hr.plot.RejectionCurveDisplay.from_curves(curves, isolated=["joint"]).plot()
plt.show()
