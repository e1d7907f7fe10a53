"""Features: what is done to a cube before it is classified; one file each, listed once."""

from hsreject.classify.features.contract import SampleTransformer, SceneTransformer
from hsreject.classify.features.coordinates import Coordinates
from hsreject.classify.features.mnf import MNF
from hsreject.classify.features.normalize import Normalize
from hsreject.classify.features.pca import PCA
from hsreject.classify.features.resample_bands import ResampleBands
from hsreject.classify.features.scale import Scale
from hsreject.classify.features.select_bands import SelectBands
from hsreject.classify.features.smooth import Smooth
from hsreject.registry import Registry

__all__ = [
    "FEATURES",
    "MNF",
    "PCA",
    "Coordinates",
    "Normalize",
    "ResampleBands",
    "SampleTransformer",
    "Scale",
    "SceneTransformer",
    "SelectBands",
    "Smooth",
]

FEATURES: Registry[SceneTransformer] = Registry(
    "feature",
    {
        "mnf": MNF,
        "pca": PCA,
        "scale": Scale,
        "normalize": Normalize,
        "select_bands": SelectBands,
        "smooth": Smooth,
        "coordinates": Coordinates,
    },
)
