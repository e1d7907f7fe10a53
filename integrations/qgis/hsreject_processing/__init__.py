"""A plugin of QGIS: hsreject in the Processing toolbox."""

from pathlib import Path

from qgis.core import QgsApplication, QgsProcessingProvider
from qgis.PyQt.QtGui import QIcon

from .algorithm import HsrejectAlgorithm
from .forms import FORMS

ICON = str(Path(__file__).with_name("icon.svg"))


class HsrejectProvider(QgsProcessingProvider):
    """The group of the toolbox."""

    def id(self):
        return "hsreject"

    def name(self):
        return "hsreject"

    def longName(self):
        return "hsreject: land cover with rejection"

    def icon(self):
        return QIcon(ICON)

    def loadAlgorithms(self):
        for form in FORMS:
            self.addAlgorithm(HsrejectAlgorithm(form))


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
