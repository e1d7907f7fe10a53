"""What a run has finished is not done again for its model: counted by the calls of all fits."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import hsreject as hr
from hsreject.errors import FileError, InputError
from tests.cli.calling import call

SMALL: dict[str, Any] = {
    "title": "Small",
    "scene": {"name": "synthetic", "rows": 24, "columns": 24, "n_bands": 6, "noise": 0.3},
    "sampling": {"name": "per_class", "n_per_class": 6},
    "goal": {"accuracy": 0.9},
    "baselines": [],
}
PLAIN = {
    **SMALL,
    "features": [{"name": "pca", "n_components": 4}],
    "classifier": "lda",
    "context": {"prior": "vector_tv", "weight": [0.0, 0.5]},
}
AUTO = {**SMALL, "classifier": "auto", "context": {"prior": "auto", "weight": [0.0, 0.5]}}
FITTED = {
    LinearDiscriminantAnalysis: "fit",
    hr.SparseMultinomialRegression: "fit",
    hr.Pool: "fit",
    hr.PCA: "fit",
    hr.MNF: "fit",
    hr.Novelty: "_look",  # of both its fits
    hr.SegSALSA: "solve",
}


def counting(own: Callable[..., Any], name: str, counted: Counter[str]) -> Callable[..., Any]:
    """Return a method that is counted under a name."""

    def method(*given: Any, **options: Any) -> Any:
        counted[name] += 1
        return own(*given, **options)

    return method


@pytest.fixture
def counts(monkeypatch) -> Counter[str]:
    """Return how often each of the classes was fitted or solved since it was cleared."""
    counted: Counter[str] = Counter()
    for part, method in FITTED.items():
        monkeypatch.setattr(part, method, counting(getattr(part, method), part.__name__, counted))
    return counted


def run_stages(config: dict[str, Any], out: Path) -> None:
    """Run the stages alone, without the pictures."""

    def stop(stage: str, _done: float, _total: float | None) -> None:
        if stage == "writing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hr.run(config, out=out, progress=stop)


def same(one: hr.MapModel, other: hr.MapModel) -> bool:
    """Return whether two models say the same of themselves and of another scene."""
    cube, _ = hr.synthetic_scene(rows=24, columns=24, n_bands=6, noise=0.3)
    points = (model.operating_points for model in (one, other))
    scene = cube[:, 8:] * np.float32(1.01)
    maps = (hr.map_scene(scene, model, hr.Goal(fraction=0.1)).maps for model in (one, other))
    alike = one.configuration == other.configuration and one.rejector == other.rejector
    return alike and next(points).equals(next(points)) and next(maps).equals(next(maps))


def test_after_a_run_nothing_is_fitted_again(counts, tmp_path) -> None:
    hr.run(PLAIN, out=tmp_path / "out", model=tmp_path / "model.skops")
    assert counts["Novelty"] == 1
    counts.clear()
    trained = hr.train(PLAIN, out=tmp_path / "out")
    assert not counts
    afresh = hr.train(PLAIN)
    assert counts["LinearDiscriminantAnalysis"] == 1 + 5  # and each fold of the weights
    assert same(trained, afresh)
    assert same(hr.load_model(tmp_path / "model.skops"), afresh)
    counts.clear()
    hr.train({**PLAIN, "features": [{"name": "pca", "n_components": 3}]}, out=tmp_path / "out")
    assert counts["LinearDiscriminantAnalysis"] == 1 + 5


def test_of_a_pool_only_what_is_carried_is_fitted_after_its_run(counts, tmp_path) -> None:
    run_stages(AUTO, tmp_path / "out")
    assert (counts["MNF"], counts["Novelty"]) == (2, 1)  # the weights learn nothing anew
    counts.clear()
    trained = hr.train(AUTO, out=tmp_path / "out")
    assert set(counts) == {"Pool", "SparseMultinomialRegression", "SegSALSA"}
    counts.clear()
    once_more = hr.train(AUTO, out=tmp_path / "out")
    assert not counts
    afresh = hr.train(AUTO)
    assert same(trained, afresh)
    assert same(once_more, afresh)


def test_a_damaged_model_of_a_stage_is_fitted_again(tmp_path) -> None:
    run_stages(PLAIN, tmp_path / "out")
    (novelty,) = (tmp_path / "out" / "stages").glob("novelty-*.skops")
    novelty.write_bytes(novelty.read_bytes()[:200])
    (classifier,) = (tmp_path / "out" / "stages").glob("classifier-*.skops")
    classifier.unlink()
    assert same(hr.train(PLAIN, out=tmp_path / "out"), hr.train(PLAIN))


def test_a_model_that_cannot_be_kept_ends_before_the_work(tmp_path) -> None:
    (tmp_path / "there.skops").touch()
    with pytest.raises(FileError, match="already there"):
        hr.run(PLAIN, out=tmp_path / "out", model=tmp_path / "there.skops")
    with pytest.raises(FileError, match="not the folder of a run"):
        hr.train(PLAIN, out=tmp_path / "nowhere")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "nowhere").exists()


def test_a_run_needs_test_pixels_and_a_model_does_not() -> None:
    every = {**PLAIN, "sampling": lambda labels, seed: (labels, labels * 0)}
    with pytest.raises(InputError, match="no test pixel"):
        hr.run(every)
    assert not hr.train(every).calibration


def test_the_commands_keep_the_model(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "west.toml").write_text(
        'features = []\nclassifier = "lda"\n[scene]\nname = "synthetic"\nrows = 32\ncolumns = 32\n'
    )
    assert call("run", "west.toml", "--model", "run.skops") == 0
    assert "The model: run.skops" in capsys.readouterr().out
    stages = sorted((tmp_path / "out/west/stages").iterdir())
    assert call("train", "west.toml", "--model", "train.skops") == 0
    assert sorted((tmp_path / "out/west/stages").iterdir()) == stages  # it found them
    one, other = (hr.load_model(tmp_path / f"{name}.skops") for name in ("run", "train"))
    assert one.operating_points.equals(other.operating_points)
