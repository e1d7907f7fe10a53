"""The same configuration and seed give the same maps, byte for byte, for any number of threads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import hsreject as hr

CONFIG = {
    "scene": {"name": "synthetic", "rows": 72, "columns": 64, "noise": 0.6},
    "features": [{"name": "mnf", "n_components": 10}, {"name": "smooth", "sigma": 1.0}],
    "context": {"prior": "vector_tv", "weight": 2.0, "edges": "image"},
    "rejectors": ["pixelwise", "sequential", {"name": "joint", "n_points": 4}],
}
MAPS = ("label", "label_with_rejection", "confidence")

RUN = f"""
import json, sys
import hsreject as hr

config, threads = json.loads(sys.argv[1]), int(sys.argv[2])
result = hr.run(config, settings=[f"context.n_threads={{threads}}"])
for name in result["rejector"].values:
    for variable in {MAPS}:
        hr.write_map(result[variable].sel(rejector=name), f"{{variable}}_{{name}}.tif")
"""

# what linear algebra libraries and numba take the number of their threads from
VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def written_maps(folder: Path, threads: int) -> dict[str, bytes]:
    """Return the files that a process with that number of threads writes."""
    folder.mkdir()
    environment = os.environ | dict.fromkeys(VARIABLES, str(threads))
    environment["PYTHONPATH"] = str(Path(hr.__file__).parents[1])
    command = [sys.executable, "-c", RUN, json.dumps(CONFIG), str(threads)]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    return {path.name: path.read_bytes() for path in folder.glob("*.tif")}


def test_maps_are_the_same_for_any_number_of_threads(tmp_path) -> None:
    one, two = (written_maps(tmp_path / str(threads), threads) for threads in (1, 2))
    rejectors = ("pixelwise", "sequential", "joint")
    assert set(one) == {f"{variable}_{name}.tif" for variable in MAPS for name in rejectors}
    assert len(set(one.values())) > len(rejectors)  # which are not all alike
    assert one == two
