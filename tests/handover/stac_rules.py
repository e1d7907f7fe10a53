"""What extensions of STAC ask of an item, in our words, as JSON schemas.

No package carries the schemas that the extensions publish, and tests have no network. The schemas
below say what each asks of an item: which fields of its prefix there are, of which type, and
which must be there. The fields may stand in the properties of an item, in its assets and in their
bands; another field of the prefix is refused.
"""

import jsonschema

TEXT, NUMBER, WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}
DATE = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}
NUMBERS = {"type": "array", "items": NUMBER}
FILLED_TEXT = {"type": "string", "minLength": 1}

CLASS = {
    "type": "object",
    "required": ["value", "name"],
    "properties": {
        "value": WHOLE,
        "name": {"type": "string", "pattern": "^[0-9A-Za-z_-]+$"},
        "title": TEXT,
        "description": TEXT,
        "color_hint": {"type": "string", "pattern": "^[0-9A-F]{6}$"},
        "nodata": {"type": "boolean"},
        "percentage": NUMBER,
        "count": WHOLE,
    },
}
CLASSES = {"type": "array", "minItems": 1, "uniqueItems": True, "items": CLASS}
EXPRESSION = {
    "type": "object",
    "required": ["format", "expression"],
    "properties": {"format": TEXT},
}
DATA_TYPES = [
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "cint16", "cint32", "cfloat32", "cfloat64", "other"),
]
ARRAY = {
    "type": "object",
    "required": ["shape", "dim_order", "data_type"],
    "properties": {
        "shape": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": -1}},
        "dim_order": {
            "type": "array",
            "minItems": 1,
            "uniqueItems": True,
            "items": {"type": "string", "pattern": "^[a-z_-]+$"},
        },
        "data_type": {"enum": DATA_TYPES},
    },
}
TASKS = {
    "type": "array",
    "uniqueItems": True,
    "items": {
        "enum": [
            *("regression", "classification", "scene-classification", "detection"),
            *("object-detection", "segmentation", "semantic-segmentation", "instance-segmentation"),
            *("panoptic-segmentation", "similarity-search", "generative", "image-captioning"),
            "super-resolution",
        ]
    },
}

PROJECTION = {
    "code": {"type": ["string", "null"], "pattern": "^[A-Za-z]+:[0-9A-Za-z]+$"},
    "wkt2": {"type": ["string", "null"]},
    "projjson": {"type": ["object", "null"]},
    "geometry": {"type": "object"},
    "bbox": {**NUMBERS, "oneOf": [{"minItems": n, "maxItems": n} for n in (4, 6)]},
    "centroid": {
        "type": "object",
        "required": ["lat", "lon"],
        "properties": {
            "lat": {"type": "number", "minimum": -90, "maximum": 90},
            "lon": {"type": "number", "minimum": -180, "maximum": 180},
        },
    },
    "shape": {"type": "array", "minItems": 2, "maxItems": 2, "items": WHOLE},
    "transform": {**NUMBERS, "oneOf": [{"minItems": n, "maxItems": n} for n in (6, 9)]},
}
RASTER = {
    "sampling": {"enum": ["area", "point"]},
    "bits_per_sample": WHOLE,
    "spatial_resolution": NUMBER,
    "scale": NUMBER,
    "offset": NUMBER,
    "histogram": {"type": "object", "required": ["count", "min", "max", "buckets"]},
}
CLASSIFICATION = {
    "classes": CLASSES,
    "bitfields": {
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "items": {"type": "object", "required": ["offset", "length", "classes"]},
    },
}
PROCESSING = {
    "expression": EXPRESSION,
    "lineage": TEXT,
    "level": TEXT,
    "facility": TEXT,
    "software": {"type": "object", "additionalProperties": TEXT},
    "version": TEXT,
    "datetime": DATE,
}


def only(prefix: str, fields: dict) -> dict:
    """Return the schema of an object that has no other field of a prefix."""
    return {
        "type": "object",
        "properties": {f"{prefix}:{name}": rule for name, rule in fields.items()},
        "patternProperties": {f"^(?!{prefix}:)": {}},
        "additionalProperties": False,
    }


def everywhere(prefix: str, fields: dict) -> dict:
    """Return the schema of an item that has fields where they may stand, and no others."""
    bands = {"properties": {"bands": {"type": "array", "items": only(prefix, fields)}}}
    part = {"allOf": [only(prefix, fields), bands]}
    assets = {"type": "object", "additionalProperties": part}
    return {
        "required": ["type", "properties", "assets"],
        "properties": {"type": {"const": "Feature"}, "properties": part, "assets": assets},
    }


def some_asset(rule: dict) -> dict:
    """Return the schema of an item with at least one asset that follows a rule."""
    return {"properties": {"assets": {"not": {"additionalProperties": {"not": rule}}}}}


def raster(prefix: str) -> dict:
    """At least one field must be there: with us, in a band of an asset."""
    described = {"anyOf": [{"required": [f"{prefix}:{name}"]} for name in RASTER]}
    bands = {"required": ["bands"], "properties": {"bands": {"contains": described}}}
    return {"allOf": [everywhere(prefix, RASTER), some_asset(bands)]}


def projection(prefix: str) -> dict:
    """At least one field must be there: with us, in the properties."""
    stated = {"anyOf": [{"required": [f"{prefix}:{name}"]} for name in PROJECTION]}
    return {"allOf": [everywhere(prefix, PROJECTION), {"properties": {"properties": stated}}]}


RULES = {
    "projection/v2.0.0": projection("proj"),
    "raster/v2.0.0": raster("raster"),
    "classification/v2.0.0": everywhere("classification", CLASSIFICATION),
    "processing/v1.2.0": everywhere("processing", PROCESSING),
}


def check(item: dict) -> None:
    """Raise a ValidationError unless an item follows the extensions that it says it has."""
    for uri in item["stac_extensions"]:
        name = uri.removeprefix("https://stac-extensions.github.io/").removesuffix("/schema.json")
        jsonschema.validate(item, RULES[name])
