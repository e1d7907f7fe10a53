"""The picture of the landing page: Indian Pines, its reject map, and what the rejection is worth."""

import matplotlib.pyplot as plt

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)
probability = hr.AutoClassifier().fit(cube, train).predict_proba(cube)
rejector = hr.PixelwiseRejector()
maps = rejector.reject(probability, fraction=0.1)
curve = rejector.operating_points(probability, test)

with hr.plot.print_style():
    figure, (scene, land_cover, worth) = plt.subplots(
        1, 3, figsize=(9, 3), layout="constrained", width_ratios=(1, 1, 1.25)
    )
hr.plot.FalseColorDisplay.from_cube(cube).plot(scene).set_title("the scene")
hr.plot.RejectMapDisplay.from_labels(maps.label_with_rejection).plot(land_cover, legend=False)
land_cover.set_title("the map, a tenth rejected (black)")
display = hr.plot.RejectionCurveDisplay.from_curves(curve, marked={})
display.plot([worth], measures=["nonrejected_accuracy"], legend=False)
worth.set(xlim=(0, 0.5), ylim=(0.9, 1), title="accuracy of what is kept")
