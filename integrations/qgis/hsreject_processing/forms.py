"""The commands of hsreject as forms: what each asks for, and what QGIS loads of what it writes."""

# flake8: noqa: E501 (lines of up to 100 characters)
from typing import NamedTuple

FILE, RASTER, LAYER, TEXT, NUMBER, WHOLE, TICK, CHOICE = (
    "file", "raster", "layer", "text", "number", "whole", "tick", "choice",
)  # fmt: skip
FOLDER = "folder"


class Field(NamedTuple):
    """One field of a form, and the option of the command that it becomes."""

    name: str
    kind: str
    title: str
    option: str  # "" for an argument without a name
    optional: bool = False
    default: object = None
    advanced: bool = False
    choices: tuple = ()  # of a choice: what the option says
    files: str = "All files (*)"  # what a file dialogue shows


class Form(NamedTuple):
    """A command."""

    command: str
    title: str
    words: str
    fields: tuple
    output: str  # what the file or the folder of results is called
    ending: str = FOLDER  # of the file that is written, or FOLDER
    option: str = "--out"
    loaded: tuple = ()  # (output, title, file inside the folder or ""): loaded, from the bottom up
    named: tuple = ()  # the same of what is only named as a result, for other algorithms


_TOML = "Configurations (*.toml);;All files (*)"
_POINTS = "Points (*.gpkg *.geojson *.csv);;All files (*)"
_MODEL = "Models (*.skops);;All files (*)"
_JSON = "Certificates (*.json);;All files (*)"

_SCENE = Field("SCENE", FILE, "Scene: any file that hsreject opens", "--scene")
_MAP = Field("LABELS", RASTER, "Label map", "")
_CONFIDENCE = Field(
    "CONFIDENCE", RASTER, "Confidence of the labels, larger is surer", "--confidence"
)
_SAMPLE = Field("SAMPLE", FILE, "Labelled points", "--sample", files=_POINTS)
_ATTRIBUTE = Field(
    "ATTRIBUTE",
    TEXT,
    "Attribute of polygons or points that holds the class",
    "--attribute",
    optional=True,
)
_EXCLUDE = Field(
    "EXCLUDE",
    LAYER,
    "Never sampled: training pixels (raster, polygons, points)",
    "--exclude",
    optional=True,
)
_LEVEL = Field(
    "CONFIDENCE_LEVEL", NUMBER, "How sure the promise is", "--confidence-level", optional=True,
    advanced=True,
)  # fmt: skip

