"""The explorer: what the page carries, and what it shows in a real browser."""

import base64
import csv
import json
import time
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.image import imread
from scipy.ndimage import gaussian_filter

import hsreject as hr
from hsreject.evaluation.tables import area_table, class_accuracies
from tests.report.browser import Browser, driver

__all__ = ["driver"]  # a fixture

ODD_NAMES = ["</script><b>corn</b>", "soil & sand", '"><img src=x onerror=alert(1)>']
TYPES = {
    "Uint8Array": "u1",
    "Uint16Array": "<u2",
    "Int32Array": "<i4",
    "Float32Array": "<f4",
    "Float64Array": "<f8",
}


class Page(HTMLParser):
    """Text and tags of a page, and the JSON that it carries."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = self.json = ""
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.carried: dict[str, Any] = json.loads(self.json)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open.append((tag, dict(attrs)))

    def handle_data(self, data) -> None:
        tag, attributes = self._open[-1] if self._open else ("", {})
        if tag == "script" and attributes.get("id") == "payload":
            self.json += data
        elif tag not in {"script", "style"}:
            self.text += data


def unpacked(entry: dict[str, Any]) -> np.ndarray:
    """Undo the packing, as the page does."""
    array = np.frombuffer(zlib.decompress(base64.b64decode(entry["packed"])), TYPES[entry["type"]])
    if entry.get("steps"):
        return np.cumsum(array)
    if "planes" not in entry:
        return array
    return np.bitwise_xor.accumulate(array.reshape(entry["planes"], -1), axis=0)


def example(
    height: int = 40, width: int = 50, *, names: list[str] | None = None, seed: int = 0
) -> xr.Dataset:
    """Labels, confidences with ties, rows without data and a reference of a third of the pixels."""
    rng = np.random.default_rng(seed)
    field = np.stack([gaussian_filter(rng.standard_normal((height, width)), 3) for _ in range(3)])
    table = hr.ClassTable.from_names(names or ["corn", "soil", "woods"])
    truth = field.argmax(axis=0) + 1
    field += rng.normal(scale=0.03, size=field.shape)
    ordered = np.sort(field, axis=0)
    label = (field.argmax(axis=0) + 1).astype("uint8")
    confidence = np.round((ordered[-1] - ordered[-2]) * 40, 2).astype("float32")
    label[:2], confidence[:2] = 255, np.nan
    test = np.where(rng.random((height, width)) < 0.33, truth, 0).astype("uint8")
    return xr.Dataset(
        {
            "label": (("y", "x"), label, table.to_attrs()),
            "confidence": (("y", "x"), confidence),
            "reference": (("y", "x"), test),
        }
    )


def samples(maps: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Correctness and confidence of the reference pixels with data, by hand."""
    used = (maps.reference.values > 0) & (maps.label.values != 255)
    return (maps.label.values == maps.reference.values)[used], maps.confidence.values[used]


def test_every_operating_point_of_the_curve_is_there_exactly(tmp_path) -> None:
    maps = example()
    system = Page(hr.write_explorer(maps, tmp_path / "page.html")).carried["systems"][0]
    curve = hr.rejection_curve(*samples(maps))
    thresholds = np.append(unpacked(system["thresholds"]).astype(float), np.inf)
    place = np.searchsorted(thresholds, curve.threshold.values)
    np.testing.assert_array_equal(thresholds[place], curve.threshold.values)
    counts = {
        "an": "accurate_kept",
        "mn": "misclassified_kept",
        "ar": "accurate_rejected",
        "mr": "misclassified_rejected",
    }
    for short, name in counts.items():
        np.testing.assert_array_equal(unpacked(system[short])[place], curve[name].values)
    sure = maps.confidence.values[~np.isnan(maps.confidence.values)]
    assert system["pixels"] == sure.size
    n_rejected = [(sure < t).sum() for t in thresholds]
    np.testing.assert_array_equal(unpacked(system["nRejected"]), n_rejected)


