"""A plugin of QGIS: hsreject in the Processing toolbox."""

from qgis.core import QgsApplication, QgsProcessingProvider

from .hsreject_algorithms import EvaluateMaps, MapScene


class HsrejectProvider(QgsProcessingProvider):
    """The group of the toolbox."""

    def id(self):
        return "hsreject"

    def name(self):
        return "hsreject"

    def loadAlgorithms(self):
        self.addAlgorithm(MapScene())
        self.addAlgorithm(EvaluateMaps())


class HsrejectPlugin:
    """What QGIS switches on and off."""

    def __init__(self):
        self.provider = None

    def initProcessing(self):
        self.provider = HsrejectProvider()
        QgsApplication.processingRegistry().addProvider(self.provider)

    def initGui(self):
        self.initProcessing()

    def unload(self):
        QgsApplication.processingRegistry().removeProvider(self.provider)


def classFactory(_iface):
    """Return the plugin: the function that QGIS calls."""
    return HsrejectPlugin()
