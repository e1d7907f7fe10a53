"""Formulas as MathML: they are drawn by the browser itself, without a network or a script."""

import re

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)


def draw(translator: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula into the page, with its number if it has one."""
    block = isinstance(node, nodes.math_block)
    try:
        # brackets have the size of what they hold, without being asked
        formula = latex2mathml.tex2mathml(re.sub(r"\\[bB]igg?[lr]?\b", "", node.astext()), block)
    except MathError as error:
        LOGGER.warning("a formula cannot be read: %s", error, location=node)
        formula = translator.encode(node.astext())
    if block:
        anchor = f' id="{node["ids"][0]}"' if node["ids"] else ""
        formula = f'<div class="formula"{anchor}>{formula}</div>\n'
    translator.body.append(formula)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Make this the way in which Sphinx draws formulas."""
    app.add_html_math_renderer("mathml", (draw, None), (draw, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
