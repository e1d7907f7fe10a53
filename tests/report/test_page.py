import base64
import math
from html.parser import HTMLParser

import numpy as np
import pytest
import xarray as xr
from affine import Affine
from rasterio.crs import CRS
from rasterio.transform import from_origin

import hsreject as hr
from hsreject.io.grid import PixelGrid
from hsreject.report.figures import ground

VOID = {"meta", "img", "link", "br"}
# 30 m pixels, turned by 30 degrees
TURNED = Affine(30 * math.cos(math.pi / 6), -15, 5e5, -15, -30 * math.cos(math.pi / 6), 5.8e6)


class Checker(HTMLParser):
    """Collects text and images, and fails on tags that do not nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.images: list[dict[str, str | None]] = []

    def handle_starttag(self, tag, attrs) -> None:
        if tag == "img":
            self.images.append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text.append(data)


@pytest.mark.parametrize(
    ("transform", "crs", "width", "north"),
    [
        (from_origin(5e5, 5.8e6, 30, 30), "EPSG:32633", 3000, 0),  # on the central meridian
        (from_origin(15, 60, 0.001, 0.001), "EPSG:4326", 5570, 0),  # half of that at the equator
        (TURNED, "EPSG:32633", 3000, -30),
        (from_origin(1e6, 2e5, 100, 100), "EPSG:2263", 3048, 0),  # feet
    ],
)
def test_a_scale_knows_metres_and_north(transform, crs, width, north) -> None:
    metres, degrees = ground(PixelGrid(100, 100, transform, CRS.from_user_input(crs)))
    assert metres == pytest.approx(width, rel=0.01)
    assert degrees == pytest.approx(north, abs=0.5)
    assert ground(PixelGrid(100, 100, Affine.identity())) is None


def test_the_page_stands_alone_and_escapes_what_it_shows(tmp_path) -> None:
    classes = hr.ClassTable.from_names(["<script>corn", "a & b"])
    reference = xr.DataArray(np.array([[1, 1, 2, 2]]), dims=("y", "x"), attrs=classes.to_attrs())
    label = reference.copy(data=np.array([[1, 2, 2, 2]])).assign_attrs(source="<i>scene.tif")
    confidence = np.array([[0.9, 0.3, 0.8, 0.6]])
    hr.evaluate(reference, label, confidence, rejection_cost=[0.4]).write(tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    page = Checker()
    page.feed(text)
    assert page.open == []
    pictures = sorted((tmp_path / "out" / "figures").glob("*.png"))
    shown = [base64.b64decode(image["src"].partition("base64,")[2]) for image in page.images]
    assert sorted(shown) == sorted(file.read_bytes() for file in pictures)
    words = "".join(page.text)
    for wanted in ("<script>corn", "a & b", "<i>scene.tif", "cheapest at cost 0.4", "75.0\u00a0%"):
        assert wanted in words
    assert "<script" not in text
