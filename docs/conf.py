"""How Sphinx builds the site: `make docs`. No part of it needs a network."""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_ext"), str(ROOT)]

import hsreject  # noqa: E402  # found beside the pages, installed or not

project = "hsreject"
author = "the hsreject developers"
copyright = author  # noqa: A001  # Sphinx's name
version = release = hsreject.__version__

extensions = [
    "mathml",
    "matplotlib.sphinxext.plot_directive",
    "myst_nb",
    "numpydoc",
    "reference",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "**/.ipynb_checkpoints",
    "gallery/*.ipynb",
    "**sg_execution_times.rst",
]
templates_path = ["_templates"]
nitpicky = True
default_role = "code"  # numpydoc writes names in single backticks

# ------------------------------------------------------------------------------- what it looks like

html_theme = "pydata_sphinx_theme"
html_title = "hsreject"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 9,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "results": [], "architecture": []}

# ------------------------------------------------------------------------------------ public names

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc says them in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False


def setup(app):
    """Leave what a class only inherits from scikit-learn to the pages of scikit-learn."""

    def is_foreign(app, what, name, member, skip, options):
        return True if str(getattr(member, "__module__", "")).startswith("sklearn") else None

    app.connect("autodoc-skip-member", is_foreign)


# ------------------------------------------------------------------- pages, pictures and notebooks

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the notebooks are stored with their pictures; tests keep them fresh

plot_include_source = True
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 150)]
plot_rcparams = {"figure.dpi": 100, "savefig.bbox": "tight"}
plot_pre_code = "import numpy as np\nimport hsreject as hr\n"

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(?!plot_)",  # longer scripts with options of their own
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("hsreject",),
    "reference_url": {"hsreject": None},
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 3600,  # how long a picture took here says little
    "show_signature": False,
}

NOTEBOOKS = HERE / "notebooks"  # Sphinx takes pages from this folder only
NOTEBOOKS.mkdir(exist_ok=True)
for notebook in (ROOT / "notebooks").glob("*.ipynb"):
    copy = NOTEBOOKS / notebook.name
    if not copy.exists() or copy.read_bytes() != notebook.read_bytes():
        shutil.copyfile(notebook, copy)
