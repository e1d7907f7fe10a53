"""Algorithms of the Processing toolbox that run the installed hsreject program."""

import os
import queue
import shutil
import signal
import subprocess
import threading
from pathlib import Path

from qgis.core import (
    QgsProcessing,
    QgsProcessingAlgorithm,
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingLayerPostProcessorInterface,
    QgsProcessingOutputRasterLayer,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterDefinition,
    QgsProcessingParameterEnum,
    QgsProcessingParameterFile,
    QgsProcessingParameterFolderDestination,
    QgsProcessingParameterMapLayer,
    QgsProcessingParameterNumber,
    QgsProcessingParameterRasterLayer,
    QgsProcessingParameterString,
    QgsProviderRegistry,
    QgsSettings,
    QgsVectorLayer,
)

EXECUTABLE, OUTPUT, OVERWRITE = "EXECUTABLE", "OUTPUT", "OVERWRITE"
SETTING = "hsreject/executable"  # where the program is remembered

# QGIS sets these for its own Python, GDAL and PROJ; hsreject brings others, which they would break.
_OF_QGIS = (
    "PYTHONHOME", "PYTHONPATH", "GDAL_DATA", "GDAL_DRIVER_PATH", "PROJ_LIB", "PROJ_DATA",
)  # fmt: skip
_PATIENCE = 10.0  # seconds that a cancelled program has to clean up
_SAYS = "hsreject: "  # how its warnings and errors begin
_ANY = "All files (*)"  # QGIS asks for a dot in the name otherwise
_VECTOR_FORMATS = ["gpkg", "shp", "geojson", "json"]

_ALIVE = []
_BANDS = ("exact", "nearest", "interpolate")
_GOALS = {
    "fraction": "Share of the pixels to reject",
    "accuracy": "Accuracy of the kept pixels, on the test pixels of the training scene",
    "rejection-cost": "Cost of a rejected pixel, if a wrong one costs 1",
    "threshold": "Smallest confidence to keep",
}
_MAPS = {
    "LABEL_WITH_REJECTION": "Map with rejection",
    "LABEL": "Map before rejection",
    "CONFIDENCE": "Confidence",
}
_LOADED = ("CONFIDENCE", "LABEL_WITH_REJECTION")  # from the bottom up


class _WithStyle(QgsProcessingLayerPostProcessorInterface):
    """Gives a loaded map the style that hsreject wrote beside it.

    QGIS ends each with its layer, so every layer needs one of its own, but does not keep the Python
    side alive until then.
    """

    def __init__(self):
        super().__init__()
        _ALIVE.append(self)

    def postProcessLayer(self, layer, context, feedback):
        layer.loadDefaultStyle()


class HsrejectAlgorithm(QgsProcessingAlgorithm):
    """What the commands share: the program, the folder for results, the run."""

    def createInstance(self):
        return type(self)()

    def add_common_parameters(self, folder):
        """Add the folder for results and, among the advanced parameters, the program."""
        self.addParameter(QgsProcessingParameterFolderDestination(OUTPUT, folder))
        self.add_advanced(
            QgsProcessingParameterBoolean(
                OVERWRITE, "Write into a folder that is not empty", defaultValue=False
            )
        )
        program = QgsProcessingParameterFile(
            EXECUTABLE,
            "The hsreject program (remembered once it has worked)",
            defaultValue=QgsSettings().value(SETTING, "hsreject"),
            fileFilter=_ANY,
        )
        self.add_advanced(program)

    def add_advanced(self, parameter):
        """Add a parameter to the part of the form that is folded at first."""
        advanced = QgsProcessingParameterDefinition.FlagAdvanced
        parameter.setFlags(parameter.flags() | advanced)
        self.addParameter(parameter)

    def run_command(self, command, parameters, context, feedback):
        """Run a command of hsreject and return the folder with its results."""
        folder = Path(self.parameterAsFileOutput(parameters, OUTPUT, context))
        given = self.parameterAsString(parameters, EXECUTABLE, context)
        program = shutil.which(str(Path(given or "hsreject").expanduser()))
        if program is None:
            raise QgsProcessingException(
                f"The program '{given}' was not found. Install hsreject, for example with "
                "'pip install hsreject' in an environment of its own, and give the path of its "
                "executable under the advanced parameters."
            )
        arguments = [program, *command, "--out", str(folder)]
        if self.parameterAsBool(parameters, OVERWRITE, context):
            arguments.append("--overwrite")
        stream_program(arguments, feedback)
        QgsSettings().setValue(SETTING, program)
        return folder


