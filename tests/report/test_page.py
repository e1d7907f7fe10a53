import base64
import math
from html.parser import HTMLParser

import pytest
from affine import Affine
from rasterio.crs import CRS
from rasterio.transform import from_origin

from hsreject.io.grid import Grid
from hsreject.report.figures import ground
from hsreject.report.page import Fact, Headline, Picture, Section, Swatch, Table, write_page

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
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
    metres, degrees = ground(Grid(100, 100, transform, CRS.from_user_input(crs)))
    assert metres == pytest.approx(width, rel=0.01)
    assert degrees == pytest.approx(north, abs=0.5)
    assert ground(Grid(100, 100, Affine.identity())) is None


def test_the_page_stands_alone_and_escapes_what_it_shows(tmp_path) -> None:
    (tmp_path / "map.png").write_bytes(PIXEL)
    section = Section(
        "Maps <of> everything",
        "In words.",
        tables=(
            Table(("method", "OA"), (("a & b", "0.9"),), caption="Means.", colors=("#ff0000",)),
            Table(("<i>", "b"), (("c", "7"),), shades=((0.5,),)),
        ),
        legend=(Swatch("", "no <data>"),),
        pictures=(
            Picture(
                tmp_path / "map.png", "A map", "what it shows", scale=(0.25, "<2 km>"), north=9
            ),
        ),
        listings=(("config.toml", 'name = "<script>"'),),
    )
    path = tmp_path / "report.html"
    headline = Headline(
        "All <is> well.",
        (Fact("93.3 %", "of <b>", "about"),),
        "Few errors.",
        ("Beware.",),
        ("So.",),
        place="<here>",
        table=Table(("goal", "cost"), (("95 %", "all"),), title="Goals", folded=True),
        files=("classes.csv",),
    )
    more = Section("More <of> it", listings=(("Versions", "numpy"),))
    write_page(path, title="T", headline=headline, sections=[section], details=[more])
    page = Checker()
    page.feed(path.read_text(encoding="utf-8"))
    assert page.open == []
    assert base64.b64decode(page.images[0]["src"].partition("base64,")[2]) == PIXEL
    text = "".join(page.text)
    words = (
        "Maps <of> everything|a & b|Means.|no <data>|All <is> well.|of <b>|Few errors.|Beware.|So."
        "|<here>|Goals|classes.csv|More <of> it|<2 km>"
    )
    for wanted in (*words.split("|"), 'name = "<script>"', "what it shows", "93.3 %"):
        assert wanted in text
    assert "<script>" not in path.read_text(encoding="utf-8")
