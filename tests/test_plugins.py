"""Plugins: parts of one's own file by name, in runs, training, models and maps."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from typer.testing import CliRunner

import hsreject as hr
from hsreject import plugins
from hsreject.cli import app
from hsreject.cli.evaluate_commands import show_evaluation
from hsreject.context.priors import PRIORS
from hsreject.errors import ConfigError, FileError, InputError
from hsreject.mapping import model_file
from hsreject.measures.point import MEASURES
from hsreject.pipeline.plan import make_plan

SOURCE = '''
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
import hsreject as hr
from hsreject.measures.point import share


class FirmTV(hr.VectorTV):
    """Vector TV of twice its weight."""

    def bind(self, grid):
        return hr.VectorTV(2 * self.weight).bind(grid)


class Discriminant(LinearDiscriminantAnalysis):
    """A discriminant of one's own."""


class Best(hr.PixelwiseRejector):
    """Pixelwise rejection by another name."""


class _Private(hr.VectorTV):
    """Not a part."""


@hr.add_measure("caught errors", "share of the errors that are rejected")
def caught_errors(counts):
    return share(counts.misclassified_rejected, counts.misclassified)
'''
CONFIG = {
    "scene": {"name": "synthetic", "rows": 24, "columns": 24, "n_bands": 6},
    "features": ["scale"],
    "classifier": "discriminant",
    "context": {"prior": "firm_tv", "weight": 0.5},
    "rejectors": ["best", "sequential"],
}


@pytest.fixture
def plugin(tmp_path):
    path = tmp_path / "my_parts.py"
    path.write_text(SOURCE)
    yield path
    plugins._forget("hsreject_plugin_my_parts")
    MEASURES.pop("caught_errors", None)


def test_a_run_names_the_parts_of_a_file(plugin) -> None:
    result = hr.run({**CONFIG, "plugins": [str(plugin)]})
    assert result.rejector.values.tolist() == ["best", "sequential"]
    curve = hr.rejection_curve([1, 0], [0.2, 0.1])
    assert "caught_errors" in curve
    display = hr.plot.RejectionCurveDisplay.from_curves({"mine": curve})
    assert display.plot(hr.plot.new_row(4)[1])[3].get_ylabel() == "caught errors"
    plugins._forget("hsreject_plugin_my_parts")
    with pytest.raises(ConfigError, match="Unknown"):
        make_plan(CONFIG)


def test_a_file_is_loaded_once_and_again_when_it_has_changed(plugin) -> None:
    parts = ["firm_tv", "best", "discriminant"]
    assert hr.load_plugins([plugin]) == parts
    first = PRIORS["firm_tv"]
    assert hr.load_plugins(str(plugin)) == parts
    assert PRIORS["firm_tv"] is first
    plugin.write_text(SOURCE.replace("class FirmTV", "class FirmerTV"))
    assert hr.load_plugins([plugin]) == ["firmer_tv", *parts[1:]]
    assert "firm_tv" not in PRIORS


def test_a_model_says_which_plugin_it_needs(plugin, tmp_path) -> None:
    model = hr.train({**CONFIG, "plugins": [str(plugin)]})
    path = hr.save_model(model, tmp_path / "model.skops")
    cube, _ = hr.synthetic_scene(rows=24, columns=24, n_bands=6, seed=1)
    wanted = model.classifier.predict_proba(cube)
    plugins._forget("hsreject_plugin_my_parts")
    with pytest.raises(FileError, match=r"plugin my_parts\.py.*--plugin"):
        hr.load_model(path)
    hr.load_plugins([plugin])
    again = hr.load_model(path)
    assert again.classifier.predict_proba(cube).identical(wanted)
    assert type(again.rejector.context.priors[0]).__name__ == "FirmTV"


def install(folder: Path) -> None:
    """Put a package with the plugin into a folder, as an installer would."""
    (folder / "their_package.py").write_text("print('imported')\n" + SOURCE)
    metadata = folder / "their_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[hsreject.plugins]\ntheirs = their_package\n")


@pytest.mark.parametrize("as_file", [True, False], ids=["opened with the file", "opened installed"])
def test_a_model_does_not_mind_how_its_plugin_is_given(
    plugin, tmp_path, monkeypatch, as_file
) -> None:
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    modules = {"theirs": "their_package", str(plugin): "hsreject_plugin_my_parts"}
    first, second = modules if as_file else reversed(modules)
    hr.load_plugins([first])
    cube, labels = hr.synthetic_scene(rows=24, columns=24, n_bands=6)
    model = hr.SceneClassifier("discriminant", features=["scale"]).fit(cube, labels)
    path = hr.save_model(model, tmp_path / "model.skops")
    plugins._forget(modules[first])
    with pytest.raises(FileError, match=r"needs the plugin (theirs|my_parts\.py)"):
        hr.load_model(path)
    hr.load_plugins([second])
    again = hr.load_model(path)
    assert again.predict_proba(cube).identical(model.predict_proba(cube))
    assert again.get_params()["classifier"] == "discriminant"
    assert modules[second] in {
        type(part).__module__ for part in model_file._all_parts(again, seen=set())
    }
    plugins._forget(modules[second])


def test_measures_of_a_plugin_stand_in_tables(plugin, tmp_path, capsys) -> None:
    hr.load_plugins([plugin])
    reference = np.array([[1, 1, 2, 2, 1, 2]])
    label = np.array([[1, 2, 2, 2, 1, 1]])
    confidence = np.array([[0.9, 0.2, 0.8, 0.7, 0.6, 0.5]])
    evaluation = hr.evaluate(reference, label, confidence)
    evaluation.write(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    table = page[page.index("operating point") :]
    assert table.index("caught errors") < table.index("</thead>")
    assert "caught errors: share of the errors that are rejected." in page
    show_evaluation(evaluation)
    words = capsys.readouterr().out.split()
    assert {"caught", "errors"} <= set(words)


def test_a_plugin_does_not_stand_in_for_classes_of_others(plugin, tmp_path) -> None:
    cube, labels = hr.synthetic_scene(rows=24, columns=24, n_bands=6)
    model = hr.SceneClassifier("lda", features=["scale"]).fit(cube, labels)
    path = hr.save_model(model, tmp_path / "model.skops")
    plugin.write_text(SOURCE.replace("Discriminant(L", "SceneClassifier(L"))
    hr.load_plugins([plugin])
    assert type(hr.load_model(path)) is hr.SceneClassifier


def test_mistakes_are_sentences(tmp_path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import hsreject\n1 / 0\n")
    unfinished = tmp_path / "unfinished.py"
    unfinished.write_text("import hsreject as hr\nclass Mine(hr.Prior): pass\n")
    for given, words in (
        (broken, "line 2, ZeroDivisionError"),
        (unfinished, "prior 'Mine' .* lacks bind"),
        (tmp_path / "nowhere.py", "cannot be read"),
        ("nowhere", "no plugin 'nowhere'"),
        (3, "file or a name"),
    ):
        with pytest.raises(ConfigError, match=words):
            hr.load_plugins([given])
    with pytest.raises(ConfigError, match="plugins must be a list"):
        make_plan({"scene": "synthetic", "plugins": "my_prior.py"})
    with pytest.raises(ConfigError, match="'accurate_kept'"):
        hr.add_measure("", "")(type("", (), {"__name__": "accurate_kept"})())


def test_an_installed_plugin_is_imported_only_when_asked_for(tmp_path) -> None:
    install(tmp_path)
    script = (
        "import hsreject as hr; from hsreject.plugins import plugin_of; "
        "print(plugin_of('their_package.FirmTV')); print(hr.load_plugins(['theirs']))"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines() == [
        "theirs",
        "imported",
        "['firm_tv', 'best', 'discriminant']",
    ]


def test_rejectors_may_be_a_list_of_objects() -> None:
    pair = [hr.PixelwiseRejector(), hr.PixelwiseRejector("margin")]
    plan = make_plan({"scene": "synthetic", "rejectors": pair})
    assert list(plan.rejectors) == ["PixelwiseRejector", "PixelwiseRejector 2"]
    with pytest.raises(ConfigError, match=r"\[\[rejectors\]\]"):  # as [rejectors.mine] is read
        make_plan({"scene": "synthetic", "rejectors": {"mine": {"name": "pixelwise"}}})


def test_what_is_not_a_classifier_is_told() -> None:
    with pytest.raises(ConfigError, match="int is not a classifier: it has no fit"):
        make_plan({"scene": "synthetic", "classifier": 5})


def test_a_scene_of_plain_arrays_and_the_class_of_a_classifier_are_told() -> None:
    cube, labels = hr.synthetic_scene(rows=24, columns=24, n_bands=6)
    for scene in ((cube.values, labels.values), (cube, labels.values), lambda: cube):
        with pytest.raises(ConfigError, match="two DataArrays"):
            hr.run({"scene": scene, "classifier": "lda"})
    with pytest.raises(InputError, match=r"pass LinearDiscriminantAnalysis\(...\)"):
        hr.SceneClassifier(LinearDiscriminantAnalysis).fit(cube, labels)


@pytest.mark.filterwarnings("ignore::hsreject.errors.GuessWarning")
def test_the_command_line_takes_plugins(plugin, tmp_path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        'features = ["scale"]\nclassifier = "discriminant"\ncontext = "firm_tv"\n'
        '[scene]\nname = "synthetic"\nrows = 24\ncolumns = 24\nn_bands = 6\n'
    )
    model, out = tmp_path / "model.skops", tmp_path / "maps"
    program = CliRunner()
    trained = program.invoke(
        app, ["train", str(config), "--model", str(model), "--plugin", str(plugin)]
    )
    assert trained.exit_code == 0, trained.output
    cube, _ = hr.synthetic_scene(rows=24, columns=24, n_bands=6)
    scene = tmp_path / "scene.npy"
    np.save(scene, cube.values)
    words = ["map", str(scene), "--model", str(model), "--out", str(out), "--fraction", "0.1"]
    words += ["--band-axis", "0"]
    plugins._forget("hsreject_plugin_my_parts")
    refused = program.invoke(app, words)
    assert refused.exit_code != 0
    mapped = program.invoke(app, [*words, "--plugin", str(plugin)])
    assert mapped.exit_code == 0, mapped.output
    assert list(Path(out).iterdir())
