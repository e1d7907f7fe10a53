"""The paper's experiments, made again. A new figure is a file and a line in `FIGURES`.

A figure is a function whose options all have defaults and that returns a :class:`PaperFigure`. One
that takes long has an option ``progress``, a :class:`hsreject.progress.ProgressCallback`.
"""

from hsreject.experiments.figure_2 import operating_set_figure
from hsreject.experiments.figure_3 import samples_figure
from hsreject.experiments.figure_4 import curves_figure
from hsreject.experiments.figure_5 import optimality_figure
from hsreject.experiments.figure_6 import scene_figure
from hsreject.experiments.figure_7 import scene_curves_figure
from hsreject.experiments.figure_8 import scene_optimality_figure
from hsreject.experiments.four_gaussians import FourGaussians
from hsreject.experiments.indian_pines import IndianPinesExperiment
from hsreject.experiments.paper_figure import PaperFigure
from hsreject.registry import Registry

FIGURES: Registry[PaperFigure] = Registry(
    "figure",
    {
        "2": operating_set_figure,
        "3": samples_figure,
        "4": curves_figure,
        "5": optimality_figure,
        "6": scene_figure,
        "7": scene_curves_figure,
        "8": scene_optimality_figure,
    },
)

__all__ = ["FIGURES", "FourGaussians", "IndianPinesExperiment", "PaperFigure"]
