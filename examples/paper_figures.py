"""Figures 2 to 8 of the paper, drawn again from its formulas, its samples and Indian Pines.

    python examples/paper_figures.py 7 --out out

Each figure becomes a PNG, a PDF and a text: its caption, and what differs from the printed one and
why. Figures 6 to 8 learn from Indian Pines, which comes with hsreject.
"""

import argparse
import textwrap
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import hsreject as hr

CENTERS = np.array([[-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
CLASS_COLORS = ("#56b4e9", "#e69f00", "#117733", "#aa3377")  # safe for color-blind readers
JOINT, SEQUENTIAL = "SegSALSA-JCR", "SegSALSA-SCR"
N_COMPONENTS, WEIGHT, N_POINTS = 15, 2.0, 20


class PaperFigure(NamedTuple):
    """A drawing and what is to be said about it."""

    figure: Figure
    caption: str
    differences: str


# ------------------------------------------------------------------ the reference point of figure 2


def figure_2() -> PaperFigure:
    """Draw what outperforms a reference point whatever a rejection costs."""
    reference = hr.OperatingPoint.from_measures(
        nonrejected_accuracy=0.625, classification_quality=0.65, rejected_fraction=0.2, n=1.0
    )
    figure, axes = hr.plot.new_row(3, height=2.45)
    hr.plot.OperatingSetDisplay.from_point(reference).plot(axes)
    return PaperFigure(
        figure,
        "Operating set of a classifier that rejects 20 % of the samples with nonrejected accuracy "
        "0.625, classification quality 0.65 and rejection quality "
        f"{reference.rejection_quality:.2f} (black circle). Green: outperforms it for every "
        "rejection cost from 0 to 1 (border: beta = 1); orange: is outperformed (border: beta = "
        "-1); white: depends on the cost. Black line: beta = 0, as many right decisions as the "
        "reference.",
        "Grey marks what no rejection of this classifier reaches: its accuracy without rejection, "
        f"{reference.overall_accuracy:.3g}, limits how many accurate samples can be kept. The "
        "printed figure is not at hand, so the borders come from the formula of beta.",
    )


# ------------------------------------------------------------- four Gaussians: figures 3, 4 and 5


class FourGaussians(NamedTuple):
    """Samples of four unit Gaussians at (+-1, +-1), classified by nearest center (section V-A).

    The classes are equally likely and share the identity covariance, so the posteriors are known,
    p(k | s) proportional to exp(-|s - m_k|^2 / 2), and the nearest center is the Bayes label.
    Its accuracy is Phi(1)^2, about 0.708.
    """

    samples: np.ndarray  # (sample, 2)
    reference: np.ndarray  # class drawn from, 1 to 4
    label: np.ndarray  # class of the nearest center
    probability: np.ndarray  # (category, sample)


def draw_samples(n_per_class: int, seed: int = 0) -> FourGaussians:
    """Draw `n_per_class` samples of each class."""
    noise = np.random.default_rng(seed).standard_normal((len(CENTERS), n_per_class, 2))
    samples = (CENTERS[:, np.newaxis] + noise).reshape(-1, 2)
    distance = ((samples - CENTERS[:, np.newaxis]) ** 2).sum(axis=-1)  # squared, (center, sample)
    weight = np.exp(-(distance - distance.min(axis=0)) / 2)
    reference = np.repeat(np.arange(1, 5), n_per_class)
    return FourGaussians(
        samples, reference, distance.argmin(axis=0) + 1, weight / weight.sum(axis=0)
    )


def confidences(probability: np.ndarray) -> dict[str, np.ndarray]:
    """Return the confidence of each sample, for both rejectors of the synthetic problem."""
    ascending = np.sort(probability, axis=0)
    return {
        "maximum probability": ascending[-1],
        "breaking ties": ascending[-1] - ascending[-2],
    }


def synthetic_curves(n_per_class: int, seed: int = 0) -> dict[str, xr.Dataset]:
    """Return the curves of both rejectors on the four Gaussians."""
    problem = draw_samples(n_per_class, seed)
    correct = problem.label == problem.reference
    return {
        name: hr.rejection_curve(correct, confidence)
        for name, confidence in confidences(problem.probability).items()
    }


def figure_3(n_per_class: int = 1000, seed: int = 0) -> PaperFigure:
    """Draw the samples, their labels and what both rejectors reject of them."""
    problem = draw_samples(n_per_class, seed)
    figure, axes = hr.plot.new_row(4, height=hr.plot.PAGE_WIDTH / 4 + 0.28)
    with hr.plot.print_style():
        scatter(axes[0], problem.samples, problem.reference, "(a) true classes")
        scatter(axes[1], problem.samples, problem.label, "(b) nearest centre")
        for ax, letter, (name, confidence) in zip(
            axes[2:], "cd", confidences(problem.probability).items(), strict=True
        ):
            kept = np.where(confidence < np.quantile(confidence, 0.2), 0, problem.label)
            scatter(ax, problem.samples, kept, f"({letter}) {name}")
    accuracy = (problem.label == problem.reference).mean()
    return PaperFigure(
        figure,
        f"Four unit Gaussians at (±1, ±1), {problem.label.size} samples. (a) Class drawn from, (b) "
        f"nearest centre, accuracy {accuracy:.3f} (expected 0.708), (c) the same with 20 % "
        "rejected (black) by maximum probability and (d) by breaking ties. The rejectors differ "
        "near the origin, where all four classes are about equally likely, and far out along the "
        "axes, where only two compete.",
        "The paper does not give the number of samples or the random seed, so the samples are "
        f"others: {n_per_class} per class, seed {seed}. The class colours are safe for "
        "colour-blind readers.",
    )


def scatter(ax: Axes, samples: np.ndarray, classes: np.ndarray, title: str) -> None:
    """Draw samples in the colors of their classes, those of class 0 (rejected) in black."""
    colors = np.array(["#000000", *CLASS_COLORS])[classes]
    ax.scatter(samples[:, 0], samples[:, 1], c=colors, s=1.6, linewidths=0, rasterized=True)
    ax.set(xlim=(-4, 4), ylim=(-4, 4), aspect="equal", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
    ax.set_title(title, fontsize=8)


def figure_4(n_per_class: int = 10_000, seed: int = 0) -> PaperFigure:
    """Draw the three measures of both rejectors on the four Gaussians."""
    curves = synthetic_curves(n_per_class, seed)
    figure, axes = hr.plot.new_row(3, height=2.2)
    hr.plot.RejectionCurveDisplay.from_curves(curves).plot(axes)
    largest = [
        f"{best.classification_quality:.3f} at r = {best.rejected_fraction:.2f} ({name})"
        for name, best in largest_quality(curves).items()
    ]
    return PaperFigure(
        figure,
        f"Measures over the rejected fraction on {4 * n_per_class} samples of four Gaussians. "
        f"Marked: the largest classification quality, {' and '.join(largest)}. Maximum probability "
        "is the best rejector here, because the labels are right with exactly that probability.",
        "The paper does not give the number of samples or the random seed, so the curves agree "
        "up to sampling noise. The axis of the rejection quality is scaled to points with at least "
        "2 % rejected; before, a handful of samples decides it.",
    )


def figure_5(n_per_class: int = 10_000, seed: int = 0) -> PaperFigure:
    """Draw the relative optimality between all pairs of operating points."""
    curves = synthetic_curves(n_per_class, seed)
    figure, axes = hr.plot.new_row(2, height=3.0)
    best = []
    for ax, letter, (name, curve) in zip(axes, "ab", curves.items(), strict=True):
        display = hr.plot.RelativeOptimalityDisplay.from_curve(curve)
        display.plot(ax, colorbar=ax is axes[-1]).set_title(f"({letter}) {name}", fontsize=8)
        best.append(f"r = {display.best:.2f} ({name})")
    return PaperFigure(
        figure,
        "Relative optimality of the point that rejects r1 with respect to the point that rejects "
        f"r0, on {4 * n_per_class} samples of four Gaussians. The dashed line is the point of "
        f"largest classification quality, {' and '.join(best)}: it is nonnegative against all "
        "others.",
        "The paper does not give the number of samples or the random seed. The colours diverge "
        "from white at 0, where both points make equally many right decisions. On the diagonal, "
        "where the formula has no value, a point is compared with itself: 0.",
    )


def largest_quality(curves: dict[str, xr.Dataset]) -> dict[str, hr.OperatingPoint]:
    """Return the point of largest classification quality of each curve."""
    return {name: hr.choose_point(curve) for name, curve in curves.items()}


# ------------------------------------------------------------------ Indian Pines: figures 6, 7, 8


class Learned(NamedTuple):
    """Indian Pines up to the hidden field, and both rejectors that go on from there."""

    cube: xr.DataArray
    labels: xr.DataArray
    test: xr.DataArray  # labels that nothing has learned from
    evidence: xr.Dataset  # probability and hidden_field
    context: hr.SegSALSA


@cache
def learn(seed: int = 0) -> Learned:
    """Fit the regression to ten pixels per class and solve the context (section V-B)."""
    cube, labels = hr.load_indian_pines()
    train, test = hr.sample_per_class(labels, 10, seed=seed)
    model = hr.SceneClassifier(hr.SparseMultinomialRegression(), features=[hr.MNF(N_COMPONENTS)])
    probability = model.fit(cube, train).predict_proba(cube).compute()
    context = hr.SegSALSA(hr.VectorTV(WEIGHT))
    field = context.solve(probability).hidden_field
    return Learned(cube, labels, test, probability.to_dataset().assign(hidden_field=field), context)


def rejectors(context: hr.SegSALSA, n_points: int = N_POINTS) -> dict[str, hr.Rejector]:
    """Return both rejectors by the paper's names.

    Sequential rejection thresholds the hidden field; joint rejection solves it again with rejection
    as one more class, `n_points` times.
    """
    return {
        SEQUENTIAL: hr.SequentialRejector(context),
        JOINT: hr.JointRejector(context, n_points=n_points),
    }


@cache
def scene_curves(n_points: int, seed: int) -> dict[str, xr.Dataset]:
    """Return the operating points of both rejectors on the test pixels."""
    learned = learn(seed)
    return {
        name: rejector.operating_points(learned.evidence, learned.test)
        for name, rejector in rejectors(learned.context, n_points).items()
    }


def figure_6(seed: int = 0) -> PaperFigure:
    """Draw the scene, its reference and the reject maps of both rejectors."""
    learned = learn(seed)
    maps = {
        name: rejector.reject(learned.evidence, fraction=0.1)
        for name, rejector in rejectors(learned.context).items()
    }
    joint, sequential = (worth(name, maps[name], learned.test) for name in (JOINT, SEQUENTIAL))
    return PaperFigure(
        draw_maps(learned, maps),
        "Indian Pines. (a) Near infrared, red and green as red, green and blue; (b) the reference; "
        f"labels with context, rejected pixels black: (c) {joint}, and (d) {sequential}. "
        "Accuracies are those of the kept test pixels. Sequential rejection gives up the borders "
        "between fields, joint rejection whole regions.",
        f"The paper does not state the rejected fractions of its maps. {differences(seed)} The "
        "class colours are other ones.",
    )


def draw_maps(learned: Learned, maps: dict[str, xr.Dataset]) -> Figure:
    """Draw a picture of the scene, its reference and both reject maps."""
    figure = hr.plot.new_figure(hr.plot.PAGE_WIDTH, 5.4)
    with hr.plot.print_style():
        axes = figure.subplots(2, 2).ravel()
        infrared = hr.plot.FalseColorDisplay.from_cube(learned.cube, wavelengths=hr.plot.INFRARED)
        infrared.plot(axes[0])
        reference = hr.plot.ClassMapDisplay.from_labels(learned.labels)
        reference.plot(axes[1], legend=False)
        for ax, name in zip(axes[2:], (JOINT, SEQUENTIAL), strict=True):
            shown = hr.plot.RejectMapDisplay.from_labels(maps[name].label_with_rejection)
            shown.plot(ax, legend=False)
        titles = ("(a) false colour", "(b) reference", f"(c) {JOINT}", f"(d) {SEQUENTIAL}")
        for ax, title in zip(axes, titles, strict=True):
            ax.set_title(title, loc="left")
            ax.set_anchor("C")
        write_legend(figure, reference.classes)
    return figure


def worth(name: str, maps: xr.Dataset, test: xr.DataArray) -> str:
    """Say what a reject map is worth on the test pixels."""
    samples = hr.evaluation_samples(test, maps.label, rejected=maps.rejected)
    point = hr.operating_point(samples.correct, samples.rejected)
    return (
        f"{name}, {100 * maps.attrs['rejected_fraction']:.1f} % of the scene rejected, accuracy "
        f"{point.nonrejected_accuracy:.3f} (nothing rejected: {point.overall_accuracy:.3f})"
    )


def write_legend(figure: Figure, classes: hr.ClassTable) -> None:
    """Write one legend for all maps to their right."""
    entries = dict(zip(classes.names, classes.colors, strict=True))
    handles = [
        Patch(facecolor=color, edgecolor="0.4", linewidth=0.4, label=name)
        for name, color in (entries | {"no reference": "white", "rejected": "black"}).items()
    ]
    figure.legend(handles=handles, loc="outside right center", handlelength=1.3, handleheight=1.0)


def figure_7(n_points: int = N_POINTS, seed: int = 0) -> PaperFigure:
    """Draw the three measures of both rejectors on Indian Pines."""
    curves = scene_curves(n_points, seed)
    figure, axes = hr.plot.new_row(3, height=2.2)
    hr.plot.RejectionCurveDisplay.from_curves(curves, isolated=[JOINT]).plot(axes)
    said = [
        f"{name}: {best.classification_quality:.3f} at r = {best.rejected_fraction:.2f}, with A = "
        f"{float(hr.accuracy_at(curves[name], 0.1)[0]):.3f} at r = 0.1"
        for name, best in largest_quality(curves).items()
    ]
    n_test = int((learn(seed).test != 0).sum())
    return PaperFigure(
        figure,
        f"Measures over the rejected fraction on {n_test} test pixels of Indian Pines. Filled "
        f"symbols: the largest classification quality. {'. '.join(said)}. Each open symbol of "
        f"{JOINT} is a solve of its own with another probability of classifier failure; nothing is "
        "known between them.",
        f"{differences(seed)} The axis of the rejection quality is scaled to points with at least "
        "2 % rejected; before, a handful of pixels decides it.",
    )


def figure_8(n_points: int = N_POINTS, seed: int = 0) -> PaperFigure:
    """Draw relative optimality, and the cost from which on not rejecting is better."""
    curves = scene_curves(n_points, seed)
    figure = hr.plot.new_figure(hr.plot.PAGE_WIDTH, 5.4)
    with hr.plot.print_style():
        axes = figure.subplots(2, 2, height_ratios=(1.25, 1))
    best = []
    for (above, below), name, letters in zip(
        axes.T, (JOINT, SEQUENTIAL), ("ac", "bd"), strict=True
    ):
        display = hr.plot.RelativeOptimalityDisplay.from_curve(curves[name])
        display.plot(above, colorbar=name == SEQUENTIAL)
        above.set_title(f"({letters[0]}) {name}", fontsize=8)
        isolated = [JOINT] if name == JOINT else []
        costs = hr.plot.BreakEvenCostDisplay.from_curves({name: curves[name]}, isolated=isolated)
        costs.plot(below).set_title(f"({letters[1]}) {name}", fontsize=8)
        best.append(f"r = {display.best:.2f} ({name})")
    return PaperFigure(
        figure,
        "Indian Pines, on the test pixels. (a, b) Relative optimality of the point that rejects r1 "
        "with respect to the point that rejects r0; dashed: the point of largest classification "
        f"quality, {' and '.join(best)}. (c, d) For each rejected fraction the smallest cost of a "
        "rejection, an error costing 1, from which on it is better to reject nothing.",
        f"{differences(seed)} The operating points of {JOINT} are few, so its map (a) has large "
        "cells; its labels change from point to point, so all are compared with its own point "
        "that rejects nothing.",
    )


def differences(seed: int) -> str:
    """Say what differs from the paper in all three figures of the scene, and why."""
    return (
        f"The paper does not publish its training pixels: these are drawn with seed {seed}. Nor "
        f"does it state features and weights: these are {N_COMPONENTS} MNF components, a sparse "
        f"regression on radial basis functions and vector total variation of weight {WEIGHT:g}. "
        "Regression and hidden fields are solved until a certificate bounds the distance to the "
        "optimum, and the scene ends at its borders: the authors' published code stops after a "
        "fixed number of iterations and joins opposite borders. The hidden field saturates, so "
        "pixels that it holds equally sure are ordered by their class probability."
    )


# --------------------------------------------------------------------------- on the command line

MADE_BY = (figure_2, figure_3, figure_4, figure_5, figure_6, figure_7, figure_8)
FIGURES = dict(enumerate(MADE_BY, start=2))


def write(number: int, made: PaperFigure, folder: Path) -> str:
    """Write ``figure-N`` as .png, .pdf and .txt, and return the text."""
    paragraphs = (
        f"Figure {number}. {made.caption}",
        f"Differences from the paper. {made.differences}",
    )
    text = "\n\n".join(textwrap.fill(paragraph, 80) for paragraph in paragraphs) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    hr.plot.save_figure(made.figure, folder / f"figure-{number}", formats=("png", "pdf"))
    (folder / f"figure-{number}.txt").write_text(text, encoding="utf-8")
    return text


def main() -> None:
    """Draw the figures that the command line asks for."""
    parser = argparse.ArgumentParser(description="Draw figures of the paper again.")
    parser.add_argument("number", type=int, nargs="+", choices=FIGURES, help="2 to 8")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the files")
    wanted = parser.parse_args()
    for number in wanted.number:
        print(write(number, FIGURES[number](), wanted.out))


if __name__ == "__main__":
    main()
