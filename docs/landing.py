"""The pictures of the landing page: Indian Pines, its reject map, and what rejecting is worth."""

import matplotlib.pyplot as plt

import hsreject as hr

cube, labels = hr.load_indian_pines()
train, test = hr.sample_per_class(labels, 10, seed=0)
probability = hr.AutoClassifier().fit_predict_proba(cube, train)
rejector = hr.PixelwiseRejector()
maps = rejector.reject(probability, fraction=0.1)
curve = rejector.operating_points(probability, test)

with hr.plot.print_style():
    scene, land_cover, worth = (
        plt.figure(figsize=(3, 3), layout="constrained").add_subplot() for _ in range(3)
    )
    hr.plot.FalseColorDisplay.from_cube(cube).plot(scene)
    scene.set_title("a scene: Indian Pines")
    hr.plot.RejectMapDisplay.from_labels(maps.label_with_rejection).plot(land_cover, legend=False)
    land_cover.set_title("its map, a tenth rejected (black)")
    display = hr.plot.RejectionCurveDisplay.from_curves(curve, marked={})
    display.plot([worth], measures=["nonrejected_accuracy"], legend=False)
    worth.set(xlim=(0, 0.5), ylim=(0.9, 1), title="what rejecting is worth")
