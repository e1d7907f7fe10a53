"""
Figure 1: four counts say everything
====================================

A classifier splits its samples into right and wrong labels, a rejector splits the same samples
into kept and rejected. Together they make four parts: right or wrong, kept or rejected. Areas
are the counts of the paper's example, 100 samples of which 20 are rejected. Every measure is a
ratio of such areas: nonrejected accuracy is AN over all that is not hatched, classification
quality is AN and MR over everything.

:class:`hsreject.OperatingPoint` holds the four counts.
"""

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

import hsreject as hr

point = hr.OperatingPoint(50, 30, 5, 15)
right = point.overall_accuracy
floor_right = point.accurate_rejected / point.accurate
floor_wrong = point.misclassified_rejected / point.misclassified
parts = {  # left, right, bottom, top, count
    "AN": (0, right, floor_right, 1, point.accurate_kept),
    "AR": (0, right, 0, floor_right, point.accurate_rejected),
    "MN": (right, 1, floor_wrong, 1, point.misclassified_kept),
    "MR": (right, 1, 0, floor_wrong, point.misclassified_rejected),
}
colors = {"A": "#8ccfb5", "M": "#f0c169"}
box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85}

with hr.plot.print_style():
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.7), layout="constrained")
    both = axes[2]
    for ax in axes:
        for name, (left, end, bottom, top, count) in parts.items():
            color = "white" if ax is axes[1] else colors[name[0]]
            hatch = "////" if name.endswith("R") and ax is not axes[0] else None
            size = (end - left, top - bottom)
            look = {"facecolor": color, "edgecolor": "#777777", "hatch": hatch, "linewidth": 0}
            ax.add_patch(Rectangle((left, bottom), *size, **look))
            if ax is both:
                place = ((left + end) / 2, (bottom + top) / 2)
                ax.text(*place, f"{name} = {count:.0f}", ha="center", va="center", bbox=box)
        ax.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
    words = (
        (axes[0], right / 2, "right"),
        (axes[0], (1 + right) / 2, "wrong"),
        (axes[1], 0.5, "kept"),
    )
    for ax, x, word in words:
        ax.text(x, 0.65, word, ha="center", va="center", bbox=box)
    axes[1].text((1 + right) / 2, floor_wrong / 2, "rejected", ha="center", va="center", bbox=box)
    for ax, title in zip(axes, ("(a) classifier", "(b) rejector", "(c) both"), strict=True):
        ax.set_title(title)
plt.show()
