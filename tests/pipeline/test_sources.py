import numpy as np
import pytest
import rasterio
import xarray as xr
from hsreject.pipeline.sources import scene_of

from hsreject.datasets.synthetic import synthetic_scene
from hsreject.errors import ConfigError
from hsreject.io.map_writer import write_map
from hsreject.pipeline.plan import SAMPLERS, SCENES
from hsreject.registry import build_part


def test_a_synthetic_scene_by_name() -> None:
    cube, labels = build_part(SCENES, {"name": "synthetic", "rows": 20}, section="scene").load()
    assert cube.sizes["y"] == labels.sizes["y"] == 20


def test_files_come_back_as_they_were_written(tmp_path) -> None:
    cube, labels = synthetic_scene(rows=24, columns=20, n_bands=6)
    cube.rio.to_raster(tmp_path / "scene.tif")
    write_map(labels, tmp_path / "labels.tif")
    table = {
        "name": "files",
        "path": str(tmp_path / "scene.tif"),
        "labels": str(tmp_path / "labels.tif"),
    }
    again, reference = build_part(SCENES, table, section="scene").load()
    np.testing.assert_array_equal(again.values, cube.values)
    np.testing.assert_array_equal(reference.values, labels.values)
    with rasterio.open(tmp_path / "scene.tif") as file:
        assert again.rio.transform() == file.transform


def test_a_tuple_stands_for_itself() -> None:
    cube, labels = synthetic_scene(rows=16, columns=16)
    source = build_part(SCENES, scene_of((cube, labels)), section="scene")
    assert source.load()[0] is cube
    with pytest.raises(ConfigError, match=r"\[scene\] must be a name"):
        scene_of(3)


@pytest.mark.parametrize(
    "table",
    [
        {"name": "per_class", "n": 5},
        {"name": "fraction", "fraction": 0.2},
        {"name": "blocks", "block_size": 8, "buffer": 1},
    ],
    ids=lambda table: table["name"],
)
def test_every_sampler_divides_the_labels(table) -> None:
    _, labels = synthetic_scene(n_classes=3)
    sampler = build_part(SAMPLERS, table, section="sampling")
    train, test = sampler.split(labels, seed=1)
    assert (train > 0).any()
    assert (test > 0).any()
    assert not ((train > 0) & (test > 0)).any()
    xr.testing.assert_identical(train, sampler.split(labels, seed=1)[0])
    assert not train.equals(sampler.split(labels, seed=2)[0])


def test_a_given_split_is_read_from_files(tmp_path) -> None:
    _, labels = synthetic_scene(n_classes=3)
    train, test = SAMPLERS.create("per_class", n=5).split(labels, seed=0)
    write_map(train, tmp_path / "train.tif")
    write_map(test, tmp_path / "test.tif")
    table = {
        "name": "given",
        "train": str(tmp_path / "train.tif"),
        "test": str(tmp_path / "test.tif"),
    }
    read = build_part(SAMPLERS, table, section="sampling").split(labels, seed=0)
    np.testing.assert_array_equal(read[0].values, train.values)
    np.testing.assert_array_equal(read[1].values, test.values)
