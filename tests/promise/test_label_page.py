"""The labelling page in a real Chromium, clicked through as somebody who labels would."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import InputError
from hsreject.io.grid import Grid
from hsreject.promise.label_page import offered_map, write_label_page
from tests.promise.scenes import placed
from tests.report.browser import Browser, driver  # noqa: F401 (a fixture)


@pytest.fixture(scope="module")
def labelling(tmp_path_factory):
    """A page of twelve points, and the map that they were drawn from."""
    folder = tmp_path_factory.mktemp("page")
    cube, labels = hr.synthetic_scene()
    label = placed(labels.values % 3 + 1, names=("=corn", "bare soil", "water"))
    cube = Grid.of(label).attach(cube)
    sample = hr.draw_sample(label, 12, seed=3)
    page = write_label_page(sample, cube, folder / "label.html", medians=labels.values % 3 + 1)
    return page, sample, label, cube


def test_what_the_map_says_is_not_in_the_page(labelling, tmp_path) -> None:
    page, sample, _, cube = labelling
    text = page.read_text(encoding="utf-8")
    assert "map_label" not in text.partition('id="payload">')[2].partition("</script>")[0]
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    shown = write_label_page(sample, cube, tmp_path / "shown.html", show_label=True)
    payload = shown.read_text(encoding="utf-8").partition('id="payload">')[2].partition("</script>")
    assert "map_label" in json.loads(payload[0])["columns"]
    with pytest.raises(InputError, match="rows"):
        write_label_page(sample, cube[:, 1:], tmp_path / "other.html")


@pytest.mark.parametrize("name", ["page.txt", "page", "page.csv"])
def test_a_page_that_no_browser_would_open_is_refused(labelling, tmp_path, name) -> None:
    _, sample, _, cube = labelling
    with pytest.raises(InputError, match=r"\.html"):
        write_label_page(sample, cube, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_scene_of_another_place_is_refused(labelling, tmp_path) -> None:
    _, sample, label, cube = labelling
    elsewhere = cube.assign_coords(x=cube.x + 3000.0)
    with pytest.raises(InputError, match="grid"):
        write_label_page(sample, elsewhere, tmp_path / "elsewhere.html")
    nowhere = xr.DataArray(cube.values, dims=cube.dims)
    write_label_page(sample, nowhere, tmp_path / "nowhere.html")  # as many pixels as the map
    points = sample.write(tmp_path / "points.gpkg")
    assert Grid.of(offered_map(points, cube)).same_as(sample.grid)
    with pytest.raises(InputError, match=r"EPSG:32633.*--labels"):
        offered_map(points, nowhere)
    plain = hr.draw_sample(label.values, 5).write(tmp_path / "plain.gpkg")
    assert offered_map(plain, nowhere).shape == label.shape
    shifted = label.drop_vars("spatial_ref")  # a place in no reference system
    points = hr.draw_sample(shifted, 5).write(tmp_path / "shifted.gpkg")
    with pytest.raises(InputError, match="--labels"):
        offered_map(points, nowhere)


def in_another_browser(page: Path, copy: Path) -> Path:
    """Copy a page under a store of its own, where nobody has answered anything yet."""
    text = page.read_text(encoding="utf-8")
    assert text.count('"store":"') == 1
    copy.write_text(text.replace('"store":"', f'"store":"{copy}'), encoding="utf-8")
    return copy


@pytest.mark.parametrize(("width", "dark"), [(1300, False), (390, True)])
def test_clicking_through(driver, labelling, tmp_path, width, dark) -> None:  # noqa: F811
    page, sample, label, _ = labelling
    browser = Browser(driver, in_another_browser(page, tmp_path / "1.html"), width=width, dark=dark)
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    press = "document.querySelectorAll('#classes button')[arguments[0]].click()"
    for place in (0, 1, 2):
        browser.run(press, place)
    browser.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: '2'}))")
    browser.run("document.querySelector('#untold button').click()")
    browser.run("document.getElementById('name').value = 'road'")
    browser.run("document.querySelector('#other button').click()")
    browser.run("document.getElementById('back').click(); document.getElementById('back').click()")
    assert browser.run("return document.getElementById('answer').textContent") == "cannot tell"
    assert browser.run("return document.getElementById('done').textContent") == "6"
    drawn = browser.run(
        "return new Set(document.getElementById('near').getContext('2d')"
        ".getImageData(0, 0, 320, 320).data).size"
    )
    assert drawn > 10
    saved = browser.run("return csv()")
    (tmp_path / "label.csv").write_text(saved, encoding="utf-8", newline="")
    cells = [row["reference"] for row in csv.DictReader(saved.splitlines())]
    assert cells[:6] == ["'=corn", "bare soil", "water", "bare soil", "cannot tell", "road"]
    with pytest.warns(hr.HsrejectWarning, match="road"):
        back = hr.open_sample(tmp_path / "label.csv", label)
    np.testing.assert_array_equal(back.reference[:5], [1, 2, 3, 2, -1])
    assert back.design == sample.design
    # opened again, it goes on; so it does from the file in another browser
    # (Chromium may drop what a page of a file has just stored: it is put back before it begins)
    store, stored = browser.run("return [page.store, localStorage.getItem(page.store)]")
    assert json.loads(stored)[:7] == [
        "=corn",
        "bare soil",
        "water",
        "bare soil",
        "cannot tell",
        "road",
        "",
    ]
    put = f"try {{ localStorage.setItem({json.dumps(store)}, {json.dumps(stored)}) }} catch {{}}"
    script = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": put})
    browser = Browser(driver, tmp_path / "1.html", width=width, dark=dark)
    driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    assert browser.run("return document.getElementById('number').textContent") == "7"
    browser = Browser(driver, in_another_browser(page, tmp_path / "2.html"), width=width, dark=dark)
    assert browser.run("return document.getElementById('done').textContent") == "0"
    browser.run("goOn(arguments[0])", saved)
    assert browser.run("return document.getElementById('done').textContent") == "6"
    assert browser.run("return csv()") == saved
    assert browser.errors() == []
