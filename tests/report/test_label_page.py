"""The labelling page in a real Chromium, clicked through as somebody who labels would."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import InputError
from hsreject.io.grid import PixelGrid
from hsreject.report.label_page import offered_map, write_label_page
from tests.certification.scenes import placed
from tests.report.browser import Browser, driver  # noqa: F401 (a fixture)


@pytest.fixture(scope="module")
def labelling(tmp_path_factory):
    """A page of twelve points, and the map that they were drawn from."""
    folder = tmp_path_factory.mktemp("page")
    cube, labels = hr.synthetic_scene()
    label = placed(labels.values % 3 + 1, names=("=corn", "bare soil", "water"))
    cube = PixelGrid.of(label).attach(cube)
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
    assert PixelGrid.of(offered_map(points, cube)).same_as(sample.grid)
    with pytest.raises(InputError, match=r"EPSG:32633.*--labels"):
        offered_map(points, nowhere)
    plain = hr.draw_sample(label.values, 5).write(tmp_path / "plain.gpkg")
    assert offered_map(plain, nowhere).shape == label.shape
    shifted = label.drop_vars("spatial_ref")  # a place in no reference system
    points = hr.draw_sample(shifted, 5).write(tmp_path / "shifted.gpkg")
    with pytest.raises(InputError, match="--labels"):
        offered_map(points, nowhere)


def opened(driver, page: Path, kept: dict[str, str] | None = None, **look) -> Browser:  # noqa: F811
    """Open a page in a browser that has kept what another page of the same browser left there.

    Chromium may drop what the page of a file has just stored: it is put back before it begins.
    """
    put = f"Object.assign(localStorage, {json.dumps(kept or {})})"
    source = {"source": f"try {{ localStorage.clear(); {put} }} catch {{}}"}
    script = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", source)
    browser = Browser(driver, page, **look)
    driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    return browser


def kept_by(browser: Browser) -> dict[str, str]:
    return browser.run("return {...localStorage}")


def answers_on(browser: Browser) -> dict[int, str]:
    """Return what the page would save, by the number of the point."""
    rows = csv.DictReader(browser.run("return csv()").splitlines())
    return {int(row["id"]): row["reference"] for row in rows}


def text_of(browser: Browser, name: str) -> str:
    return browser.run("return document.getElementById(arguments[0]).innerText", name)


def press(browser: Browser, *keys: str) -> None:
    for key in keys:
        browser.run(
            "document.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0]}))", key
        )


def test_answers_stay_with_their_points(driver, labelling, tmp_path) -> None:  # noqa: F811
    page, sample, label, cube = labelling
    first = write_label_page(sample.select(sample.id <= 5), cube, tmp_path / "first.html")
    browser = opened(driver, first)
    press(browser, "2", "3", "2", "3", "2")
    given, kept = answers_on(browser), kept_by(browser)
    # sorted in a spreadsheet, and more points than before
    turned = write_label_page(sample.select(np.argsort(-sample.id)), cube, tmp_path / "turned.html")
    for other in (page, turned):
        browser = opened(driver, other, kept)
        assert answers_on(browser) == dict.fromkeys(sample.id.tolist(), "") | given
    # fewer points do not forget the others
    press(browser, "3")
    kept = kept_by(opened(driver, first, kept_by(browser)))
    assert answers_on(opened(driver, page, kept)) == answers_on(browser)
    # another draw has other points
    other = write_label_page(hr.draw_sample(label, 12, seed=4), cube, tmp_path / "other.html")
    assert not any(answers_on(opened(driver, other, kept)).values())


def test_what_was_changed_last_counts(driver, labelling, tmp_path) -> None:  # noqa: F811
    page, _, label, cube = labelling
    browser = opened(driver, page)
    press(browser, *"333")
    file = tmp_path / "label.csv"
    corrected = browser.run("return csv()").replace("water", "bare soil")
    file.write_text(corrected, encoding="utf-8", newline="")
    again = write_label_page(hr.open_sample(file, label), cube, tmp_path / "again.html")
    browser = opened(driver, again, kept_by(browser))
    assert browser.run("return csv()") == corrected
    # what is answered on the new page is kept, an answer that was taken back as well
    press(browser, "ArrowLeft", "3", "ArrowLeft", "ArrowLeft", "Delete")
    given = answers_on(browser)
    assert [given[i] for i in (1, 2, 3, 4)] == ["bare soil", "", "water", ""]
    assert answers_on(opened(driver, again, kept_by(browser))) == given


def test_an_answer_can_be_taken_back(driver, labelling) -> None:  # noqa: F811
    browser = opened(driver, labelling[0])
    clear = (
        "const button = document.getElementById('clear'); button.click(); return button.disabled"
    )
    press(browser, *"222", "Backspace", "ArrowLeft")
    assert (text_of(browser, "number"), text_of(browser, "answer")) == ("3", "bare soil")
    assert browser.run(clear)
    assert (text_of(browser, "number"), text_of(browser, "answer")) == ("3", "not labelled yet")
    press(browser, "ArrowLeft", "Backspace")
    assert text_of(browser, "done") == "1"
    # in the field for a name these keys edit the name
    browser.run(
        "document.getElementById('back').click(); document.getElementById('name').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'Backspace', bubbles: true}))"
    )
    assert text_of(browser, "done") == "1"


@pytest.mark.parametrize("width", [1300, 390])
def test_the_end_says_that_the_file_must_be_saved(driver, labelling, width) -> None:  # noqa: F811
    browser = opened(driver, labelling[0], width=width)
    press(browser, *"2" * 11)
    assert browser.box("#finished")["height"] == 0
    press(browser, "2")
    assert "only in this browser" in text_of(browser, "finished")
    assert 0 < browser.box("#finished")["bottom"] < 900
    # after a save only what has been changed since
    browser.run("document.querySelector('#finished .save').click()")
    assert browser.box("#finished")["height"] == 0
    press(browser, "3")
    assert browser.box("#finished")["height"] > 0
    browser = opened(driver, labelling[0], kept_by(browser))
    assert browser.box("#finished")["height"] > 0


@pytest.mark.parametrize(("width", "height"), [(390, 840), (1300, 900), (1300, 600)])
def test_the_picture_stays_in_sight(driver, tmp_path, width, height) -> None:  # noqa: F811
    cube, labels = hr.synthetic_scene()
    label = placed(labels.values, names=tuple(f"class {i}" for i in range(1, 31)))
    scene = PixelGrid.of(label).attach(cube)
    page = write_label_page(hr.draw_sample(label, 12), scene, tmp_path / "page.html")
    browser = opened(driver, page, width=width, height=height)
    button = "document.querySelectorAll('#classes button')[29]"
    browser.run(f"{button}.scrollIntoView({{block: 'end'}})")
    before = browser.run("return scrollY")
    browser.run(f"{button}.click()")
    assert text_of(browser, "number") == "2"
    picture = browser.box(".picture")
    assert 0 <= picture["top"] < picture["bottom"] <= height
    if width > 760:  # beside the classes: nothing jumps
        assert browser.run("return scrollY") == before
    press(browser, *"1" * 11)
    message = browser.box("#finished")
    assert 0 < message["top"] < message["bottom"] <= height


def test_a_file_of_another_sample_is_refused(driver, labelling, tmp_path) -> None:  # noqa: F811
    page, _, label, _ = labelling
    other = hr.draw_sample(label, 12, seed=4).with_reference(label).write(tmp_path / "other.csv")
    browser = opened(driver, page)
    browser.run("goOn(arguments[0])", other.read_text(encoding="utf-8"))
    assert "another sample" in text_of(browser, "trouble")
    assert text_of(browser, "done") == "0"
    browser.run("goOn(`id;reference\\n2;water\\n;\\n`)")
    assert (text_of(browser, "trouble"), text_of(browser, "done")) == ("", "1")


@pytest.mark.parametrize(("width", "dark"), [(1300, False), (390, True)])
def test_clicking_through(driver, labelling, tmp_path, width, dark) -> None:  # noqa: F811
    page, sample, label, _ = labelling
    browser = opened(driver, page, width=width, dark=dark)
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    for place in (0, 1, 2):
        browser.run("document.querySelectorAll('#classes button')[arguments[0]].click()", place)
    press(browser, "2")
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
    browser = opened(driver, page, kept_by(browser), width=width, dark=dark)
    assert browser.run("return document.getElementById('number').textContent") == "7"
    browser = opened(driver, page, width=width, dark=dark)
    assert browser.run("return document.getElementById('done').textContent") == "0"
    browser.run("goOn(arguments[0])", saved)
    assert browser.run("return document.getElementById('done').textContent") == "6"
    assert browser.run("return csv()") == saved
    assert browser.errors() == []
