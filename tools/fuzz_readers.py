"""Good files of every kind, damaged at random: a reader may refuse one only with an error of ours.

``python -m tools.fuzz_readers --n 20000`` opens so many. Each is opened whole and block by block,
described as by ``hsreject info``, opened as labels, and where it is of that kind as a map, a
dataset, a sample, a certificate, a model, a configuration or a stage of a run, in another process,
so that crashes of compiled code, hangs and memory are seen. A case has a number and a seed:
``--seed 3 --first 1234 --n 1 --keep folder`` makes that one again. ``--only mat,NEON`` takes some
kinds only. The last lines are a table, one row per group of kinds.
"""

import argparse
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import dask
import geopandas
import h5py
import numpy as np
import rasterio.shutil
import scipy.io
import shapely
import xarray as xr

import hsreject as hr
from hsreject.errors import HsrejectError
from hsreject.files import recall
from hsreject.pipeline.config import read_document
from hsreject.pipeline.plan import make_plan
from hsreject.pipeline.stages import _read_stage
from tests.io.products import writers as products
from tests.io.writers import UTM, random_cube, save_hdf5, write_envi, write_with_gdal
from tests.io.written_maps import confidence_map, reject_map

SECONDS, MEGABYTES = 5, 1000  # of the processor and of memory: what one file may take
PATIENCE = 60  # seconds on the clock after which a process hangs
FINE = ("opened", "refused")
CASES_PER_PROCESS = 400
# A process of its own without threads imports what takes long once, and workers are its forks.
CONTEXT = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
PRELOADED = ["pyogrio", "sklearn.ensemble", "skops.io", "h5netcdf", "rioxarray", "zarr"]
if sys.platform == "linux":
    CONTEXT.set_forkserver_preload([__name__, *PRELOADED])

# Good files: what makes one in a folder, and returns its path.

REFLECTANCE = products.reflectance()
COUNTS = (1e4 * REFLECTANCE).astype("int16")
TABLE = (np.array([[0, 1], [2, 5]]), np.array([[0, 1], [4, 2]]))
CUBE = random_cube("int16", (6, 20, 24))
FIELDS = {
    "wavelength": "{450, 550, 650, 850, 1650, 2200}",
    "wavelength units": "Nanometers",
    "fwhm": "{10, 10, 10, 12, 12, 12}",
    "bbl": "{1, 1, 1, 0, 1, 1}",
    "data ignore value": "-9999",
    "map info": "{UTM, 1, 1, 364095, 5809965, 30, 30, 33, North, WGS-84}",
    "description": "{a scene, \n on two lines}",
}
CLASSES = {
    "file type": "ENVI Classification",
    "classes": 3,
    "class names": "{unclassified, soil, water}",
    "class lookup": "{0, 0, 0, 200, 100, 0, 0, 0, 255}",
}


def _npy(path: Path, array: np.ndarray) -> Path:
    np.save(path, array)
    return path


def _mat(path: Path, *, compressed: bool) -> Path:
    arrays = {"cube": CUBE.transpose(1, 2, 0), "wavelength": np.linspace(400, 2400, 6)}
    scipy.io.savemat(path, arrays, do_compression=compressed)
    return path


def _masked(path: Path) -> Path:
    write_with_gdal(path, CUBE, nodata=0)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False), rasterio.open(path, "r+") as file:
        file.write_mask(CUBE[0] > 20)
    return path


def _virtual(path: Path) -> Path:
    source = write_with_gdal(path.with_name("part.tif"), CUBE)
    rasterio.shutil.copy(source, path, driver="VRT")
    return path


def _written(path: Path, array: object) -> Path:
    hr.write_map(array, path)
    return path


def _dataset(path: Path) -> Path:
    maps = {"label": reject_map((20, 24)), "confidence": confidence_map((20, 24))}
    hr.write_dataset(xr.Dataset(maps), path)
    return path


def _prisma(path: Path) -> Path:
    halves = np.random.default_rng(3).integers(1, 65536, (2, 4, 5, 4))
    centres = ((1000, 700, 500, 0), (2400, 1800, 1000, 0))
    return products.write_prisma(path, *halves, centres, ((0.0, 1.0), (0.0, 2.0)))


