"""Vector files that lead to other files."""

from pathlib import Path

import geopandas
import numpy as np
import pytest
import rioxarray  # noqa: F401 - registers the .rio accessor
import shapely
import xarray as xr

import hsreject as hr
from hsreject.errors import FileError, HsrejectError

LABEL = xr.DataArray(np.tile(np.array([1, 2], "uint8"), (6, 4)), dims=("y", "x"))


@pytest.mark.parametrize("name", ["a.geojson", "a.gpkg", "a.shp", "a.csv", "a.gml", "a.kml"])
@pytest.mark.parametrize(
    "content",
    [
        "<OGRVRTDataSource><OGRVRTLayer name='secret'><SrcDataSource>{}</SrcDataSource>"
        "</OGRVRTLayer></OGRVRTDataSource>",
        '{{"type": "gdal_streamed_alg", "command_line": "gdal vector pipeline ! read {} ! '
        'write streamed_file --output-format stream"}}',
    ],
)
def test_features_do_not_lead_to_other_files(tmp_path: Path, name: str, content: str) -> None:
    secret = tmp_path / "secret.gpkg"
    points = geopandas.GeoDataFrame({"class": [1]}, geometry=[shapely.Point(0, 0)], crs=32633)
    points.to_file(secret)
    (tmp_path / "sent").mkdir()
    path = tmp_path / "sent" / name
    path.write_text(content.format(secret))
    with pytest.raises(FileError, match="names other files"):
        hr.open_labels(path, like=LABEL, attribute="class")
    with pytest.raises(FileError, match="names other files"):
        hr.describe(path)
    with pytest.raises(HsrejectError):  # a table is not read by GDAL there
        hr.open_sample(path, LABEL)