class MapScene(HsrejectAlgorithm):
    """``hsreject map``."""

    SCENE, MODEL, GOAL, VALUE = "SCENE", "MODEL", "GOAL", "VALUE"
    MATCH_BANDS, MEMORY = "MATCH_BANDS", "MEMORY"

    def name(self):
        return "map"

    def displayName(self):
        return "Map a scene"

    def shortHelpString(self):
        return (
            "Maps a hyperspectral scene with a model made by 'hsreject train', and rejects the "
            "pixels that it is least sure of. The folder gets label_with_rejection.tif, label.tif, "
            "confidence.tif and summary.toml; map and confidence are loaded with their style."
        )

    def initAlgorithm(self, _configuration=None):
        self.addParameter(
            QgsProcessingParameterFile(
                self.SCENE, "Scene: any file that hsreject opens", fileFilter=_ANY
            )
        )
        self.addParameter(
            QgsProcessingParameterFile(self.MODEL, "Model", fileFilter=f"Models (*.skops);;{_ANY}")
        )
        self.addParameter(
            QgsProcessingParameterEnum(
                self.GOAL, "What decides how much is rejected", list(_GOALS.values()),
                defaultValue=0,
            )
        )  # fmt: skip
        self.addParameter(
            QgsProcessingParameterNumber(
                self.VALUE, "Its value", QgsProcessingParameterNumber.Double, defaultValue=0.1
            )
        )
        self.add_advanced(
            QgsProcessingParameterEnum(
                self.MATCH_BANDS, "Bands of another instrument", list(_BANDS), defaultValue=0
            )
        )
        self.add_advanced(
            QgsProcessingParameterString(self.MEMORY, "Bound of the memory", defaultValue="2GB")
        )
        self.add_common_parameters("Folder for the maps")
        for name, title in _MAPS.items():
            self.addOutput(QgsProcessingOutputRasterLayer(name, title))

    def processAlgorithm(self, parameters, context, feedback):
        goal = list(_GOALS)[self.parameterAsEnum(parameters, self.GOAL, context)]
        bands = _BANDS[self.parameterAsEnum(parameters, self.MATCH_BANDS, context)]
        command = [
            "map", self.parameterAsFile(parameters, self.SCENE, context),
            "--model", self.parameterAsFile(parameters, self.MODEL, context),
            f"--{goal}", repr(self.parameterAsDouble(parameters, self.VALUE, context)),
            "--match-bands", bands,
            "--memory", self.parameterAsString(parameters, self.MEMORY, context),
        ]  # fmt: skip
        folder = self.run_command(command, parameters, context, feedback)
        paths = {name: str(folder / f"{name.lower()}.tif") for name in _MAPS}
        for name in _LOADED:
            details = QgsProcessingContext.LayerDetails(_MAPS[name], context.project(), name)
            details.setPostProcessor(_WithStyle())
            context.addLayerToLoadOnCompletion(paths[name], details)
        return {OUTPUT: str(folder), **paths}