def test_a_ranking_is_shown_as_its_maps(tmp_path) -> None:
    maps = example()
    ranking = hr.Ranking(maps["label"], maps["confidence"])
    reference = maps["reference"]
    pages = [
        Page(hr.write_explorer(one, tmp_path / f"{name}.html", reference=reference, title="a"))
        for name, one in (("maps", maps[["label", "confidence"]]), ("ranking", ranking))
    ]
    assert pages[0].carried["systems"] == pages[1].carried["systems"]
    named = hr.write_explorer({"one": ranking}, tmp_path / "named.html", reference=reference)
    assert Page(named).carried["systems"][0]["name"] == "one"


def test_winners_are_the_cheapest_operating_points(tmp_path) -> None:
    maps = example()
    system = Page(hr.write_explorer(maps, tmp_path / "page.html")).carried["systems"][0]
    curve = hr.rejection_curve(*samples(maps))
    thresholds = np.append(unpacked(system["thresholds"]).astype(float), np.inf)
    for cost in np.linspace(0, 1, 101):
        point = next(k for k, lowest in system["winners"] if cost >= lowest - 1e-12)
        assert thresholds[point] == hr.cheapest_operating_point(curve, cost).threshold


def test_maps_of_each_operating_point_are_carried_as_they_are(tmp_path) -> None:
    rng = np.random.default_rng(1)
    label = rng.integers(1, 4, (4, 6, 7)).astype("uint8")
    label[:, 0, 0] = 255
    rejected = rng.random((4, 6, 7)) < np.array([0, 0.6, 0.3, 1])[:, None, None]
    dims = ("operating_point", "y", "x")
    reference = rng.integers(0, 4, (6, 7))
    path = hr.write_explorer(
        {"joint": xr.Dataset({"label": (dims, label), "rejected": (dims, rejected)})},
        tmp_path / "page.html",
        reference=reference,
    )
    system = Page(path).carried["systems"][0]
    order = [0, 2, 1, 3]
    has_data = label[0] != 255
    np.testing.assert_array_equal(
        unpacked(system["labels"]).reshape(label.shape), np.where(has_data, label[order], 0)
    )
    np.testing.assert_array_equal(
        unpacked(system["nRejected"]), (rejected & has_data)[order].sum((1, 2))
    )
    used = has_data & (reference > 0)
    right = (label[order] == reference) & used & ~rejected[order]
    np.testing.assert_array_equal(unpacked(system["an"]), right.sum((1, 2)))
    for k, point in enumerate(order):
        clusters = hr.evaluate(reference, label[point], rejected=rejected[point]).clusters
        assert system["correlation"][k] == clusters.correlation
        assert unpacked(system["squares"])[k] == clusters.sum_of_squares(~rejected[point][used])


def test_the_result_of_a_run_is_shown_with_all_its_rejectors(tmp_path) -> None:
    one = example()
    table = one.label.attrs
    maps = xr.concat(
        [one[["label", "confidence"]]] * 2, dim=xr.Variable("rejector", ["ranked", "joint"])
    )
    maps = maps.assign(
        rejected=maps.confidence < 0.3,
        has_threshold=("rejector", [True, False]),
        test=one.reference.where(one.x > 9, 0),
        reference=one.reference,
    ).assign_attrs(title="A run", fraction=0.2)
    maps["label"].attrs.update(table)
    carried = Page(hr.write_explorer(maps, tmp_path / "page.html")).carried
    assert [s["name"] for s in carried["systems"]] == ["ranked", "joint"]
    assert [s["points"] for s in carried["systems"]][1] == 1  # the delivered map
    assert carried["title"] == "A run"
    assert carried["share"] == 0.2
    n_test = (maps.test.values > 0) & (one.label.values != 255)
    assert unpacked(carried["systems"][0]["truth"]).size == n_test.sum()


def test_joint_rejection_gives_the_maps_of_its_points(tmp_path) -> None:
    probability = np.full((3, 6, 8), 0.05)
    probability[0] = 0.9
    probability[:, :, 4:] = np.array([0.3, 0.3, 0.4])[:, None, None]
    reference = np.ones((6, 8), dtype=int)
    joint = hr.JointRejector(hr.SegSALSA(hr.VectorTV(weight=0.3)), n_points=4, store=tmp_path)
    points = joint.operating_points(probability, reference)
    maps = joint.sweep(probability, reference)
    kept_right = ((maps.label == 1) & ~maps.rejected).sum(("y", "x"))
    np.testing.assert_array_equal(kept_right, points.accurate_kept)
    np.testing.assert_array_equal(maps.rejected.mean(("y", "x")), points.rejected_fraction)