FORMS = (
    Form(
        "init",
        "1 Draft a configuration",
        "Looks at a scene and its labels and writes a configuration (.toml) to read, to change and "
        "to run.",
        (
            _SCENE._replace(option=""),
            Field("LABELS", LAYER, "Reference: raster (0 is none), polygons or points", ""),
            _ATTRIBUTE,
            Field("GOAL", TEXT, "Goal, such as accuracy=0.95", "--goal", optional=True),
            Field(
                "NAMES",
                TEXT,
                "Names of the classes: corn,soil or 1=corn",
                "--names",
                optional=True,
                advanced=True,
            ),
        ),
        "Configuration",
        "toml",
    ),
    Form(
        "run",
        "2 Run a configuration",
        "Maps the scene of a configuration, measures the map and writes a report. The delivered "
        "map (maps/map.tif) and the one without holes (maps/map_filled.tif) are loaded. Started "
        "again, it goes on from what is finished.",
        (
            Field("CONFIG", FILE, "Configuration", "", files=_TOML),
            Field("GOAL", TEXT, "Another goal, such as accuracy=0.95", "--goal", optional=True),
            Field(
                "ADD",
                FILE,
                "Answers to 'Where to label next', to train on, too",
                "--add",
                optional=True,
                files=_POINTS,
            ),
            Field(
                "NEW_CLASS",
                TEXT,
                "A name in them that becomes a class",
                "--new-class",
                optional=True,
                advanced=True,
            ),
        ),
        "Folder for maps and report",
        loaded=(
            ("FILLED", "Map without holes", "maps/map_filled.tif"),
            ("MAP", "Map with rejection", "maps/map.tif"),
        ),
    ),
    Form(
        "train",
        "Train a model",
        "Trains what can be carried to other scenes and writes it into one file.",
        (Field("CONFIG", FILE, "Configuration", "", files=_TOML),),
        "Model",
        "skops",
        "--model",
    ),
    Form(
        "map",
        "Map a scene",
        "Maps a hyperspectral scene with a model made by 'Train a model', and rejects the pixels "
        "that it is least sure of. The folder gets label_with_rejection.tif, label.tif, "
        "confidence.tif and summary.toml; map and confidence are loaded with their style.",
        (
            _SCENE._replace(option=""),
            Field("MODEL", FILE, "Model", "--model", files=_MODEL),
            Field(
                "GOAL",
                CHOICE,
                "What decides how much is rejected",
                "",
                default=0,
                choices=("fraction", "accuracy", "rejection-cost", "threshold"),
            ),
            Field("VALUE", NUMBER, "Its value", "", default=0.1),
            Field(
                "SAMPLE",
                FILE,
                "Labelled points of this scene, which an accuracy or a cost needs",
                "--sample",
                optional=True,
                files=_POINTS,
            ),
            Field(
                "ASSUME_ALIKE",
                TICK,
                "Take accuracy or cost as the training scene has it",
                "--assume-alike",
                default=False,
                advanced=True,
            ),
            Field(
                "MATCH_BANDS",
                CHOICE,
                "Bands of another instrument",
                "--match-bands",
                default=0,
                advanced=True,
                choices=("exact", "nearest", "interpolate"),
            ),
            Field("MEMORY", TEXT, "Bound of the memory", "--memory", default="2GB", advanced=True),
        ),
        "Folder for the maps",
        loaded=(
            ("CONFIDENCE", "Confidence", "confidence.tif"),
            ("LABEL_WITH_REJECTION", "Map with rejection", "label_with_rejection.tif"),
        ),
        named=(("LABEL", "Map before rejection", "label.tif"),),
    ),
    Form(
        "evaluate",
        "Evaluate a map with rejection",
        "Measures a classification with rejection, from any software, against a reference. Give "
        "the confidence for the whole curve, what is rejected for the map's own operating point, "
        "or both. The folder gets tables, curves and pictures; the log shows the table.",
        (
            Field(
                "REFERENCE",
                LAYER,
                "True classes: raster (0 is none), polygons or points",
                "--reference",
            ),
            _ATTRIBUTE,
            _MAP._replace(option="--labels", title="Assigned classes before rejection"),
            _CONFIDENCE._replace(optional=True),
            Field(
                "REJECTED",
                RASTER,
                "What the map rejects: not 0 where it does",
                "--rejected",
                optional=True,
            ),
            Field(
                "REJECTION_COST",
                NUMBER,
                "Cost of a rejection, if an error costs 1",
                "--rejection-cost",
                optional=True,
                advanced=True,
            ),
            Field(
                "BLOCK_SIZE",
                NUMBER,
                "Side, in pixels, of blocks whose pixels err together",
                "--block-size",
                optional=True,
                advanced=True,
            ),
        ),
        "Folder for tables, curves and pictures",
    ),
    Form(
        "sample",
        "4 Draw a sample to label",
        "Draws pixels of a map at random, to be labelled without looking at the map. Sieve the map "
        "before, not after.",
        (
            _MAP,
            Field("N", WHOLE, "Number of points", "--n", default=400),
            _CONFIDENCE._replace(optional=True),
            Field(
                "FOR_PROMISE",
                NUMBER,
                "Draw where it counts for a promise of this error",
                "--for-promise",
                optional=True,
            ),
            _EXCLUDE,
            _ATTRIBUTE,
            Field("SEED", WHOLE, "Seed", "--seed", optional=True, default=0, advanced=True),
        ),
        "Points",
        "gpkg",
        loaded=(("POINTS", "Sample", ""),),
    ),
    Form(
        "label",
        "5 Make a page to label points on",
        "Writes one HTML file on which points are labelled without a network; it saves a CSV file.",
        (
            Field(
                "POINTS", FILE, "Points of a sample, or of 'Where to label next'", "", files=_POINTS
            ),
            _SCENE,
            _MAP._replace(option="--labels"),
        ),
        "Page",
        "html",
    ),
    Form(
        "certify",
        "6 Certify a map",
        "Finds the largest part of a map of which few pixels are wrong, with confidence.",
        (
            _MAP._replace(option="--labels"),
            _CONFIDENCE,
            _SAMPLE,
            Field(
                "MAX_ERROR",
                NUMBER,
                "Share of the kept pixels that may be wrong",
                "--max-error",
                optional=True,
            ),
            _LEVEL,
            _EXCLUDE,
            _ATTRIBUTE,
            Field(
                "MORE",
                WHOLE,
                "Points to add to the sample, if its plan asks for them",
                "--more",
                optional=True,
                advanced=True,
            ),
        ),
        "Folder for certificate and map",
    ),
    Form(
        "assess",
        "7 Accuracies and areas",
        "Estimates accuracies and the area of each class from a labelled sample, with intervals.",
        (_MAP, _SAMPLE, _LEVEL._replace(title="Of the intervals")),
        "Folder for tables and picture",
    ),
    Form(
        "next",
        "3 Where to label next",
        "Asks for the labels that would help most to reject less: the centres of the largest "
        "rejected regions, with reasons. Fill in the column 'reference', and run the configuration "
        "again with these points. They train; they are not a sample.",
        (
            Field("LABELS", RASTER, "map_filled.tif of a run, or a map with rejection", ""),
            Field("N", WHOLE, "How many points", "--n", default=20),
            _EXCLUDE._replace(kind=RASTER, title="Training pixels: never asked about"),
            _SCENE._replace(title="Scene: makes a page to label on, too", optional=True),
        ),
        "Points",
        "gpkg",
        loaded=(("POINTS", "Where to label next", ""),),
    ),
    Form(
        "polygons",
        "8 Polygons of a map",
        "Turns a map into polygons with class, area, confidence and share rejected. With a minimum "
        "area small regions join a neighbour.",
        (
            _MAP,
            Field(
                "MINIMUM_AREA",
                TEXT,
                "Minimum area, such as 0.25ha or 12px",
                "--minimum-area",
                optional=True,
            ),
            _CONFIDENCE._replace(optional=True),
        ),
        "Polygons",
        "gpkg",
        loaded=(("POLYGONS", "Polygons", ""),),
    ),
    Form(
        "explore",
        "Make an interactive page",
        "Writes one HTML file in which a reader rejects more or less and sees what that is worth.",
        (
            _MAP._replace(option="--labels", title="Assigned classes before rejection"),
            _CONFIDENCE,
            Field("REFERENCE", LAYER, "True classes to measure on", "--reference", optional=True),
            _ATTRIBUTE,
            _SCENE._replace(optional=True),
        ),
        "Page",
        "html",
    ),
)