class EvaluateMaps(HsrejectAlgorithm):
    """``hsreject evaluate``."""

    REFERENCE, ATTRIBUTE, LABELS = "REFERENCE", "ATTRIBUTE", "LABELS"
    CONFIDENCE, REJECTED = "CONFIDENCE", "REJECTED"
    REJECTION_COST, BLOCK_SIZE = "REJECTION_COST", "BLOCK_SIZE"

    def name(self):
        return "evaluate"

    def displayName(self):
        return "Evaluate a map with rejection"

    def shortHelpString(self):
        return (
            "Measures a classification with rejection, from any software, against a reference. "
            "Give the confidence for the whole curve, what is rejected for the map's own operating "
            "point, or both. The folder gets tables, curves and pictures; the log shows the table."
        )

    def initAlgorithm(self, _configuration=None):
        kinds = [
            QgsProcessing.TypeRaster,
            QgsProcessing.TypeVectorPoint,
            QgsProcessing.TypeVectorPolygon,
        ]
        self.addParameter(
            QgsProcessingParameterMapLayer(
                self.REFERENCE, "True classes: raster (0 is no reference), polygons or points",
                types=kinds,
            )
        )  # fmt: skip
        self.addParameter(
            QgsProcessingParameterString(
                self.ATTRIBUTE, "Attribute of polygons or points that holds the class",
                optional=True,
            )
        )  # fmt: skip
        for name, title in (
            (self.LABELS, "Assigned classes before rejection"),
            (self.CONFIDENCE, "Confidence of the labels, larger is surer"),
            (self.REJECTED, "What the map rejects: not 0 where it does"),
        ):
            optional = name != self.LABELS
            self.addParameter(QgsProcessingParameterRasterLayer(name, title, optional=optional))
        for name, title in (
            (self.REJECTION_COST, "Cost of a rejection, if an error costs 1"),
            (self.BLOCK_SIZE, "Adds 95 % bands: side, in pixels, of resampled blocks"),
        ):
            double = QgsProcessingParameterNumber.Double
            self.add_advanced(QgsProcessingParameterNumber(name, title, double, optional=True))
        self.add_common_parameters("Folder for tables, curves and pictures")

    def processAlgorithm(self, parameters, context, feedback):
        options = {
            "--reference": self.source(parameters, self.REFERENCE, context, feedback),
            "--labels": self.source(parameters, self.LABELS, context, feedback),
            "--confidence": self.source(parameters, self.CONFIDENCE, context, feedback),
            "--rejected": self.source(parameters, self.REJECTED, context, feedback),
            "--attribute": self.parameterAsString(parameters, self.ATTRIBUTE, context),
            "--rejection-cost": self.number(parameters, self.REJECTION_COST, context),
            "--block-size": self.number(parameters, self.BLOCK_SIZE, context),
        }
        given = [part for option in options.items() if option[1] for part in option]
        folder = self.run_command(["evaluate", *given], parameters, context, feedback)
        return {OUTPUT: str(folder)}

    def number(self, parameters, name, context):
        """Return a number as text, or None where the field is empty."""
        if parameters.get(name) is None:
            return None
        return repr(self.parameterAsDouble(parameters, name, context))

    def source(self, parameters, name, context, feedback):
        """Return the file behind a layer; vector layers that have none are exported."""
        layer = self.parameterAsLayer(parameters, name, context)
        if layer is None:
            return None
        if isinstance(layer, QgsVectorLayer):
            return self.parameterAsCompatibleSourceLayerPath(
                parameters, name, context, _VECTOR_FORMATS, "gpkg", feedback
            )
        parts = QgsProviderRegistry.instance().decodeUri(layer.providerType(), layer.source())
        path = parts.get("path")
        if not path or not Path(path).is_file():
            raise QgsProcessingException(
                f"The layer '{layer.name()}' is not a file. Save it as a GeoTIFF first."
            )
        return path


def stream_program(arguments, feedback):
    """Run a program, show its lines as they come, and end it when the user cancels."""
    feedback.pushCommandInfo(subprocess.list2cmdline(arguments))
    environment = {name: text for name, text in os.environ.items() if name not in _OF_QGIS}
    environment |= {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "120"}
    with subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        encoding="utf-8",
        errors="replace",
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # Windows
    ) as process:
        last = ""
        for line in _lines(process, feedback):
            if last.startswith(_SAYS):
                feedback.pushWarning(last.removeprefix(_SAYS))
            if line.endswith(" ..."):  # a stage begins
                feedback.setProgressText(line)
            elif not line.startswith(_SAYS):  # which may be the last word, and the error
                feedback.pushConsoleInfo(line)
            last = line
    if feedback.isCanceled():
        raise QgsProcessingException("Cancelled.")
    if process.returncode:
        raise QgsProcessingException(last.removeprefix(_SAYS) or f"{arguments[0]} failed.")


def _lines(process, feedback):
    """Yield the lines of a running program, and stop it when the user cancels."""
    told = queue.Queue()
    reader = threading.Thread(target=lambda: [*map(told.put, process.stdout), told.put(None)])
    reader.start()
    while True:
        if feedback.isCanceled() and process.poll() is None:
            _stop(process)
        try:
            line = told.get(timeout=0.2)
        except queue.Empty:
            continue
        if line is None:
            break
        yield line.rstrip("\n")
    reader.join()


def _stop(process):
    """End a program as Ctrl-C does, so that it removes what it has half written."""
    ends = [process.terminate, process.kill]
    if os.name != "nt":  # where a program without a console cannot be asked
        ends.insert(0, lambda: process.send_signal(signal.SIGINT))
    for end in ends:
        end()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            continue
        return
