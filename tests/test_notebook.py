"""Results are short where they are shown: a line in a terminal, a table in a notebook."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import hsreject as hr

POINT = hr.OperatingPoint(50, 30, 5, 15)
MAPS = np.array([[1, 1, 2, 2]]), np.array([[1, 2, 2, 2]]), np.array([[0.9, 0.3, 0.8, 0.6]])

RESULTS = {
    "phi of a point": (POINT, "rejection quality", f"{POINT.rejection_quality:.4g}"),
    "verdict": (hr.compare(POINT, POINT), "verdict", "is equal"),
    "range of costs": (
        hr.compare(POINT, hr.OperatingPoint(55, 45, 0, 0)),
        "cheaper",
        "at rejection costs between 0 and 0.75",
    ),
    "saving": (
        hr.compare(POINT, hr.OperatingPoint(55, 45, 0, 0), rejection_cost=0.5),
        "saving",
        "0.05 per sample",
    ),
    "accuracy of a map": (hr.evaluate(*MAPS), "no rejection", "keeps 100 % at 75 % accuracy"),
    "size of a field": (
        hr.SegSALSA(hr.VectorTV(1.0)).solve(np.full((2, 3, 4), 0.5)),
        "hidden field",
        "2 classes, 3 x 4 pixels",
    ),
}


@pytest.mark.parametrize(("result", "name", "text"), RESULTS.values(), ids=RESULTS)
def test_a_result_is_shown_by_its_facts(result, name, text) -> None:
    assert len(repr(result)) < 300
    assert repr(result).count("\n") == 0
    table = ET.fromstring(result._repr_html_())
    rows = {row[0].text: row[1].text for row in table.iter("tr")}
    assert rows[name] == text


def test_a_point_is_printed_as_the_call_that_makes_it() -> None:
    assert eval(repr(POINT), vars(hr)) == POINT


def test_names_of_classes_are_text_in_a_notebook() -> None:
    evaluation = replace(hr.evaluate(*MAPS), measured_on="pixels <b>")
    assert ET.fromstring(evaluation._repr_html_())[1][0].text == "pixels <b>"