def _features(path: Path) -> Path:
    x, y = UTM.c, UTM.f
    boxes = [shapely.box(x + 60 * i, y - 90, x + 60 * i + 50, y - 10) for i in range(4)]
    table = geopandas.GeoDataFrame(
        {"kind": ["soil", "water", "soil", "ice"], "code": [1, 2, 1, 3]}, geometry=boxes, crs=32633
    )
    driver = "KML" if path.suffix == ".kml" else None  # else a folder of another format
    crs = 4326 if path.suffix in {".geojson", ".kml"} else 32633
    table.to_crs(crs).to_file(path, driver=driver)
    return path


LABELS = xr.DataArray(1 + (np.indices((20, 24)).sum(0) // 9) % 3, dims=("y", "x"))
LABELS = LABELS.rio.write_crs(32633).rio.write_transform(UTM).astype("uint8")


def _sample(path: Path) -> Path:
    hr.draw_sample(LABELS, 12, seed=0).with_reference(LABELS).write(path)
    return path


def _certificate(path: Path) -> Path:
    confidence = LABELS.copy(data=np.linspace(0, 1, LABELS.size).reshape(LABELS.shape))
    sample = hr.draw_sample(LABELS, 200, seed=0).with_reference(LABELS)
    hr.certify(LABELS, confidence, sample, max_error=0.1).write(path)
    return path


def _model(path: Path) -> Path:
    cube = xr.DataArray(CUBE.astype("float32"), dims=("band", "y", "x"))
    return hr.save_model(hr.SceneClassifier("lda", features=["scale"]).fit(cube, LABELS), path)


def _cube(path: Path) -> Path:
    coords = {"wavelength": ("band", np.linspace(400, 2400, 6), {"units": "nm"})}
    cube = xr.DataArray(CUBE, dims=("band", "y", "x"), coords=coords, name="reflectance")
    engine = "scipy" if path.name == "classic.nc" else "h5netcdf"
    cube = cube.rio.write_crs(32633)
    if path.suffix == ".zarr":
        cube.to_dataset().to_zarr(path, zarr_format=2)  # older xarray takes it of datasets only
    else:
        cube.to_netcdf(path, engine=engine)
    return path


def _tree(path: Path) -> Path:
    label = reject_map((20, 24)).to_dataset(name="label")
    hr.write_tree(xr.DataTree.from_dict({"/": label, "/part": label}), path)
    return path


def _pace(path: Path) -> Path:
    with h5py.File(path, "w") as file:
        file["geophysical_data/rhos"] = REFLECTANCE.transpose(1, 2, 0)
        file["sensor_band_parameters/wavelength_3d"] = np.linspace(400, 900, len(REFLECTANCE))
        rows, columns = np.indices(REFLECTANCE.shape[1:])
        file["navigation_data/latitude"] = 50 - 0.01 * rows
        file["navigation_data/longitude"] = 13 + 0.01 * columns
    return path


def _archive(folder: Path, ending: str) -> Path:
    (folder / "inside").mkdir()
    write_with_gdal(folder / "inside" / "a.tif", CUBE)
    packed = shutil.make_archive(str(folder / "a"), ending, folder / "inside")
    shutil.rmtree(folder / "inside")
    return Path(packed)


def _configuration(path: Path) -> Path:
    """Configurations of all kinds in one, as somebody else may send them."""
    path.write_text(CONFIGURATION)
    return path


def _stage(path: Path) -> Path:
    data = reject_map((20, 24)).to_dataset(name="label").assign_attrs(stage=path.stem)
    hr.write_dataset(data.assign(probability=data["label"] / 3.0), path)
    return path


def _points(path: Path) -> Path:
    rows = "".join(f"{13 + 0.0001 * i},{52.4 + 0.0001 * i},{1 + i % 3},soil\n" for i in range(9))
    path.write_text("lon,lat,code,kind\n" + rows)
    return path


CONFIGURATION = """
title = "A map"
seed = 3
baselines = ["svm"]
[goal]
accuracy = 0.95
[scene]
name = "files"
path = "a.tif"
labels = "b.gpkg"
attribute = "code"
[sampling]
name = "per_class"
n_per_class = 10
[classifier]
name = "svm"
[[features]]
name = "mnf"
n_components = 20
[context]
prior = "vector_tv"
edges = "image"
weight = [0.5, 1.0]
[[rejectors]]
name = "pixelwise"
[[rejectors]]
name = "joint"
rejection_classes = 4
"""

SEEDS: dict[str, Callable[[Path], Path]] = {
    "ENVI": lambda to: write_envi(to, CUBE, fields=FIELDS),
    "ENVI by line": lambda to: write_envi(to, CUBE, interleave="bil", byte_order=1, fields=FIELDS),
    "ENVI classes": lambda to: write_envi(to, CUBE[:1].astype("uint8") % 3, fields=CLASSES),
    "GeoTIFF": lambda to: write_with_gdal(to / "a.tif", CUBE),
    "GeoTIFF by pixel": lambda to: write_with_gdal(
        to / "a.tif", CUBE, interleave="pixel", compress="deflate", nodata=3
    ),
    "GeoTIFF in tiles": lambda to: write_with_gdal(
        to / "a.tif", CUBE, tiled=True, blockxsize=16, blockysize=16, compress="lzw"
    ),
    "GeoTIFF with mask": lambda to: _masked(to / "a.tif"),
    "reject map": lambda to: _written(to / "a.tif", reject_map((20, 24))),
    "ERDAS Imagine": lambda to: write_with_gdal(to / "a.img", CUBE, driver="HFA"),
    "JPEG 2000": lambda to: write_with_gdal(to / "a.jp2", CUBE, driver="JP2OpenJPEG"),
    "CF cube": lambda to: _cube(to / "cube.nc"),
    "classic NetCDF": lambda to: _cube(to / "classic.nc"),
    "Zarr": lambda to: _cube(to / "cube.zarr"),
    "tree": lambda to: _tree(to / "result.nc"),
    "zip": lambda to: _archive(to, "zip"),
    "tar.gz": lambda to: _archive(to, "gztar"),
    "sample GeoPackage": lambda to: _sample(to / "sample.gpkg"),
    "sample GeoJSON": lambda to: _sample(to / "sample.geojson"),
    "sample table": lambda to: _sample(to / "sample.csv"),
    "certificate": lambda to: _certificate(to / "certificate.json"),
    "model": lambda to: _model(to / "model.skops"),
    "configuration": lambda to: _configuration(to / "map.toml"),
    "stage": lambda to: _stage(to / "split-00.nc"),
    "VRT": lambda to: _virtual(to / "a.vrt"),
    "npy": lambda to: _npy(to / "a.npy", CUBE),
    "npy labels": lambda to: _npy(to / "a.npy", CUBE[0] % 4),
    "mat": lambda to: _mat(to / "a.mat", compressed=False),
    "packed mat": lambda to: _mat(to / "a.mat", compressed=True),
    "mat in HDF5": lambda to: save_hdf5(
        to / "a.mat", cube=CUBE.transpose(1, 2, 0), wavelength=np.linspace(400, 2400, 6)
    ),
    "NetCDF": lambda to: _dataset(to / "a.nc"),
    "GeoPackage": lambda to: _features(to / "a.gpkg"),
    "Shapefile": lambda to: _features(to / "a.shp"),
    "GeoJSON": lambda to: _features(to / "a.geojson"),
    "FlatGeobuf": lambda to: _features(to / "a.fgb"),
    "GML": lambda to: _features(to / "a.gml"),
    "KML": lambda to: _features(to / "a.kml"),
    "points in a table": lambda to: _points(to / "a.csv"),
    "EMIT": lambda to: products.write_emit(to / "emit.nc", REFLECTANCE, TABLE, good=[1] * 6),
    "AVIRIS": lambda to: products.write_aviris(to / "aviris.nc", REFLECTANCE, TABLE),
    "PRISMA": lambda to: _prisma(to / "PRS_L2D.he5"),
    "PACE": lambda to: _pace(to / "pace.nc"),
    "NEON": lambda to: products.write_neon(to / "neon.h5", COUNTS),
    "Tanager": lambda to: products.write_tanager(to / "tanager.h5", REFLECTANCE),
    "EnMAP": lambda to: products.write_enmap(to, COUNTS, masks={"CLOUD": COUNTS[0] > 20})[0],
    "DESIS": lambda to: products.write_desis(to, COUNTS)[0],
}

GROUPS = {
    "configurations": {"configuration"},
    "stages of a run": {"stage"},
    "samples": {"sample GeoPackage", "sample GeoJSON", "sample table"},
    "certificates": {"certificate"},
    "models": {"model"},
    "archives": {"zip", "tar.gz"},
    "labels in vector files and tables": {
        *("GeoPackage", "Shapefile", "GeoJSON", "FlatGeobuf", "GML", "KML", "points in a table"),
    },
    "NumPy and MATLAB arrays": {"npy", "npy labels", "mat", "packed mat", "mat in HDF5"},
    "products, NetCDF, HDF5, Zarr": {
        *("CF cube", "classic NetCDF", "Zarr", "tree", "NetCDF", "EMIT", "AVIRIS", "PRISMA"),
        *("PACE", "NEON", "Tanager", "EnMAP", "DESIS"),
    },
}
"""Kinds by what they are to people; the others are rasters."""

# Damage.

WORDS = [
    b"{", b"}", b"[", b"]", b"nan", b"-1", b"0", b"1e400", b"9" * 30, b"0.55 um", b"65535", b"\0",
    b"\n", b",", b"=", b"NaN", b"inf", b"null", b"\xff\xfe", b"2147483647", b"-9999", b'"', b"<",
    b"9999999", b"EPSG:99999", b"bip", b" ",
]  # fmt: skip
# Those in the middle are the dangerous ones: memory is found for what they claim.
NUMBERS = [0, 1, 255, 256, 4097, 65535, 2**20, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1]


def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    """Return a file after one to four accidents; half of them in its first 512 bytes."""
    for _ in range(rng.integers(1, 5)):
        end = min(len(raw), 512) if rng.random() < 0.5 else len(raw)
        at = int(rng.integers(0, end + 1))
        length = int(2 ** rng.uniform(0, 8))
        other = int(rng.integers(0, len(raw) + 1))
        word = WORDS[rng.integers(len(WORDS))]
        width = int(rng.choice([2, 4, 8]))
        number = NUMBERS[rng.integers(len(NUMBERS))] % 256**width
        order = "little" if rng.random() < 0.7 else "big"
        # what stands at `at` instead, and where the file goes on
        new, after = [
            (rng.bytes(1), at + 1),
            (bytes(byte ^ (1 << int(rng.integers(8))) for byte in raw[at : at + 1]), at + 1),
            (b"", len(raw)),
            (b"", at + length),
            (raw[at : at + length], at),
            (bytes([int(rng.choice([0, 255]))]) * length, at + length),
            (word, at),
            (word, at + len(word)),
            (number.to_bytes(width, order), at + width),
            (raw[other : other + length], at + length),
        ][rng.integers(10)]
        raw = raw[:at] + new + raw[after:]
    return raw


def make_case(number: int, *, kinds: list[str], seed: int, good: Path, into: Path) -> Path:
    """Make the damaged files of a case; return the one to open."""
    rng = np.random.default_rng([seed, number])
    kind = kinds[number % len(kinds)]
    shutil.copytree(good / kind, into)
    main = into / (good / f"{kind}.txt").read_text()
    files = sorted(path for path in into.rglob("*") if path.is_file())
    hits_main = main.is_file() and rng.random() < 0.5
    victim = main if hits_main else files[rng.integers(len(files))]
    victim.write_bytes(damaged(victim.read_bytes(), rng))
    return main


# What people do with a file.


def uses(path: Path, scene: object) -> Iterator[Callable[[], object]]:
    only = {
        "sample": lambda: hr.open_sample(path, LABELS),
        "certificate": lambda: hr.Certificate.read(path),
        "model": lambda: hr.load_model(path),
    }
    if path.stem in only:
        yield only[path.stem]
        return
    if path.suffix == ".toml":
        yield lambda: make_plan(read_document(path))
        return
    if path.stem == "split-00":  # whatever it raises makes a run compute the stage again
        yield lambda: recall(path, float, read=_read_stage, write=lambda *_: None)
        return
    if path.suffix == ".nc":
        yield lambda: hr.open_dataset(path).load().close()
    if path.name == "result.nc":
        yield lambda: hr.open_tree(path).load().close()
    if path.name in {"emit.nc", "aviris.nc", "pace.nc"}:  # whose lookup table places a map

        def place() -> None:
            hr.write_map(hr.open_scene(path)[0], path.parent / "map.tif", overwrite=True)

        yield place
    yield lambda: hr.open_scene(path)
    yield lambda: hr.open_scene(path, chunks="auto").isel(y=slice(8), x=slice(8)).compute().size
    yield lambda: hr.describe(path)
    yield lambda: hr.open_labels(path, like=scene, attribute="code")
    yield lambda: hr.open_labels(path, like=scene, attribute="kind")
    if path.suffix in {".tif", ".img"}:
        yield lambda: hr.open_map(path)


def verdict(path: Path, scene: object) -> str:
    """Return what came of a file: opened in some way, refused in every way, or what is wrong."""
    outcome = "refused"
    for use in uses(path, scene):
        try:
            use()
            outcome = "opened"
        except HsrejectError as error:
            if "\n" in str(error) or not str(error).strip():
                return f"not one line: {error!r}"
        except Exception as error:  # noqa: BLE001 - which is what is looked for
            return f"{type(error).__module__}.{type(error).__name__}: {error}"
    return outcome


@dataclass(frozen=True)
class Plan:
    """What all cases have in common."""

    good: Path  # the folder with the good files
    kinds: list[str]
    seed: int
    keep: Path | None  # a folder that gets every damaged file


def _peak_megabytes() -> float:
    """Return the largest memory of this process."""
    # not ru_maxrss: a process inherits that from the one that started it
    status = Path("/proc/self/status")
    match = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
    return int(match[1]) / 1e3 if match else 0.0


def _forget_peak() -> None:
    """Let the largest memory of this process begin anew, where the system can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _work(report: Connection, numbers: range, plan: Plan) -> None:
    """Try cases and report each; whoever waits for the report sees crashes and hangs."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # GDAL and HDF5 talk a lot about damaged files
    warnings.simplefilter("ignore")
    dask.config.set(scheduler="synchronous")  # threads do not survive a fork
    keep, scene = plan.keep, hr.open_scene(plan.good / "scene.tif")
    report.send("ready")
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            into = Path(folder, "case")
            path = make_case(number, kinds=plan.kinds, seed=plan.seed, good=plan.good, into=into)
            _forget_peak()
            if keep is not None:
                shutil.copytree(path.parent, keep / str(number), dirs_exist_ok=True)
            start = time.process_time()  # others may be busy, too
            result = verdict(path, scene)
            took = time.process_time() - start
        if result in FINE and took > SECONDS:
            result = "slow"
        megabytes = _peak_megabytes()
        if result in FINE and megabytes > MEGABYTES:
            report.send((f"memory: {megabytes:.0f} MB", took, megabytes))
            return  # the peak of this process may say nothing about later cases
        report.send((result, took, megabytes))


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case."""

    number: int
    kind: str
    verdict: str
    seconds: float
    megabytes: float = 0.0


def fuzz(
    n: int,
    *,
    first: int = 0,
    seed: int = 0,
    keep: Path | None = None,
    kinds: list[str] | None = None,
) -> Iterator[Outcome]:
    """Yield the outcomes of `n` cases, from the `first` on."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(Path(folder), kinds or list(SEEDS), seed, keep)
        write_with_gdal(plan.good / "scene.tif", CUBE)
        for kind in plan.kinds:
            (plan.good / kind).mkdir()
            (plan.good / f"{kind}.txt").write_text(SEEDS[kind](plan.good / kind).name)
        _prepare(plan)
        number, last = first, first + n
        while number < last:  # a worker that hangs, crashes or has grown is replaced
            for case in _watched(range(number, min(last, number + CASES_PER_PROCESS)), plan):
                yield case
                number = case.number + 1


def _check_good(report: Connection, plan: Plan) -> None:
    """Report what is wrong with good files, if anything."""
    scene, wrong = hr.open_scene(plan.good / "scene.tif"), list[str]()
    with warnings.catch_warnings(), dask.config.set(scheduler="synchronous"):
        warnings.simplefilter("ignore")
        for kind in plan.kinds:
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree(plan.good / kind, Path(folder, "case"))
                path = Path(folder, "case", (plan.good / f"{kind}.txt").read_text())
                result = verdict(path, scene)
                wrong += [] if result == "opened" else [f"{kind}: {result}"]
    report.send(wrong)


def _prepare(plan: Plan) -> None:
    """Raise unless every good file opens."""
    here, there = CONTEXT.Pipe(duplex=False)
    worker = CONTEXT.Process(target=_check_good, args=(there, plan))
    worker.start()
    wrong = here.recv()
    worker.join()
    if wrong:
        raise RuntimeError(f"Good files are not opened: {wrong}")


def _watched(numbers: range, plan: Plan) -> Iterator[Outcome]:
    """Yield the outcomes of one worker, until it is through or fails."""
    here, there = CONTEXT.Pipe(duplex=False)
    worker = CONTEXT.Process(target=_work, args=(there, numbers, plan))
    worker.start()
    there.close()
    try:
        here.recv()  # imported
        for number in numbers:
            name = plan.kinds[number % len(plan.kinds)]
            if not here.poll(PATIENCE):
                yield Outcome(number, name, "hang", PATIENCE)
                return
            try:
                result, seconds, megabytes = here.recv()
            except EOFError:
                worker.join()
                yield Outcome(number, name, f"crash: exit code {worker.exitcode}", 0.0)
                return
            yield Outcome(number, name, result, seconds, megabytes)
            if result.startswith("memory"):
                return
    finally:
        worker.kill()
        worker.join()


def table(cases: list[Outcome]) -> str:
    """Return the outcomes by group as a table of Markdown."""
    group_of = {kind: group for group, kinds in GROUPS.items() for kind in kinds}
    groups: dict[str, list[Outcome]] = {group: [] for group in ("rasters", *GROUPS)}
    for case in cases:
        groups[group_of.get(case.kind, "rasters")].append(case)
    lines = [
        "| files | damaged | opened | refused | anything else | slowest (s) | largest (MB) |",
        "|---|---|---|---|---|---|---|",
    ]
    for group, of_group in [*groups.items(), ("all", cases)]:
        counts = Counter(case.verdict for case in of_group)
        other = len(of_group) - sum(counts[verdict] for verdict in FINE)
        slowest = max((case.seconds for case in of_group), default=0.0)
        largest = max((case.megabytes for case in of_group), default=0.0)
        lines.append(
            f"| {group} | {len(of_group):,} | {counts['opened']:,} | {counts['refused']:,} | "
            f"{other} | {slowest:.1f} | {largest:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="how many files to damage")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="kinds of files, separated by commas")
    parser.add_argument("--keep", type=Path, help="a folder that gets every damaged file")
    options = parser.parse_args()
    cases: list[Outcome] = []
    kinds = options.only and options.only.split(",")
    for case in fuzz(
        options.n, first=options.first, seed=options.seed, keep=options.keep, kinds=kinds
    ):
        cases.append(case)
        if case.verdict not in FINE:
            sys.stdout.write(f"{case.number:6d} {case.kind}: {case.verdict[:300]}\n")
        if len(cases) % 1000 == 0:
            sys.stdout.write(f"{len(cases)} of seed {options.seed}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{table(cases)}\n")
    sys.exit(any(case.verdict not in FINE for case in cases))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
