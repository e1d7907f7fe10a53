"""Land-cover maps from hyperspectral images that say where they do not know.

Every public name is imported on first use, so that ``import hsreject`` is quick and quiet.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from hsreject.classes import ClassTable
    from hsreject.classify.features.contract import SampleTransformer, SceneTransformer
    from hsreject.classify.features.coordinates import Coordinates
    from hsreject.classify.features.mnf import MNF
    from hsreject.classify.features.normalize import Normalize
    from hsreject.classify.features.pca import PCA
    from hsreject.classify.features.resample_bands import ResampleBands
    from hsreject.classify.features.scale import Scale
    from hsreject.classify.features.select_bands import SelectBands
    from hsreject.classify.features.smooth import Smooth
    from hsreject.classify.model_file import load_model, save_model
    from hsreject.classify.nearest_neighbour import NearestNeighbour
    from hsreject.classify.regression_path import RegressionPath
    from hsreject.classify.scene_classifier import SceneClassifier
    from hsreject.classify.smlr import SparseMultinomialRegression
    from hsreject.classify.smlr_cv import SparseMultinomialRegressionCV
    from hsreject.classify.support_vector_machine import SupportVectorMachine
    from hsreject.context.priors.base import Prior
    from hsreject.context.priors.graph_tv import GraphTV
    from hsreject.context.priors.structure_tensor import StructureTensor
    from hsreject.context.priors.vector_tv import VectorTV
    from hsreject.context.result import SegSALSAResult
    from hsreject.context.segsalsa import SegSALSA
    from hsreject.datasets.indian_pines import load_indian_pines
    from hsreject.datasets.scenes import fetch_scene, load_scene
    from hsreject.datasets.synthetic import synthetic_scene
    from hsreject.errors import HsrejectError
    from hsreject.io.labels import open_labels
    from hsreject.io.map_reader import open_map
    from hsreject.io.map_writer import write_map, write_maps
    from hsreject.io.netcdf import open_dataset, write_dataset
    from hsreject.io.scene import open_scene
    from hsreject.mapping.map_model import MapModel
    from hsreject.mapping.map_scene import SceneMap, map_scene
    from hsreject.mapping.model_file import load_map_model, save_map_model
    from hsreject.mapping.summary import MapSummary
    from hsreject.mapping.train import train
    from hsreject.measures.by_class import rejection_curve_by_class
    from hsreject.measures.choosing import (
        cheapest_operating_point,
        highest_quality_point,
        point_for_accuracy,
        point_for_fraction,
    )
    from hsreject.measures.comparison import Comparison, Verdict, compare
    from hsreject.measures.confusion import Agreement, confusion_matrix, kept_agreement
    from hsreject.measures.cost import (
        break_even_cost,
        cost_curve,
        cost_envelope,
        minimum_cost_without_rejection,
    )
    from hsreject.measures.curve import rejection_curve
    from hsreject.measures.curve_table import curve_of_points
    from hsreject.measures.operating_set import operating_set
    from hsreject.measures.optimality import relative_optimality, relative_optimality_pairs
    from hsreject.measures.point import OperatingPoint, operating_point
    from hsreject.measures.resampling import Resampling
    from hsreject.measures.samples import EvaluationSamples, evaluation_samples
    from hsreject.measures.stratum import stratified_weights
    from hsreject.measures.streaming import streamed_rejection_curve
    from hsreject.measures.summary import accuracy_at, aurc, excess_aurc
    from hsreject.measures.uncertainty import bootstrap_curve, bootstrap_difference
    from hsreject.pipeline.run import run
    from hsreject.plot.break_even_cost import BreakEvenCostDisplay
    from hsreject.plot.class_map import ClassMapDisplay, RejectMapDisplay
    from hsreject.plot.confidence_map import ConfidenceMapDisplay
    from hsreject.plot.confusion import RejectionConfusionDisplay
    from hsreject.plot.cost_envelope import CostEnvelopeDisplay
    from hsreject.plot.false_color import FalseColorDisplay
    from hsreject.plot.operating_set import OperatingSetDisplay
    from hsreject.plot.outcome_map import OutcomeMapDisplay
    from hsreject.plot.rejection_curve import RejectionCurveDisplay
    from hsreject.plot.relative_optimality import RelativeOptimalityDisplay
    from hsreject.rejection.calibration import Calibration
    from hsreject.rejection.comparison import compare_rejectors
    from hsreject.rejection.joint import JointRejector
    from hsreject.rejection.novelty import Novelty
    from hsreject.rejection.pixelwise import PixelwiseRejector
    from hsreject.rejection.sequential import SequentialRejector
    from hsreject.report.evaluation import Evaluation, evaluate
    from hsreject.report.evaluation_files import evaluate_files
    from hsreject.report.evaluation_folder import write_evaluation
    from hsreject.sampling.blocks import sample_blocks
    from hsreject.sampling.classwise import sample_fraction, sample_per_class
    from hsreject.sampling.split import given_split

# name -> module that defines it; the block above says the same to type checkers
_HOME = {
    "MNF": "hsreject.classify.features.mnf",
    "PCA": "hsreject.classify.features.pca",
    "Agreement": "hsreject.measures.confusion",
    "BreakEvenCostDisplay": "hsreject.plot.break_even_cost",
    "Calibration": "hsreject.rejection.calibration",
    "ClassMapDisplay": "hsreject.plot.class_map",
    "ClassTable": "hsreject.classes",
    "Comparison": "hsreject.measures.comparison",
    "ConfidenceMapDisplay": "hsreject.plot.confidence_map",
    "Coordinates": "hsreject.classify.features.coordinates",
    "CostEnvelopeDisplay": "hsreject.plot.cost_envelope",
    "Evaluation": "hsreject.report.evaluation",
    "EvaluationSamples": "hsreject.measures.samples",
    "FalseColorDisplay": "hsreject.plot.false_color",
    "GraphTV": "hsreject.context.priors.graph_tv",
    "HsrejectError": "hsreject.errors",
    "JointRejector": "hsreject.rejection.joint",
    "MapModel": "hsreject.mapping.map_model",
    "MapSummary": "hsreject.mapping.summary",
    "NearestNeighbour": "hsreject.classify.nearest_neighbour",
    "Normalize": "hsreject.classify.features.normalize",
    "Novelty": "hsreject.rejection.novelty",
    "OperatingPoint": "hsreject.measures.point",
    "OperatingSetDisplay": "hsreject.plot.operating_set",
    "OutcomeMapDisplay": "hsreject.plot.outcome_map",
    "PixelwiseRejector": "hsreject.rejection.pixelwise",
    "Prior": "hsreject.context.priors.base",
    "RegressionPath": "hsreject.classify.regression_path",
    "RejectMapDisplay": "hsreject.plot.class_map",
    "RejectionConfusionDisplay": "hsreject.plot.confusion",
    "RejectionCurveDisplay": "hsreject.plot.rejection_curve",
    "RelativeOptimalityDisplay": "hsreject.plot.relative_optimality",
    "ResampleBands": "hsreject.classify.features.resample_bands",
    "Resampling": "hsreject.measures.resampling",
    "SampleTransformer": "hsreject.classify.features.contract",
    "Scale": "hsreject.classify.features.scale",
    "SceneClassifier": "hsreject.classify.scene_classifier",
    "SceneMap": "hsreject.mapping.map_scene",
    "SceneTransformer": "hsreject.classify.features.contract",
    "SegSALSA": "hsreject.context.segsalsa",
    "SegSALSAResult": "hsreject.context.result",
    "SelectBands": "hsreject.classify.features.select_bands",
    "SequentialRejector": "hsreject.rejection.sequential",
    "Smooth": "hsreject.classify.features.smooth",
    "SparseMultinomialRegression": "hsreject.classify.smlr",
    "SparseMultinomialRegressionCV": "hsreject.classify.smlr_cv",
    "StructureTensor": "hsreject.context.priors.structure_tensor",
    "SupportVectorMachine": "hsreject.classify.support_vector_machine",
    "VectorTV": "hsreject.context.priors.vector_tv",
    "Verdict": "hsreject.measures.comparison",
    "accuracy_at": "hsreject.measures.summary",
    "aurc": "hsreject.measures.summary",
    "bootstrap_curve": "hsreject.measures.uncertainty",
    "bootstrap_difference": "hsreject.measures.uncertainty",
    "break_even_cost": "hsreject.measures.cost",
    "cheapest_operating_point": "hsreject.measures.choosing",
    "compare": "hsreject.measures.comparison",
    "confusion_matrix": "hsreject.measures.confusion",
    "compare_rejectors": "hsreject.rejection.comparison",
    "cost_curve": "hsreject.measures.cost",
    "cost_envelope": "hsreject.measures.cost",
    "curve_of_points": "hsreject.measures.curve_table",
    "evaluate": "hsreject.report.evaluation",
    "evaluate_files": "hsreject.report.evaluation_files",
    "evaluation_samples": "hsreject.measures.samples",
    "excess_aurc": "hsreject.measures.summary",
    "fetch_scene": "hsreject.datasets.scenes",
    "given_split": "hsreject.sampling.split",
    "highest_quality_point": "hsreject.measures.choosing",
    "kept_agreement": "hsreject.measures.confusion",
    "load_indian_pines": "hsreject.datasets.indian_pines",
    "load_map_model": "hsreject.mapping.model_file",
    "load_model": "hsreject.classify.model_file",
    "load_scene": "hsreject.datasets.scenes",
    "map_scene": "hsreject.mapping.map_scene",
    "minimum_cost_without_rejection": "hsreject.measures.cost",
    "open_dataset": "hsreject.io.netcdf",
    "open_labels": "hsreject.io.labels",
    "open_map": "hsreject.io.map_reader",
    "open_scene": "hsreject.io.scene",
    "operating_point": "hsreject.measures.point",
    "operating_set": "hsreject.measures.operating_set",
    "point_for_accuracy": "hsreject.measures.choosing",
    "point_for_fraction": "hsreject.measures.choosing",
    "rejection_curve": "hsreject.measures.curve",
    "rejection_curve_by_class": "hsreject.measures.by_class",
    "relative_optimality": "hsreject.measures.optimality",
    "relative_optimality_pairs": "hsreject.measures.optimality",
    "run": "hsreject.pipeline.run",
    "sample_blocks": "hsreject.sampling.blocks",
    "sample_fraction": "hsreject.sampling.classwise",
    "sample_per_class": "hsreject.sampling.classwise",
    "save_map_model": "hsreject.mapping.model_file",
    "save_model": "hsreject.classify.model_file",
    "stratified_weights": "hsreject.measures.stratum",
    "streamed_rejection_curve": "hsreject.measures.streaming",
    "synthetic_scene": "hsreject.datasets.synthetic",
    "train": "hsreject.mapping.train",
    "write_dataset": "hsreject.io.netcdf",
    "write_evaluation": "hsreject.report.evaluation_folder",
    "write_map": "hsreject.io.map_writer",
    "write_maps": "hsreject.io.map_writer",
}

__all__ = [
    "MNF",
    "PCA",
    "Agreement",
    "BreakEvenCostDisplay",
    "Calibration",
    "ClassMapDisplay",
    "ClassTable",
    "Comparison",
    "ConfidenceMapDisplay",
    "Coordinates",
    "CostEnvelopeDisplay",
    "Evaluation",
    "EvaluationSamples",
    "FalseColorDisplay",
    "GraphTV",
    "HsrejectError",
    "JointRejector",
    "MapModel",
    "MapSummary",
    "NearestNeighbour",
    "Normalize",
    "Novelty",
    "OperatingPoint",
    "OperatingSetDisplay",
    "OutcomeMapDisplay",
    "PixelwiseRejector",
    "Prior",
    "RegressionPath",
    "RejectMapDisplay",
    "RejectionConfusionDisplay",
    "RejectionCurveDisplay",
    "RelativeOptimalityDisplay",
    "ResampleBands",
    "Resampling",
    "SampleTransformer",
    "Scale",
    "SceneClassifier",
    "SceneMap",
    "SceneTransformer",
    "SegSALSA",
    "SegSALSAResult",
    "SelectBands",
    "SequentialRejector",
    "Smooth",
    "SparseMultinomialRegression",
    "SparseMultinomialRegressionCV",
    "StructureTensor",
    "SupportVectorMachine",
    "VectorTV",
    "Verdict",
    "__version__",
    "accuracy_at",
    "aurc",
    "bootstrap_curve",
    "bootstrap_difference",
    "break_even_cost",
    "cheapest_operating_point",
    "compare",
    "compare_rejectors",
    "confusion_matrix",
    "cost_curve",
    "cost_envelope",
    "curve_of_points",
    "evaluate",
    "evaluate_files",
    "evaluation_samples",
    "excess_aurc",
    "fetch_scene",
    "given_split",
    "highest_quality_point",
    "kept_agreement",
    "load_indian_pines",
    "load_map_model",
    "load_model",
    "load_scene",
    "map_scene",
    "minimum_cost_without_rejection",
    "open_dataset",
    "open_labels",
    "open_map",
    "open_scene",
    "operating_point",
    "operating_set",
    "point_for_accuracy",
    "point_for_fraction",
    "rejection_curve",
    "rejection_curve_by_class",
    "relative_optimality",
    "relative_optimality_pairs",
    "run",
    "sample_blocks",
    "sample_fraction",
    "sample_per_class",
    "save_map_model",
    "save_model",
    "stratified_weights",
    "streamed_rejection_curve",
    "synthetic_scene",
    "train",
    "write_dataset",
    "write_evaluation",
    "write_map",
    "write_maps",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'hsreject' has no attribute '{name}'")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
