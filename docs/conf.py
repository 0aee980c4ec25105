"""Sphinx configuration: built by ``make docs``, warnings as errors, without network."""

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from sphinx_gallery.scrapers import matplotlib_scraper

import polyabayes
from polyabayes.plotting.axes import colours

sys.path.insert(0, str(Path(__file__).parent))

project = "polyabayes"
author = "the polyabayes developers"
version = release = polyabayes.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "gallery",
    "images",
    "**/*.ipynb",
    "auto_gallery/*.py",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
    "**/*.md5",
]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["polyabayes.css"]
# Quotes and ellipses only: two hyphens are an option, no dash.
smartquotes_action = "qe"
suppress_warnings = ["config.cache"]

# Reference.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False

# Pages in Markdown; those that begin with a kernel are run as notebooks.
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True


def use_house_colours(*_: Any) -> None:
    """Colours of Okabe and Ito in gallery programs that name none, as in plots of the package."""
    matplotlib.rcParams["axes.prop_cycle"] = cycler(color=colours(7))


def vector_scraper(*args: Any, **options: Any) -> Any:
    """Pictures of gallery programs as SVG, sharp at any size."""
    return matplotlib_scraper(*args, format="svg", **options)


sphinx_gallery_conf: dict[str, Any] = {
    "image_scrapers": (vector_scraper,),
    "reset_modules": ("matplotlib", use_house_colours),
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "capture_repr": (),
    "min_reported_time": 10**6,
    "doc_module": ("polyabayes",),
}

html_theme = "pydata_sphinx_theme"
html_title = f"polyabayes {release}"
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
_ALONE = (
    "index",
    "coming-from",
    "coming-from-r",
    "leaderboard",
    "coverage",
    "benchmarks",
)
html_sidebars: dict[str, list[str]] = {page: [] for page in _ALONE}
project_copyright = "the polyabayes developers; MIT licence"

# Examples say in the text what a warning would repeat in the page.
warnings.filterwarnings("ignore", category=polyabayes.exceptions.PolyabayesWarning)
# Notebooks choose their own backend, which a setting from outside would take the pictures from.
os.environ.pop("MPLBACKEND", None)
