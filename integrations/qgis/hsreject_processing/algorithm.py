"""One algorithm of the Processing toolbox: the form of a command, and what it loads."""

# flake8: noqa: E501 (lines of up to 100 characters)
from pathlib import Path

from qgis.core import (
    Qgis,
    QgsProcessing,
    QgsProcessingAlgorithm,
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingLayerPostProcessorInterface,
    QgsProcessingOutputMapLayer,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterDefinition,
    QgsProcessingParameterEnum,
    QgsProcessingParameterFile,
    QgsProcessingParameterFileDestination,
    QgsProcessingParameterFolderDestination,
    QgsProcessingParameterMapLayer,
    QgsProcessingParameterNumber,
    QgsProcessingParameterRasterLayer,
    QgsProcessingParameterString,
    QgsProviderRegistry,
    QgsVectorLayer,
)
from qgis.PyQt.QtGui import QIcon

from .forms import CHOICE, FILE, FOLDER, LAYER, NUMBER, RASTER, TEXT, TICK, WHOLE
from .program import find_program, run_program

EXECUTABLE, OUTPUT, OVERWRITE = "EXECUTABLE", "OUTPUT", "OVERWRITE"
ICON = str(Path(__file__).with_name("icon.svg"))
_VECTOR_FORMATS = ["gpkg", "shp", "geojson", "json"]
_ALIVE = []


def _member(scoped, name, older):
    """Return a member of an enum: QGIS 3.36 moved these into Qgis, and QGIS 4 has no others."""
    enum = getattr(Qgis, scoped, None)
    return older if enum is None else getattr(enum, name)


_ADVANCED = _member(
    "ProcessingParameterFlag", "Advanced",
    getattr(QgsProcessingParameterDefinition, "FlagAdvanced", None),
)  # fmt: skip
_DOUBLE, _INTEGER = (
    _member("ProcessingNumberParameterType", name,
            getattr(QgsProcessingParameterNumber, name, None))
    for name in ("Double", "Integer")
)  # fmt: skip
_SOURCES = [
    _member("ProcessingSourceType", name, getattr(QgsProcessing, f"Type{name}", None))
    for name in ("Raster", "VectorPoint", "VectorPolygon")
]


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
    """A command of hsreject."""

    def __init__(self, form):
        super().__init__()
        self.form = form

    def createInstance(self):
        return HsrejectAlgorithm(self.form)

    def name(self):
        return self.form.command

    def displayName(self):
        return self.form.title

    def shortHelpString(self):
        return f"{self.form.words}\n\nRuns: hsreject {self.form.command}"

    def icon(self):
        return QIcon(ICON)

    def initAlgorithm(self, _configuration=None):
        for field in self.form.fields:
            self._add(_parameter(field), advanced=field.advanced)
        if self.form.ending == FOLDER:
            output = QgsProcessingParameterFolderDestination(OUTPUT, self.form.output)
        else:
            kinds = f"{self.form.output} (*.{self.form.ending})"
            output = QgsProcessingParameterFileDestination(OUTPUT, self.form.output, kinds)
        self._add(output)
        replaced = "Replace what is already there"
        overwrite = QgsProcessingParameterBoolean(OVERWRITE, replaced, defaultValue=False)
        self._add(overwrite, advanced=True)
        program = QgsProcessingParameterFile(
            EXECUTABLE, "The hsreject program, if it is not found by itself", optional=True,
            fileFilter="All files (*)",
        )  # fmt: skip
        self._add(program, advanced=True)
        for name, title, _ in self.form.loaded + self.form.named:
            self.addOutput(QgsProcessingOutputMapLayer(name, title))

    def _add(self, parameter, *, advanced=False):
        if advanced:
            parameter.setFlags(parameter.flags() | _ADVANCED)
        self.addParameter(parameter)

    def processAlgorithm(self, parameters, context, feedback):
        program = find_program(self.parameterAsString(parameters, EXECUTABLE, context))
        target = Path(self.parameterAsFileOutput(parameters, OUTPUT, context))
        arguments = [self.form.command]
        values = {
            field.name: self._value(field, parameters, context, feedback)
            for field in self.form.fields
        }
        if "VALUE" in values:  # a choice that says which option a number is
            arguments += [f"--{values.pop('GOAL')}", values.pop("VALUE")]
        for field in self.form.fields:
            value = values.get(field.name)
            if value in (None, "", False):
                continue
            arguments += [part for part in (field.option, value) if part and part is not True]
        arguments += [self.form.option, str(target)]
        if self.parameterAsBool(parameters, OVERWRITE, context):
            arguments.append("--overwrite")
        run_program(program, arguments, feedback)
        results = {OUTPUT: str(target)}
        for name, title, inside in self.form.loaded + self.form.named:
            path = target / inside if inside else target
            if not path.is_file():
                continue
            results[name] = str(path)
            if (name, title, inside) in self.form.named:
                continue
            details = QgsProcessingContext.LayerDetails(title, context.project(), name)
            details.setPostProcessor(_WithStyle())
            context.addLayerToLoadOnCompletion(str(path), details)
        return results

    def _value(self, field, parameters, context, feedback):
        """Return what a field says as the command line has it; None where it is empty."""
        if parameters.get(field.name) is None and field.default is None:
            return None
        if field.kind in (RASTER, LAYER):
            return self._source(field.name, parameters, context, feedback)
        given = (parameters, field.name, context)
        read = {
            CHOICE: lambda: field.choices[self.parameterAsEnum(*given)],
            TICK: lambda: self.parameterAsBool(*given),
            WHOLE: lambda: str(self.parameterAsInt(*given)),
            NUMBER: lambda: repr(self.parameterAsDouble(*given)),
        }
        return read.get(field.kind, lambda: self.parameterAsString(*given))()

    def _source(self, name, parameters, context, feedback):
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


_KINDS = {
    FILE: QgsProcessingParameterFile,
    RASTER: QgsProcessingParameterRasterLayer,
    LAYER: QgsProcessingParameterMapLayer,
    TEXT: QgsProcessingParameterString,
    TICK: QgsProcessingParameterBoolean,
    CHOICE: QgsProcessingParameterEnum,
    WHOLE: QgsProcessingParameterNumber,
    NUMBER: QgsProcessingParameterNumber,
}


def _parameter(field):
    """Return the field of a form as QGIS has it."""
    own = {
        FILE: {"fileFilter": field.files},
        LAYER: {"types": _SOURCES},
        CHOICE: {"options": list(field.choices)},
        WHOLE: {"type": _INTEGER},
        NUMBER: {"type": _DOUBLE},
    }.get(field.kind, {})
    return _KINDS[field.kind](
        field.name, field.title, defaultValue=field.default, optional=field.optional, **own
    )
