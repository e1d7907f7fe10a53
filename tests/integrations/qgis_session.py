"""Run by the Python of QGIS, off-screen: does tasks that it gets as JSON, answers in JSON."""

import json
import os
import sys
from collections import Counter
from pathlib import Path

from hsreject_processing import classFactory
from processing.gui.Postprocessing import handleAlgorithmResults
from qgis.core import (
    QgsApplication,
    QgsFeatureRequest,
    QgsLayerTreeLayer,
    QgsMapLayerLegend,
    QgsMapRendererSequentialJob,
    QgsMapSettings,
    QgsProcessingContext,
    QgsProcessingFeedback,
    QgsProject,
    QgsRasterLayer,
    QgsVectorLayer,
)
from qgis.PyQt.QtCore import QSize
from qgis.PyQt.QtGui import QColor


def legend(layer):
    """Return the names and colours that the legend of a layer shows, and how many nodes it has."""
    if isinstance(layer, QgsVectorLayer):
        return ["vector", layer.featureCount(), [field.name() for field in layer.fields()]]
    nodes = QgsMapLayerLegend.defaultRasterLegend(layer).createLayerTreeModelLegendNodes(
        QgsLayerTreeLayer(layer)
    )
    shown = [(name, color.name()) for name, color in layer.renderer().legendSymbologyItems()]
    return [layer.renderer().type(), len(nodes), shown]


def draw(path):
    """Return the legend of a map, and how often each colour occurs when it is drawn 1:1."""
    layer = QgsRasterLayer(path, "map")
    settings = QgsMapSettings()
    settings.setLayers([layer])
    settings.setExtent(layer.extent())
    settings.setOutputSize(QSize(layer.width(), layer.height()))
    settings.setBackgroundColor(QColor("#ff00ff"))
    job = QgsMapRendererSequentialJob(settings)
    job.start()
    job.waitForFinished()
    image = job.renderedImage()
    drawn = Counter(
        image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())
    )
    return {"legend": legend(layer), "drawn": drawn}


class Feedback(QgsProcessingFeedback):
    """Writes down what a user sees, and cancels when a stage begins."""

    def __init__(self, cancel_at):
        super().__init__(False)  # noqa: FBT003 (whether QGIS logs it, too)
        self.cancel_at = cancel_at
        self.told = []

    def setProgressText(self, text):
        self.told.append(text)
        if text == self.cancel_at:
            self.cancel()

    def pushWarning(self, text):
        self.told.append(f"warning: {text}")

    def pushConsoleInfo(self, text):
        self.told.append(text)

    def reportError(self, text, fatalError=False):  # noqa: FBT002
        self.told.append(f"error: {text}")


def run(algorithm, parameters, cancel_at=None, polygons=None):
    """Run an algorithm and return its results, what it told, and the legends of loaded layers."""
    context, feedback = QgsProcessingContext(), Feedback(cancel_at)
    QgsProject.instance().clear()
    context.setProject(QgsProject.instance())
    context.setFeedback(feedback)
    if polygons is not None:  # as a layer that has no file
        layer = QgsVectorLayer(polygons, "stored").materialize(QgsFeatureRequest())
        parameters["REFERENCE"] = context.temporaryLayerStore().addMapLayer(layer).id()
    found = QgsApplication.processingRegistry().createAlgorithmById(algorithm)
    fits, why = found.checkParameterValues(parameters, context)
    if not fits:
        return {"ok": False, "told": [why]}
    results, ok = found.run(parameters, context, feedback)
    loaded = {}
    if ok:
        handleAlgorithmResults(found, context, feedback)
        layers = QgsProject.instance().mapLayers().values()
        loaded = {layer.name(): legend(layer) for layer in layers}
    return {"ok": ok, "results": results, "told": feedback.told, "loaded": loaded}


def main():
    """Do tasks: each is the name of a function above and its arguments."""
    question, answer = map(Path, sys.argv[1:])
    tasks = json.loads(question.read_text("utf-8"))
    application = QgsApplication([], True)  # noqa: FBT003 (with widgets)
    application.initQgis()
    plugin = classFactory(None)
    plugin.initProcessing()
    known = {"draw": draw, "run": run}
    answer.write_text(json.dumps([known[name](**arguments) for name, arguments in tasks]), "utf-8")
    os._exit(0)  # QGIS may crash while Python's objects are taken down


main()
