"""Features: what is done to a cube before it is classified, by name."""

from hsreject.features.components import MNF, PCA
from hsreject.features.diffusion import Diffuse
from hsreject.features.spatial import Coordinates, Smooth
from hsreject.features.spectra import Normalize, Scale, SelectBands
from hsreject.features.transformer import SceneTransformer
from hsreject.registry import Registry

__all__ = ["FEATURES"]

FEATURES: Registry[SceneTransformer] = Registry(
    "feature",
    {
        "mnf": MNF,
        "pca": PCA,
        "scale": Scale,
        "normalize": Normalize,
        "select_bands": SelectBands,
        "smooth": Smooth,
        "diffuse": Diffuse,
        "coordinates": Coordinates,
    },
)