def test_names_with_markup_stay_text(tmp_path) -> None:
    path = hr.write_explorer(example(names=ODD_NAMES), tmp_path / "page.html", title="<i>A & B</i>")
    page = Page(path)
    assert page.carried["classes"] == ODD_NAMES
    assert ("b", {}) not in page.tags  # those of the page itself have attributes
    assert ("i", {}) not in page.tags
    for name in ODD_NAMES:
        assert name in page.text
    assert not [attrs for tag, attrs in page.tags if tag == "img" or "onerror" in attrs]
    assert sum(tag == "script" for tag, _ in page.tags) == 2


def test_nothing_is_fetched(tmp_path) -> None:
    page = Page(hr.write_explorer(example(), tmp_path / "page.html"))
    linked = [attrs[key] for _, attrs in page.tags for key in ("src", "href") if attrs.get(key)]
    assert all(link.startswith("data:") for link in linked)
    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'")


def test_the_script_stays_short() -> None:
    script = Path(hr.__file__).parent / "report" / "explorer.js"
    assert len(script.read_text(encoding="utf-8").splitlines()) < 360


def test_a_page_of_indian_pines_is_small(tmp_path) -> None:
    cube, labels = hr.load_indian_pines()
    rng = np.random.default_rng(0)
    maps = xr.Dataset(
        {"label": labels.where(labels > 0, 1).astype("uint8").assign_attrs(labels.attrs)}
    )
    one = maps.assign(confidence=labels.copy(data=rng.random(labels.shape, dtype="float32")))
    other = maps.assign(confidence=labels.copy(data=rng.random(labels.shape, dtype="float32")))
    path = hr.write_explorer(
        {"one": one, "other": other}, tmp_path / "page.html", reference=labels, scene=cube
    )
    assert path.stat().st_size < 600_000


