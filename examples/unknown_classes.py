r"""How well classes that were never trained on are rejected, and what that costs on known ones.

    python examples/unknown_classes.py --hold-out 14 --hold-out 10,11

Classes are held out of the training, and the area under the ROC curve (AUROC) is measured: the
probability that a pixel of a held-out class is rejected before a test pixel of a known class. 0.5
is chance. It is measured for pixelwise, sequential and, with --joint, joint rejection, each without
and with novelty, and for the distance to the training pixels alone. What novelty costs is measured
with nothing held out: the accuracy of the kept pixels. Without --scene it takes Indian Pines, which
comes with hsreject. Joint rejection was judged on draws that it was not designed on:

    python examples/unknown_classes.py --auto --joint --first-seed 4 --n-seeds 8 --hold-out 14 \
        --hold-out 2
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray as xr
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import auc, roc_auc_score

import hsreject as hr

INDIAN_PINES_HOLD_OUTS = ((14,), (10, 11), (2,), (5, 6), (8,), (11,))
FEATURES = (hr.MNF(30), hr.Smooth(2.0))
REGRESSION = hr.SparseMultinomialRegression(sparsity=0.01, kernel="rbf")
CONTEXT = hr.SegSALSA(hr.VectorTV(weight=2.0))
AUTO_CONTEXT = hr.SegSALSA(hr.VectorTV(weight=1.0, edges="image"))
JOINT_POINTS = 12  # solves of a sweep
REJECTED_FRACTION = 0.1  # at which accuracies are compared


def hold_out_classes(  # noqa: PLR0913 (all but two are options)
    cube: xr.DataArray,
    labels: xr.DataArray,
    hold_outs: Sequence[Sequence[int]] | None = None,
    *,
    n_per_class: int = 10,
    seeds: Sequence[int] = range(5),
    features: Sequence[hr.SceneTransformer] = FEATURES,
    classifier: BaseEstimator = REGRESSION,
    context: hr.SegSALSA = CONTEXT,
    joint: bool = False,
) -> xr.Dataset:
    """Return AUROC for each set of classes held out, and the accuracy with nothing held out.

    Parameters
    ----------
    cube, labels : DataArray, dims (band, y, x) and (y, x)
        The scene and its reference, 0 where there is none.
    hold_outs : sequence of sequences of int, optional
        Label values that are unknown together; by default each class by itself.
    n_per_class : int
        Training pixels per class.
    seeds : sequence of int
        Of the draws of them.
    features : sequence of scene transformers
        What is done to the cube first.
    classifier : scikit-learn classifier, or one of scenes
        Novelty is measured in the features that it looks at.
    context : SegSALSA
        Of sequential and joint rejection.
    joint : bool
        Whether to measure joint rejection, too, which takes much longer.

    Returns
    -------
    Dataset
        `auroc` (hold_out, seed, rejector, with_novelty), `novelty_auroc` (hold_out, seed),
        `accuracy` (seed, rejector, with_novelty) and `n_unknown` (hold_out): pixels held out.
    """
    # pixels without data are neither known nor unknown
    labels = labels.where(cube.notnull().all("band"), 0).astype(labels.dtype)
    hold_outs = checked(hold_outs, labels)
    for transformer in features:
        cube = transformer.fit_transform(cube)
    rejectors = {"pixelwise": hr.PixelwiseRejector(), "sequential": hr.SequentialRejector(context)}
    if joint:
        rejectors["joint"] = hr.JointRejector(context, n_points=JOINT_POINTS)

    def draws(hold: Sequence[int]) -> Iterator[tuple[xr.Dataset, xr.DataArray]]:
        """Yield, per seed, the maps of what was learned without `hold`, and the test labels."""
        known = labels.where(~labels.isin(hold), 0).astype(labels.dtype)
        for seed in seeds:
            training, test = hr.sample_per_class(known, n_per_class, seed=seed)
            yield learn(cube, training, classifier, context), test

    separations = []
    for hold in hold_outs:
        unknown = labels.isin(hold)
        rows = [separation(rejectors, maps, test, unknown) for maps, test in draws(hold)]
        separations.append(xr.concat(rows, "seed"))
    accuracies = [kept_accuracy(rejectors, maps, test) for maps, test in draws(())]
    return xr.concat(separations, "hold_out").assign(
        accuracy=xr.concat(accuracies, "seed"),
        n_unknown=("hold_out", [int(labels.isin(hold).sum()) for hold in hold_outs]),
        hold_out=[", ".join(map(str, hold)) for hold in hold_outs],
    )


def checked(
    hold_outs: Sequence[Sequence[int]] | None, labels: xr.DataArray
) -> Sequence[Sequence[int]]:
    """Return the classes to hold out, or say why a set of them cannot be."""
    present = set(np.unique(labels.values).tolist()) - {0}
    for hold in hold_outs or ():
        if not set(hold) <= present or not hold or len(present - set(hold)) < 2:
            raise hr.errors.InputError(
                f"Classes {list(hold)} cannot be held out of {sorted(present)}: they must occur "
                "there, at pixels with data, and leave two classes to train on."
            )
    return hold_outs or [(value,) for value in sorted(present)]


def learn(
    cube: xr.DataArray, training: xr.DataArray, classifier: BaseEstimator, context: hr.SegSALSA
) -> xr.Dataset:
    """Return class probabilities, the hidden field and how well pixels fit what was learned."""
    of_scenes = hasattr(classifier, "fit_predict_proba")
    model = clone(classifier) if of_scenes else hr.SceneClassifier(classifier)
    probability = model.fit_predict_proba(cube, training).compute()
    features = model.transform(cube)
    novelty = hr.Novelty().fit(features, training)
    return xr.Dataset(
        {
            "probability": probability,
            "hidden_field": context.solve(probability, image=cube).hidden_field,
            "class_p_value": novelty.p_value(features),
            "rarity": novelty.rarity(features),
            "image": cube,
        }
    )


def separation(
    rejectors: Mapping[str, hr.Rejector],
    maps: xr.Dataset,
    test: xr.DataArray,
    unknown: xr.DataArray,
) -> xr.Dataset:
    """Return how well rejectors, and novelty alone, tell unknown from known pixels."""
    known = test.values != 0

    def auroc(rejector: hr.Rejector) -> float:
        if isinstance(rejector, hr.RankedRejector):
            return told_apart(rejector.rank(maps).confidence.values, known, unknown.values)
        judged = (known | unknown.values).astype(np.uint8)
        rejected = rejector.maps_at_points(maps, judged).rejected.values
        return auc(*np.sort([rejected[:, known].mean(axis=1), rejected[:, unknown].mean(axis=1)]))

    return xr.Dataset(
        {
            "auroc": compared(rejectors, auroc),
            "novelty_auroc": told_apart(maps.rarity.values, known, unknown.values),
        }
    )


def told_apart(confidence: np.ndarray, known: np.ndarray, unknown: np.ndarray) -> float:
    """Return the probability that an unknown pixel has a lower confidence than a known one."""
    judged = (known | unknown) & ~np.isnan(confidence)
    return float(roc_auc_score(unknown[judged], -confidence[judged]))


def kept_accuracy(
    rejectors: Mapping[str, hr.Rejector], maps: xr.Dataset, test: xr.DataArray
) -> xr.DataArray:
    """Return the accuracy of the pixels that each rejector keeps."""
    return compared(
        rejectors,
        lambda rejector: hr.accuracy_at(
            rejector.operating_points(maps, test), REJECTED_FRACTION
        ).item(),
    )


def compared(
    rejectors: Mapping[str, hr.Rejector], number: Callable[[hr.Rejector], float]
) -> xr.DataArray:
    """Return a number about each rejector, first without and then with novelty."""
    return xr.DataArray(
        [
            [number(replace(rejector, novelty=novelty)) for novelty in (False, True)]
            for rejector in rejectors.values()
        ],
        coords={"rejector": list(rejectors), "with_novelty": [False, True]},
    )


def show(result: xr.Dataset) -> None:
    """Print the AUROC of every hold-out, and the accuracy with nothing unknown."""
    table = result.auroc.mean("seed").stack(column=("rejector", "with_novelty")).to_pandas()
    table.columns = ["+ novelty" if with_novelty else name for name, with_novelty in table.columns]
    table["novelty alone"] = result.novelty_auroc.mean("seed").values
    table.loc["mean"] = table.mean()
    table.insert(0, "pixels", [*map(str, result.n_unknown.values), ""])
    print("AUROC of unknown against known pixels")
    print(table.rename_axis(None).to_string(float_format="{:.3f}".format))
    print(f"\nAccuracy of the kept pixels, {REJECTED_FRACTION:.0%} rejected, nothing unknown")
    for name in result.rejector.values:
        without, aware = 100 * result.accuracy.sel(rejector=name).mean("seed").values
        difference = 100 * result.accuracy.sel(rejector=name).diff("with_novelty").values.ravel()
        error = difference.std(ddof=1) / len(difference) ** 0.5 if len(difference) > 1 else np.nan
        print(
            f"{name:<11} {without:.2f} %, with novelty {aware:.2f} % "
            f"({aware - without:+.2f}, standard error {error:.2f})"
        )


# --------------------------------------------------------------------------- on the command line


def make_parser() -> argparse.ArgumentParser:
    """Return the options of this script."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scene", type=Path, help="a scene; Indian Pines unless given")
    parser.add_argument("--labels", type=Path, help="its reference labels")
    parser.add_argument(
        "--hold-out", action="append", type=label_values, help="such as 10,11; repeatable"
    )
    parser.add_argument("--n-per-class", type=int, default=10, help="training pixels per class")
    parser.add_argument("--n-seeds", type=int, default=5, help="draws of the training pixels")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--n-components", type=int, default=30, help="MNF components")
    parser.add_argument("--auto", action="store_true", help="the automatic classifier instead")
    parser.add_argument("--joint", action="store_true", help="joint rejection, too")
    parser.add_argument("--out", type=Path, help="write the table to this file, .nc")
    return parser


def label_values(text: str) -> list[int]:
    """Return label values that are written with commas between them."""
    return [int(value) for value in text.split(",")]


def main() -> None:
    """Run what the command line asks for."""
    parser = make_parser()
    options = parser.parse_args()
    if (options.scene is None) != (options.labels is None):
        parser.error("give --scene and --labels together, or neither for Indian Pines")
    hold_outs = options.hold_out
    try:
        if options.scene is None:
            cube, labels = hr.load_indian_pines()
            hold_outs = hold_outs or INDIAN_PINES_HOLD_OUTS
        else:
            cube = hr.open_scene(options.scene)
            labels = hr.open_labels(options.labels, like=cube)
        result = hold_out_classes(
            cube,
            labels,
            hold_outs,
            n_per_class=options.n_per_class,
            seeds=range(options.first_seed, options.first_seed + options.n_seeds),
            features=() if options.auto else (hr.MNF(options.n_components), hr.Smooth(2.0)),
            classifier=hr.AutoClassifier() if options.auto else REGRESSION,
            context=AUTO_CONTEXT if options.auto else CONTEXT,
            joint=options.joint,
        )
        show(result)
        if options.out is not None:
            hr.write_dataset(result, options.out)
    except hr.HsrejectError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
