"""Sample files on their way through QGIS and spreadsheets."""

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
import shapely

import hsreject as hr
from hsreject.errors import FileError, HsrejectWarning, InputError
from tests.certification.scenes import placed, ranked_map
from tests.io.test_full_disk import files_of_at_most

ENDINGS = ("gpkg", "geojson", "csv")


@pytest.fixture
def label():
    return placed(ranked_map()[0])


def written(label, path: Path, n: int = 40, **options) -> hr.Sample:
    sample = hr.draw_sample(label, n, **options)
    sample.write(path)
    return sample


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def same_points(first: hr.Sample, second: hr.Sample) -> None:
    for name in ("id", "row", "column", "label", "stratum", "stratum_pixels"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.design == second.design


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("design", ["random", "stratified"])
def test_what_is_written_comes_back(ending, design, label, tmp_path) -> None:
    path = tmp_path / f"sample.{ending}"
    sample = written(label, path, design=design)
    back = hr.open_sample(path, label)
    same_points(sample, back)
    assert not back.labelled.any()
    sample.with_reference(label).write(path, overwrite=True)
    np.testing.assert_array_equal(hr.open_sample(path, label).reference, sample.label)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_map_without_a_place_has_rows_and_columns(ending, tmp_path) -> None:
    values = ranked_map()[0]
    path = tmp_path / f"sample.{ending}"
    same_points(written(values, path), hr.open_sample(path, values))


def test_points_lie_at_pixel_centres_and_say_so_in_degrees_too(label, tmp_path) -> None:
    sample = written(label, tmp_path / "sample.gpkg")
    frame = gpd.read_file(tmp_path / "sample.gpkg")
    assert frame.crs.to_epsg() == 32633
    np.testing.assert_allclose(frame.geometry.x, label.x.values[sample.column])
    np.testing.assert_allclose(frame.geometry.y, label.y.values[sample.row])
    degrees = frame.to_crs(4326).geometry
    np.testing.assert_allclose(frame.longitude, degrees.x, atol=1e-9)
    np.testing.assert_allclose(frame.latitude, degrees.y, atol=1e-9)
    np.testing.assert_allclose(frame.inclusion_probability, 40 / 8000)
    assert frame.reference.isna().all()


def test_the_label_of_the_map_is_shown_only_if_asked_for(label, tmp_path) -> None:
    sample = written(label, tmp_path / "hidden.csv", design="stratified")
    hidden = (tmp_path / "hidden.csv").read_text()
    assert not any(name in hidden for name in ("corn", "bare soil", "water"))
    sample.write(tmp_path / "shown.csv", show_label=True)
    rows = rows_of(tmp_path / "shown.csv")
    names = [sample.classes.name_of(value) for value in sample.label]
    assert [row["map_label"] for row in rows] == names


def test_edited_in_qgis(label, tmp_path) -> None:
    """Columns reordered and dropped, rows sorted, another system, names, codes and gaps."""
    sample = written(label, tmp_path / "sample.gpkg")
    frame = gpd.read_file(tmp_path / "sample.gpkg").to_crs(3035)
    names = ["corn", " Water ", "2", "2.0", "", None, "0", "bare soil"]
    meant = [1, 3, 2, 2, 0, 0, 0, 2]
    frame["reference"] = (names * 5)[:40]
    frame["remark"] = "seen"
    frame = frame[["remark", "design", "reference", "id", "geometry"]].sort_values("reference")
    frame.to_file(tmp_path / "edited.gpkg")
    back = hr.open_sample(tmp_path / "edited.gpkg", label)
    order = np.argsort(back.id)
    np.testing.assert_array_equal(back.row[order], sample.row)
    np.testing.assert_array_equal(back.column[order], sample.column)
    np.testing.assert_array_equal(back.reference[order], (meant * 5)[:40])
    assert back.design == sample.design


def test_saved_as_a_shapefile(label, tmp_path) -> None:
    sample = written(label, tmp_path / "sample.gpkg", design="stratified")
    frame = gpd.read_file(tmp_path / "sample.gpkg").drop(columns=["inclusion_probability"])
    frame["reference"] = 2
    frame.to_file(tmp_path / "sample.shp")
    back = hr.open_sample(tmp_path / "sample.shp", label)
    same_points(sample, back)
    assert set(back.reference) == {2}


def test_saved_by_a_spreadsheet_with_semicolons_and_decimal_commas(label, tmp_path) -> None:
    sample = written(label, tmp_path / "sample.csv")
    rows = rows_of(tmp_path / "sample.csv")
    text = ";".join(rows[0]) + "\r\n"
    for row in rows:
        row["reference"] = "bare soil"
        text += ";".join(value.replace(".", ",") for value in row.values()) + "\r\n"
    (tmp_path / "saved.csv").write_bytes(("\ufeff" + text + ";;;\r\n").encode())
    back = hr.open_sample(tmp_path / "saved.csv", label)
    same_points(sample, back)
    assert set(back.reference) == {2}


def test_degrees_that_a_spreadsheet_rounded_lead_to_the_same_pixels(label, tmp_path) -> None:
    fine = label.assign_coords(x=4e5 + 0.05 * np.arange(100), y=5e6 - 0.05 * np.arange(80))
    fine = fine.drop_vars("spatial_ref").rio.write_crs("EPSG:32633")
    sample = written(fine, tmp_path / "sample.csv")
    rows = rows_of(tmp_path / "sample.csv")
    with (tmp_path / "rounded.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        for row in rows:
            place = {name: f"{float(row[name]):.6f}" for name in ("longitude", "latitude")}
            writer.writerow(row | place)
    same_points(sample, hr.open_sample(tmp_path / "rounded.csv", fine))


@pytest.mark.parametrize("place", [("x", "y"), ("row", "column")])
def test_a_spreadsheet_may_have_only_some_of_the_coordinates(place, label, tmp_path) -> None:
    sample = written(label, tmp_path / "sample.csv")
    rows = rows_of(tmp_path / "sample.csv")
    with (tmp_path / "some.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*place, "Reference"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(row | {"Reference": "corn"} for row in rows)
    back = hr.open_sample(tmp_path / "some.csv", label)
    np.testing.assert_array_equal(back.row, sample.row)
    np.testing.assert_array_equal(back.column, sample.column)
    assert back.design is None


def test_a_name_that_the_map_does_not_know_is_a_class_of_its_own(label, tmp_path) -> None:
    written(label, tmp_path / "sample.gpkg", n=4)
    frame = gpd.read_file(tmp_path / "sample.gpkg")
    frame["reference"] = ["road", "watr", "Road", "7"]
    frame.to_file(tmp_path / "edited.gpkg")
    with pytest.warns(HsrejectWarning) as told:
        back = hr.open_sample(tmp_path / "edited.gpkg", label)
    said = [str(warning.message) for warning in told]
    assert any("'watr' (1 points)" in text and "Did you mean 'water'" in text for text in said)
    assert back.reference[0] == back.reference[2] != back.reference[1]
    assert min(back.reference[:3]) > 7
    assert back.classes.name_of(int(back.reference[1])) == "watr"


def test_other_columns_may_hold_the_class(label, tmp_path) -> None:
    written(label, tmp_path / "sample.gpkg", n=4)
    frame = gpd.read_file(tmp_path / "sample.gpkg")
    frame["truth"] = [1, 2, 3, 1]
    frame.drop(columns="reference").to_file(tmp_path / "edited.gpkg")
    back = hr.open_sample(tmp_path / "edited.gpkg", label, attribute="truth")
    assert back.reference.tolist() == [1, 2, 3, 1]
    with pytest.raises(InputError, match=r"'reference'.*truth"):
        hr.open_sample(tmp_path / "edited.gpkg", label)


def edited(label, tmp_path, change) -> Path:
    written(label, tmp_path / "sample.gpkg")
    path = tmp_path / "edited.gpkg"
    change(gpd.read_file(tmp_path / "sample.gpkg")).to_file(path)
    return path


def test_points_off_the_map_are_counted(label, tmp_path) -> None:
    def change(frame):
        frame.loc[:2, "geometry"] = shapely.points([0, 1e7, 4e5], [0, 0, 9e6])
        return frame

    with pytest.raises(InputError, match="3 of the 40 points"):
        hr.open_sample(edited(label, tmp_path, change), label)


def test_two_points_in_one_pixel_are_counted(label, tmp_path) -> None:
    def change(frame):
        frame.loc[:1, "geometry"] = frame.geometry.iloc[5]
        return frame

    with pytest.raises(InputError, match="2 of the 40 points"):
        hr.open_sample(edited(label, tmp_path, change), label)


def test_polygons_are_refused_with_the_way_out(label, tmp_path) -> None:
    path = edited(label, tmp_path, lambda frame: frame.set_geometry(frame.buffer(60)))
    with pytest.raises(InputError, match="one random pixel of each polygon"):
        hr.open_sample(path, label)


def test_two_samples_in_one_file_are_refused(label, tmp_path) -> None:
    def change(frame):
        frame.loc[:3, "design"] = frame["design"].str.replace("seed=0", "seed=1")
        return frame

    with pytest.raises(InputError, match="2 different samples"):
        hr.open_sample(edited(label, tmp_path, change), label)


def test_strata_that_lost_their_size_are_refused(label, tmp_path) -> None:
    written(label, tmp_path / "sample.csv", design="stratified")
    rows = list(csv.reader((tmp_path / "sample.csv").read_text().splitlines()))
    at = rows[0].index("pixels")
    rows[1][at] = "7"
    with (tmp_path / "sample.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    with pytest.raises(FileError, match="pixels"):
        hr.open_sample(tmp_path / "sample.csv", label)


@pytest.mark.parametrize(
    ("text", "word"),
    [("", "columns"), ("row,column,reference\n", "no points"), ("row,reference\n1,2\n", "column"),
     ("row,column,reference\n1,x,2\n", "numbers"), ("row,column,reference\n1,2.5,2\n", "whole"),
     ("row,column,reference\n1,nan,2\n", "whole"), ("row,column,reference\n1,inf,2\n", "whole"),
     ("row,column,reference\n1,2,3,4\n", "more cells")],
)  # fmt: skip
def test_spreadsheets_that_cannot_be_read(text, word, tmp_path) -> None:
    path = tmp_path / "sample.csv"
    path.write_text(text)
    with pytest.raises((FileError, InputError), match=word):
        hr.open_sample(path, ranked_map()[0])


def test_other_endings_are_refused_and_nothing_is_left(label, tmp_path) -> None:
    with pytest.raises(InputError, match=r"\.gpkg, \.geojson, \.csv"):
        hr.draw_sample(label, 5).write(tmp_path / "sample.xlsx")
    assert not list(tmp_path.iterdir())
    written(label, tmp_path / "sample.csv")
    with pytest.raises(FileError, match="already there"):
        written(label, tmp_path / "sample.csv")


def test_a_geopackage_offers_the_classes_of_the_map(label, tmp_path) -> None:
    """As the GeoPackage extension "Schema" wants it, and still readable by others."""
    written(label, tmp_path / "sample.gpkg")
    with closing(sqlite3.connect(tmp_path / "sample.gpkg")) as file:
        offered = file.execute(
            "SELECT c.value FROM gpkg_data_columns d JOIN gpkg_data_column_constraints c USING "
            "(constraint_name) WHERE d.table_name = 'sample' AND d.column_name = 'reference'"
        ).fetchall()
    names = ["corn", "bare soil", "water", "none of these", "cannot tell"]
    assert {name for (name,) in offered} == set(names)
    assert len(gpd.read_file(tmp_path / "sample.gpkg")) == 40


def test_cannot_tell_is_an_answer(label, tmp_path) -> None:
    def change(frame):
        frame["reference"] = "Cannot tell"
        return frame

    back = hr.open_sample(edited(label, tmp_path, change), label)
    assert set(back.reference) == {-1}
    back.write(tmp_path / "again.csv")
    assert set(hr.open_sample(tmp_path / "again.csv", label).reference) == {-1}


@pytest.mark.parametrize("ending", ["gpkg", "geojson", "csv"])
def test_a_disk_that_is_full_at_any_byte_leaves_no_half_file(ending, label, tmp_path) -> None:
    """Drivers write at the end, or close a file that is cut without a word."""
    sample, path = hr.draw_sample(label, 200), tmp_path / f"points.{ending}"
    sample.write(path)
    length = path.stat().st_size
    path.unlink()
    for missing in (2, 100, length // 3, length - 1):  # 1 is only the last line break
        with files_of_at_most(length - missing), pytest.raises(FileError, match="Could not write"):
            sample.write(path)
        assert list(tmp_path.iterdir()) == []


def grown(label, confidence, path: Path) -> tuple[hr.Sample, hr.Sample]:
    """Return the points of a design that are in a file, and those after the next batch."""
    points = hr.open_sample(path, label)
    larger = hr.more_points(label, confidence, points.with_reference(label), 20)
    assert len(larger) == len(points) + 20
    larger.append_to(path, len(points))
    return points, larger


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("crs", [32633, 4326])
def test_more_points_leave_what_people_have_added(ending, crs, label, tmp_path) -> None:
    confidence = ranked_map()[1]
    path = tmp_path / f"points.{ending}"
    written(label, path, 300, design="sequential", confidence=confidence)
    if ending == "csv":
        rows = rows_of(path)
        with path.open("w", newline="", encoding="cp1252") as stream:
            writer = csv.DictWriter(stream, [*rows[0], "note"], delimiter=";")
            writer.writeheader()
            writer.writerows(row | {"note": "über", "reference": "corn"} for row in rows)
    else:
        frame = gpd.read_file(path).assign(note="über", reference="corn")
        frame.to_crs(crs if ending == "gpkg" else 4326).to_file(path)
    if ending == "gpkg":
        with closing(sqlite3.connect(path)) as file, file:
            file.execute("CREATE TABLE layer_styles (style TEXT)")
    points, larger = grown(label, confidence, path)
    back = hr.open_sample(path, label)
    same_points(back, larger)
    np.testing.assert_array_equal(back.reference, np.repeat([1, 0], [len(points), 20]))
    if ending == "csv":
        text = path.read_text(encoding="cp1252").splitlines()
        assert [line.count("über") for line in text[1:]] == [1] * len(points) + [0] * 20
        assert all(line.count(";") == text[0].count(";") for line in text)
    else:
        notes = gpd.read_file(path, layer=path.stem if ending == "gpkg" else None).note
        assert notes.fillna("").tolist() == ["über"] * len(points) + [""] * 20
    if ending == "gpkg":
        with closing(sqlite3.connect(path)) as file:
            assert file.execute("SELECT count(*) FROM layer_styles").fetchone() == (0,)


def test_a_spreadsheet_may_save_utf_16(label, tmp_path) -> None:
    path = tmp_path / "sample.csv"
    sample = written(label, path)
    path.write_text(path.read_text(encoding="utf-8").replace(",", "\t"), encoding="utf-16")
    same_points(sample, hr.open_sample(path, label))


def test_points_of_other_software_say_where_they_lie(label, tmp_path) -> None:
    path = tmp_path / "sample.csv"
    sample = written(label, path)
    rows = [row | {"lon": row["longitude"], "lat": row["latitude"]} for row in rows_of(path)]
    kept = ("id", "reference", "lon", "lat", "design")

    def save(names) -> None:
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, names, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)

    save(kept)
    same_points(sample, hr.open_sample(path, label))
    rows[3]["lon"] = "nan"
    save(kept)
    with pytest.raises(FileError, match="1 of the 40 points"):
        hr.open_sample(path, label)
    save(("id", "reference", "design"))
    with pytest.raises(FileError, match="longitude and latitude, x and y, or row and column"):
        hr.open_sample(path, label)