def large(height: int, width: int) -> xr.Dataset:
    rng = np.random.default_rng(0)
    label = np.repeat(np.repeat(rng.integers(1, 9, (height // 20, width // 20)), 20, 0), 20, 1)
    confidence = rng.random((height, width), dtype="float32")
    reference = np.where(
        rng.random((height, width)) < 0.001, rng.integers(1, 9, (height, width)), 0
    )
    reference = np.where(confidence > 0.5, np.where(reference > 0, label, 0), reference)
    names = ("label", "confidence", "reference")
    arrays = (label.astype("uint8"), confidence, reference.astype("uint8"))
    return xr.Dataset(
        {name: (("y", "x"), array) for name, array in zip(names, arrays, strict=True)}
    )


def test_two_million_pixels_fit_into_8_mb(tmp_path) -> None:
    path = hr.write_explorer(large(2000, 1000), tmp_path / "page.html")
    assert path.stat().st_size < 8_000_000
    assert Page(path).carried["step"] == 1


def test_a_larger_scene_is_reduced_and_says_so(tmp_path) -> None:
    maps = large(2500, 2000)
    page = Page(hr.write_explorer(maps, tmp_path / "page.html"))
    system = page.carried["systems"][0]
    assert (page.carried["step"], page.carried["height"], page.carried["width"]) == (2, 1250, 1000)
    assert "2,500 x 2,000" in page.text
    # all reference pixels count, and the curve is exact though there are fewer ranks than values
    used = maps.reference.values > 0
    curve = hr.rejection_curve(
        (maps.label == maps.reference).values[used], maps.confidence.values[used]
    )
    thresholds = np.append(unpacked(system["thresholds"]).astype(float), np.inf)
    place = np.searchsorted(thresholds, curve.threshold.values)
    np.testing.assert_array_equal(thresholds[place], curve.threshold.values)
    np.testing.assert_array_equal(unpacked(system["an"])[place], curve.accurate_kept.values)


def test_of_a_large_map_without_reference_the_page_is_that_of_the_pixels_shown(tmp_path) -> None:
    maps = large(2500, 2000).drop_vars("reference")
    page = Page(hr.write_explorer(maps, tmp_path / "page.html"))
    assert (page.carried["step"], page.carried["height"], page.carried["width"]) == (2, 1250, 1000)
    assert "2,500 x 2,000" in page.text
    shown = maps.isel(y=slice(None, None, 2), x=slice(None, None, 2))
    other = Page(hr.write_explorer(shown, tmp_path / "shown.html"))
    for name in ("labels", "ranks"):
        assert page.carried["systems"][0][name] == other.carried["systems"][0][name]


def test_without_a_reference_nothing_is_said_of_accuracy(tmp_path) -> None:
    page = Page(hr.write_explorer(example().drop_vars("reference"), tmp_path / "page.html"))
    assert page.carried["test"] is None
    assert "outcome" not in page.carried["layers"]
    assert "are right" not in page.text


def changed(**arrays: Any) -> xr.Dataset:
    maps = example()
    return maps.assign({name: (("y", "x"), values) for name, values in arrays.items()})


SHAPE = (40, 50)


@pytest.mark.parametrize(
    ("given", "options", "word"),
    [
        (example().drop_vars("confidence"), {}, "confidence"),
        (example().drop_vars("label"), {}, "label"),
        (example().label, {}, "Dataset"),
        (changed(confidence=np.full(SHAPE, 0.5)), {}, "0.5 to 0.5"),
        (changed(confidence=np.where(np.eye(*SHAPE) > 0, np.inf, 0.5)), {}, "must be finite"),
        (changed(confidence=np.full(SHAPE, np.nan)), {}, "no pixel"),
        (changed(label=np.arange(2000).reshape(SHAPE) + 1), {}, "1903 classes"),
        (changed(label=np.full(SHAPE, 1.5)), {}, "integers"),
        (changed(label=np.zeros(SHAPE, dtype=int)), {}, "before rejection"),
        (changed(label=np.full(SHAPE, -3)), {}, "-3"),
        (example(), {"reference": np.ones((40, 49), dtype=int)}, "49 columns"),
        (example(), {"reference": np.zeros(SHAPE, dtype=int)}, "0 everywhere"),
        (example(), {"scene": xr.DataArray(np.ones((3, 9, 9)), dims=("band", "y", "x"))}, "9 rows"),
        ({"a": example(), "b": example(40, 52)}, {}, "52 columns"),
        (example(), {"fraction": 10}, "10 % as 0.1"),
        (example(), {"rejection_cost": 1.5}, "rejection_cost"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(given, options, word, tmp_path) -> None:
    with pytest.raises(hr.HsrejectError, match=word):
        hr.write_explorer(given, tmp_path / "page.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_page_is_kept(tmp_path) -> None:
    path = hr.write_explorer(example(), tmp_path / "page.html")
    with pytest.raises(hr.HsrejectError, match="already there"):
        hr.write_explorer(example(), path)
    assert hr.write_explorer(example(), path, overwrite=True) == path


# ---- In a browser


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> tuple[Path, xr.Dataset]:
    maps = example(names=ODD_NAMES)
    rng = np.random.default_rng(3)
    scene = xr.DataArray(
        gaussian_filter(rng.random((20, 40, 50)), 1).astype("float32"),
        dims=("band", "y", "x"),
        coords={"wavelength": ("band", np.linspace(450, 900, 20))},
    )
    other = maps.assign(confidence=maps.confidence + rng.normal(scale=0.4, size=maps.label.shape))
    path = tmp_path_factory.mktemp("page") / "page.html"
    systems = {"two": maps, "one": other}
    return hr.write_explorer(systems, path, scene=scene, certified=0.4), maps


def at_share(maps: xr.Dataset, share: float) -> float:
    """Return the threshold whose share of the map is nearest to the wanted one, by hand."""
    sure = np.sort(maps.confidence.values[~np.isnan(maps.confidence.values)])
    thresholds = [*np.unique(sure).tolist(), np.inf]
    n_rejected = np.searchsorted(sure, thresholds)
    nearest = np.argmin(np.abs(n_rejected - share * sure.size))  # halfway: rejects less
    return thresholds[int(nearest)]


def cell(browser: Browser, code: int, name: str) -> str:
    """Return what a row of the table of classes says, in full."""
    node = f"document.querySelector('tr[data-code=\"{code}\"] [data-name={name}0]')"
    return browser.run(f"return {node}.dataset.value")


def test_the_explorer_says_at_every_place_of_the_slider_what_a_report_says(driver, page) -> None:
    path, maps = page
    browser = Browser(driver, path)
    curve = hr.evaluate(maps.reference, maps.label, maps.confidence).curve
    has_data = ~np.isnan(maps.confidence.values)
    for share in (0, 0.1, 0.37, 0.9, 1):
        browser.slide("r", share)
        threshold = float(browser.text("threshold"))
        assert threshold == at_share(maps, share)
        rejected = maps.confidence < threshold
        report = hr.evaluate(maps.reference, maps.label, maps.confidence, rejected=rejected)
        point = report.shown.point
        assert browser.number("kept") == report.kept_share
        assert browser.number("refused") == point.rejected_fraction
        assert browser.number("before") == point.overall_accuracy
        np.testing.assert_equal(browser.number("accuracy"), point.nonrejected_accuracy)
        caught = point.misclassified_rejected / point.misclassified
        assert browser.number("caught") == caught
        ends = browser.number("low"), browser.number("high")
        np.testing.assert_allclose(ends, report.interval(report.shown), atol=1e-12)
        on_curve = curve.isel(operating_point=int(np.searchsorted(curve.threshold, threshold)))
        bounds = [on_curve[f"nonrejected_accuracy_{end}"].item() for end in ("lower", "upper")]
        np.testing.assert_allclose(ends, bounds, atol=1e-12)
        classes, areas = class_accuracies(report), area_table(report)
        for code, value in enumerate(report.classes.values, start=1):
            one, area = classes.sel(category=value), areas.sel(category=value)
            n_kept, n_gone = area.kept_pixels.item(), area.rejected_pixels.item()
            assert float(cell(browser, code, "kept")) == n_kept / (n_kept + n_gone)
            assert float(cell(browser, code, "all")) == (n_kept + n_gone) / has_data.sum()
            for name in ("user", "producer"):
                accuracy = one[f"{name}_accuracy"].item()
                np.testing.assert_equal(float(cell(browser, code, name)), accuracy)
                low, high = (100 * one[f"{name}_accuracy_{e}"].item() for e in ("lower", "upper"))
                wanted = "" if np.isnan(low) else f"{low:.1f} to {high:.1f}"
                assert cell(browser, code, f"{name}Span") == wanted
    assert browser.errors() == []


def test_the_dial_jumps_to_the_cheapest_point(driver, page) -> None:
    path, maps = page
    browser = Browser(driver, path)
    curve = hr.rejection_curve(*samples(maps))
    for cost in (0.05, 0.2, 0.33, 0.6):
        browser.slide("cost", cost)
        best = hr.cheapest_operating_point(curve, cost)
        assert float(browser.text("threshold")) == best.threshold
        assert browser.number("accuracy") == best.nonrejected_accuracy
        assert browser.number("refused") == best.rejected_fraction


def test_areas_scale_and_groups_are_those_of_the_report(driver, tmp_path) -> None:
    maps = example()
    place = {"y": 4e6 - 30 * np.arange(40) - 15, "x": 5e5 + 30 * np.arange(50) + 15}
    group = np.add.outer(np.arange(40) // 4 * 100, np.arange(50) // 4)
    maps = maps.assign_coords(place).rio.write_crs("EPSG:32633")
    maps = maps.assign(group=(("y", "x"), group))
    browser = Browser(driver, hr.write_explorer(maps, tmp_path / "page.html"))
    browser.slide("r", 0.3)
    rejected = maps.confidence < float(browser.text("threshold"))
    report = hr.evaluate(
        maps.reference, maps.label, maps.confidence, rejected=rejected, groups=maps["group"]
    )
    ends = browser.number("low"), browser.number("high")
    np.testing.assert_allclose(ends, report.interval(report.shown), atol=1e-12)
    areas = area_table(report)
    n_kept = (report.has_data & ~report.rejected).sum().item()
    assert areas.kept_hectares.sum().item() == pytest.approx(0.09 * n_kept)  # of 30 m x 30 m
    assert browser.text("hectares") == f"{0.09 * n_kept:.3g} ha"
    for code, value in enumerate(report.classes.values, start=1):
        wanted = f"{areas.kept_hectares.sel(category=value).item():.3g} ha"
        assert cell(browser, code, "area") == wanted
    # the bar is as long on the screen as it says
    bar, map_ = browser.box("#scale span"), browser.box("canvas")
    metres = float(browser.run("return document.querySelector('#scale span').innerText")[:-2])
    per_dot = 30 / min(map_["width"] / 50, map_["height"] / 40)
    assert bar["width"] * per_dot == pytest.approx(metres, rel=0.03)


def test_a_click_asks_about_a_pixel(driver, page) -> None:
    path, maps = page
    browser = Browser(driver, path)
    row, column = map(int, np.argwhere(maps.reference.values[5:] > 0)[40] + (5, 0))
    box = browser.box("canvas")
    scale = min(box["width"] / 50, box["height"] / 40)
    actions = pytest.importorskip("selenium.webdriver").ActionChains(driver)
    canvas = browser.run("return document.querySelector('canvas')")
    actions.move_to_element_with_offset(
        canvas, round((column + 0.5 - 25) * scale), round((row + 0.5 - 20) * scale)
    ).click().perform()
    browser.drawn()
    told = browser.run("return document.getElementById('pixel').innerText")
    assert f"row {row}, column {column}" in told
    assert ODD_NAMES[int(maps.label.values[row, column]) - 1] in told
    assert ODD_NAMES[int(maps.reference.values[row, column]) - 1] in told
    assert f"{float(maps.confidence.values[row, column]):.4g}" in told
    assert browser.errors() == []


def test_kept_pixels_have_the_color_of_their_class_and_rejected_ones_do_not(driver, page) -> None:
    path, maps = page
    browser = Browser(driver, path)
    browser.slide("r", 0.4)
    threshold = at_share(maps, 0.4)
    colors = hr.ClassTable.from_attrs(maps.label.attrs).colors
    box = browser.run("const c = document.querySelector('canvas'); return [c.width, c.height]")
    scale = min(box[0] / 50, box[1] / 40)
    for row, column in ((20, 25), (5, 5), (33, 40), (12, 30)):
        x, y = (box[0] / 2 + (column + 0.5 - 25) * scale, box[1] / 2 + (row + 0.5 - 20) * scale)
        found = browser.run(
            "return [...document.querySelector('canvas').getContext('2d')"
            ".getImageData(arguments[0], arguments[1], 1, 1).data].slice(0, 3)",
            int(x),
            int(y),
        )
        wanted = colors[maps.label.values[row, column] - 1]
        same = [int(wanted[i : i + 2], 16) for i in (1, 3, 5)] == found
        assert same == (maps.confidence.values[row, column] >= threshold)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1300])
def test_it_fits_phones_and_screens_by_day_and_night(driver, page, width, dark) -> None:
    browser = Browser(driver, page[0], "#beside=1&layer=outcome", width=width, dark=dark)
    browser.drawn()
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("return document.documentElement.dataset.theme") == (
        "dark" if dark else "light"
    )
    widths = browser.run(
        "return [...document.querySelectorAll('canvas')].map((c) => c.clientWidth)"
    )
    assert min(widths) > 0.35 * min(width, 800)
    for layer in ("labels", "confidence", "reference"):
        browser.choose("layer", layer)
    browser.choose("dark", int(not dark))
    assert browser.run("return document.documentElement.dataset.theme") == (
        "light" if dark else "dark"
    )
    assert browser.errors() == []


def test_two_systems_stand_side_by_side(driver, page) -> None:
    path, maps = page
    browser = Browser(driver, path)
    assert browser.run("return document.querySelectorAll('figure canvas')[1].clientWidth") == 0
    browser.choose("beside", 1)
    browser.slide("r", 0.25)
    assert browser.text("system0") == "two"
    assert browser.text("system1", 1) == "one"
    assert browser.number("kept", 1) == pytest.approx(0.75, abs=1e-3)
    assert browser.number("accuracy") > browser.number("accuracy", 1)
    browser.run("document.querySelector('[data-share]').click()")
    browser.drawn()
    assert float(browser.text("threshold")) == np.float32(0.4)
    sure = maps.confidence.values[~np.isnan(maps.confidence.values)]
    assert browser.number("kept") == (sure >= np.float32(0.4)).mean()


def test_a_link_holds_what_is_seen(driver, page) -> None:
    browser = Browser(driver, page[0], "#r=0.18&layer=confidence&zoom=3&x=10&y=12&only=2")
    browser.drawn()
    assert browser.number("kept") == pytest.approx(0.82, abs=2e-3)
    assert browser.run("return document.body.className") == "single zoomed confidence"
    browser.slide("cost", 0.25)
    link = browser.wait("return location.hash.includes('cost') && location.hash")
    threshold = browser.text("threshold")
    again = Browser(driver, page[0], link)
    again.drawn()
    assert again.text("threshold") == threshold
    assert again.errors() == []


def test_wheel_drag_and_keys_move_the_map(driver, page) -> None:
    browser = Browser(driver, page[0])
    actions = pytest.importorskip("selenium.webdriver").ActionChains(driver)
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    canvas = browser.run("return document.querySelector('canvas')")

    def place() -> list[float]:
        browser.drawn()
        return browser.run(
            "return ['zoom', 'x', 'y'].map((name) => +controls.elements[name].value)"
        )

    actions.click(canvas).send_keys("++").perform()
    zoom, x, y = place()
    assert (zoom, x, y) == (pytest.approx(1.96), 25, 20)
    actions.drag_and_drop_by_offset(canvas, 60, 0).perform()
    assert place()[1] < x
    actions.send_keys(keys.ARROW_DOWN).perform()
    assert place()[2] > y
    browser.run(
        "const turn = new WheelEvent('wheel', { deltaY: -300, cancelable: true });"
        "document.querySelector('canvas').dispatchEvent(turn)"
    )
    assert place()[0] > zoom
    actions.send_keys("0").perform()
    assert place() == [1, 25, 20]


def test_points_and_map_can_be_downloaded(driver, page, tmp_path) -> None:
    path, maps = page
    browser = Browser(driver, path)
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    browser.slide("r", 0.3)
    for button in ("csv", "png"):
        browser.run("document.getElementById(arguments[0]).click()", button)
    end = time.monotonic() + 20
    wanted = [tmp_path / "operating_points.csv", tmp_path / "two.png"]
    while not all(file.exists() for file in wanted) and time.monotonic() < end:
        time.sleep(0.05)
    with wanted[0].open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    curve = hr.rejection_curve(*samples(maps))
    found = {float(row["threshold"]): row for row in rows}
    for k in range(0, curve.sizes["operating_point"], 7):
        point = curve.isel(operating_point=k)
        row = found[point.threshold.item()]
        for name in ("rejected_fraction", "classification_quality", "accurate_kept"):
            assert float(row[name]) == point[name].item()
    np.testing.assert_array_equal(imread(wanted[1]), browser.pixels())


def test_a_page_without_reference_works(driver, tmp_path) -> None:
    maps = example()
    browser = Browser(
        driver, hr.write_explorer(maps.drop_vars("reference"), tmp_path / "page.html")
    )
    browser.slide("r", 0.5)
    assert browser.number("kept") == pytest.approx(0.5, abs=5e-3)
    assert browser.errors() == []


@pytest.mark.parametrize("way", [(1, 0), (0.6, 0.8)])
def test_two_fingers_zoom_about_the_place_between_them(driver, page, way) -> None:
    touch = pytest.importorskip("selenium.webdriver.common.actions.pointer_input").PointerInput
    builder = pytest.importorskip("selenium.webdriver.common.actions.action_builder").ActionBuilder
    browser = Browser(driver, page[0], width=390)
    box = browser.box("canvas")
    middle = np.array([box["x"] + 0.4 * box["width"], box["y"] + 0.5 * box["height"]])
    actions = builder(driver, duration=0)
    actions.devices = [touch("touch", "thumb"), touch("touch", "index")]
    for finger, side in zip(actions.devices, (-1, 1), strict=True):
        for apart in (30, 45, 60):
            x, y = (middle + side * apart * np.array(way)).round().astype(int).tolist()
            finger.create_pointer_move(duration=0 if apart == 30 else 20, x=x, y=y)
            if apart == 30:
                finger.create_pointer_down(button=0)
        finger.create_pointer_up(0)
    actions.perform()
    browser.drawn()
    zoom, x, y, pixel = browser.run(
        "return ['zoom', 'x', 'y', 'pixel'].map((name) => +controls.elements[name].value)"
    )
    assert zoom == pytest.approx(2, rel=0.05)
    assert pixel == -1  # it was not a click
    scale = min(box["width"] / 50, box["height"] / 40)
    seen = x + (middle[0] - box["x"] - box["width"] / 2) / (zoom * scale)
    assert seen == pytest.approx(25 - 0.1 * box["width"] / scale, abs=1 / scale)
    assert y == pytest.approx(20, abs=1 / scale)  # fingers lie on whole pixels of the screen
    assert browser.errors() == []


def test_opacity_lets_the_image_show_through(driver, page) -> None:
    browser = Browser(driver, page[0], "#r=0")
    layer = browser.pixels()
    browser.slide("opacity", 0)
    image = browser.pixels()
    browser.slide("opacity", 0.5)
    between = browser.pixels()
    seen = layer[..., 3] * image[..., 3] > 0.99
    assert seen.mean() > 0.3
    mixed = 0.5 * layer[seen] + 0.5 * image[seen]
    assert np.abs(layer - image)[seen].mean() > 0.1
    # the image is a little darker beneath a layer, and canvases round to 8 bits
    assert np.abs(between[seen] - mixed).max() < 0.2
    assert np.abs(between[seen] - mixed).mean() < 0.06


def test_a_drag_along_the_curve_moves_the_point(driver, page) -> None:
    path, maps = page
    browser = Browser(driver, path)
    actions = pytest.importorskip("selenium.webdriver").ActionChains(driver)
    browser.run("document.getElementById('curve').scrollIntoView()")
    curve, frame = (
        browser.run("return document.getElementById('curve')"),
        browser.run("return BOX"),
    )
    width = browser.box("#curve")["width"]

    def at(share: float) -> int:
        """Return how far right of the middle a share is rejected."""
        place = frame["left"] + share * (frame["right"] - frame["left"])
        return round((place / frame["width"] - 0.5) * width)

    (
        actions.move_to_element_with_offset(curve, at(0.1), 0)
        .click_and_hold()
        .move_to_element_with_offset(curve, at(0.4), 10)
        .move_to_element_with_offset(curve, at(0.7), -10)
        .release()
        .perform()
    )
    browser.drawn()
    assert browser.number("refused") == pytest.approx(0.7, abs=0.01)
    threshold, (_, sure) = float(browser.text("threshold")), samples(maps)
    assert browser.number("refused") == (sure < threshold).mean()
    drawn = browser.box("#now0 circle")
    middle = drawn["x"] + drawn["width"] / 2 - browser.box("#curve")["x"] - width / 2
    assert middle == pytest.approx(at(browser.number("refused")), abs=1)
    actions.move_to_element_with_offset(curve, at(0.2), 0).perform()  # not held: nothing moves
    browser.drawn()
    assert float(browser.text("threshold")) == threshold


def test_the_keyboard_does_all(driver, page) -> None:
    browser = Browser(driver, page[0])
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    actions = pytest.importorskip("selenium.webdriver").ActionChains(driver)
    before = browser.number("kept")
    browser.run("document.querySelector('#share').focus()")
    actions.send_keys(keys.ARROW_RIGHT * 3).perform()
    browser.drawn()
    assert browser.number("kept") < before
    browser.run("document.querySelector('[name=layer]:checked').focus()")
    actions.send_keys(keys.ARROW_RIGHT).perform()
    browser.drawn()
    assert browser.run("return document.body.className") == "single whole outcome"
    browser.run("document.querySelector('canvas').focus()")
    for key in (keys.ARROW_DOWN, keys.ARROW_DOWN, keys.ARROW_RIGHT):
        actions.key_down(keys.SHIFT).send_keys(key).key_up(keys.SHIFT)
    actions.perform()
    browser.drawn()
    assert "row 2, column 1" in browser.run("return document.getElementById('pixel').innerText")
    assert browser.errors() == []
