"""How Sphinx builds the site: `make docs`. No part of it needs a network."""

import shutil
import sys
import tomllib
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
    "thumbnails",
]
exclude_patterns = ["_build", "gallery/**.ipynb", "**sg_execution_times.rst"]
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
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
html_theme_options = {
    "icon_links": [
        {"name": name, "url": url, "icon": "fa-solid fa-code-branch"}
        for name, url in URLS.items()
        if name == "Repository" and ".example" not in url  # a name that is only reserved
    ],
    "navbar_align": "left",
    "navbar_end": ["version", "theme-switcher", "navbar-icon-links"],
    "header_links_before_dropdown": 9,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "results": [], "benchmarks": []}

# ------------------------------------------------------------------------------------ public names

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc says them in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False


def setup(app):
    """Leave what a class only inherits from scikit-learn, or from str, to the pages of these."""

    def is_foreign(app, what, name, member, skip, options):
        inherited = member is getattr(str, name, None)
        return str(getattr(member, "__module__", "")).startswith("sklearn") or inherited or None

    app.connect("autodoc-skip-member", is_foreign)


# ------------------------------------------------------------------- pages, pictures and notebooks

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath", "substitution"]
myst_substitutions = {"version": hsreject.__version__}
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
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("hsreject",),
    "reference_url": {"hsreject": None},
    "within_subsection_order": "thumbnails.InOrder",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 3600,  # how long a picture took here says little
    "show_signature": False,
    "thumbnail_size": (400, 400),
}

# Sphinx takes pages from this folder only; copies keep their dates, and are read only when changed
shutil.rmtree(HERE / "notebooks", ignore_errors=True)
shutil.copytree(
    ROOT / "notebooks", HERE / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints")
)
