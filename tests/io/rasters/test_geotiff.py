"""Styles of QGIS beside GeoTIFFs, parsed and compared with the classes and values of the maps."""

from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex

import hsreject as hr
from hsreject import ClassTable, schema
from tests.io.written_maps import CLASSES, confidence_map, reject_map


def renderer(path) -> ET.Element:
    (found,) = ET.parse(path.with_suffix(".qml")).getroot().iter("rasterrenderer")
    assert found.get("band") == "1"
    return found


def entries(path) -> list[tuple[str, str, str]]:
    drawn = renderer(path)
    assert drawn.get("type") == "paletted"
    return [tuple(map(entry.get, ("value", "label", "color"))) for entry in drawn.find("*")]


def steps(path) -> dict[float, str]:
    drawn = renderer(path)
    assert drawn.get("type") == "singlebandpseudocolor"
    ends = [float(drawn.get(f"classification{end}")) for end in ("Min", "Max")]
    found = {float(item.get("value")): item.get("color") for item in drawn.iter("item")}
    assert [min(found), max(found)] == ends
    return found


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_a_reject_map_lists_its_classes_and_rejected_only(tmp_path, dtype) -> None:
    hr.write_map(reject_map(dtype=dtype), tmp_path / "a map.v2.tif")
    assert entries(tmp_path / "a map.v2.tif") == [
        ("0", "rejected", "#000000"),
        ("1", CLASSES.names[0], CLASSES.colors[0]),
        ("2", CLASSES.names[1], CLASSES.colors[1]),
    ]


def test_a_map_without_rejection_lists_its_classes_only(tmp_path) -> None:
    path = tmp_path / "map.tiff"
    table = ClassTable.from_names({7: "soil", 300: "water"}, colors=["#123456", "#abcdef"])
    labels = schema.attach_classes(reject_map().rename("label"), table)
    labels = labels.copy(data=np.full(labels.shape, 7, np.uint16))
    hr.write_map(labels, path)
    assert entries(path) == [("7", "soil", "#123456"), ("300", "water", "#abcdef")]
    hr.write_map((labels == 7).rename("moist"), path, overwrite=True)
    assert [name for _, name, _ in entries(path)] == ["not moist", "moist"]


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_a_float_map_has_a_perceptual_ramp_over_its_range(tmp_path) -> None:
    path = tmp_path / "map.tif"
    confidence = confidence_map((600, 30))
    confidence.values[:2] = [[np.nan], [np.inf]]
    for array in (confidence, confidence.chunk(200)):
        hr.write_map(array, path, overwrite=True)
        found = steps(path)
        finite = confidence.values[np.isfinite(confidence.values)]
        assert [min(found), max(found)] == [finite.min(), finite.max()]
        positions = np.linspace(0, 1, len(found))
        np.testing.assert_allclose(
            list(found), np.interp(positions, [0, 1], [*found][:: len(found) - 1])
        )
        assert list(found.values()) == [to_hex(mpl.colormaps["cividis"](at)) for at in positions]
    hr.write_map(np.full((2, 2), np.nan), path, overwrite=True)
    assert [min(steps(path)), max(steps(path))] == [0, 1]
    hr.write_map(np.full((2, 2), 0.25), path, overwrite=True)
    assert steps(path) == {0.25: "#fee838"}


def test_envi_files_have_no_style(tmp_path) -> None:
    hr.write_map(reject_map(), tmp_path / "map.img")
    assert not (tmp_path / "map.qml").exists()
