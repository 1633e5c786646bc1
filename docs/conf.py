"""The documentation site: `make docs` builds it into docs/_build, with warnings as errors."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent / "site"), str(Path(__file__).parents[1])]  # what this site adds to Sphinx; the experiments

project = "gpssl"
author = copyright = "The gpssl developers"  # noqa: A001  (Sphinx's name)
release = version = version_of("gpssl")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "docstrings",
    "command_help",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["site/templates"]
exclude_patterns = ["_build", "site", "examples"]
default_role = "code"

myst_heading_anchors = 3

autosummary_ignore_module_all = False
autodoc_typehints_format = "short"
autodoc_type_aliases = {"Array": "Array"}
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_use_rtype = False  # what is returned has a name, which is no type to link to
napoleon_custom_sections = [("Attributes", "params_style")]

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "image_scrapers": ("pictures.save_figure",),
    "reset_modules": (),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "copyfile_regex": r"",
}

html_theme = "furo"
html_title = "gpssl"
html_static_path = ["site/static"]
html_css_files = ["wide.css"]
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False


def setup(app: Any) -> None:
    """Links that leave this folder."""
    app.connect("source-read", keep_links_inside)


def keep_links_inside(app: Any, page: str, source: list[str]) -> None:
    """In the repository pages link to the benchmarks and to the scripts of the gallery; the site has pages of both."""
    source[0] = source[0].replace("](../benchmarks/", "](benchmarks/").replace("](examples/)", "](gallery/index.rst)")
