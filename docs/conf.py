"""How the site is built: `make docs`. Nothing is fetched, neither while building nor while reading."""

import os
import sys
from pathlib import Path

import featlab

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # nothing is trained
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "featlab"
release = version = featlab.__version__
extensions = ["myst_nb", "sphinx.ext.viewcode", "sphinx_copybutton", "sphinx-mathjax-offline", "site_pages"]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]

# Pages are Markdown. An indented block is plain text; a fenced one says what it is.
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
highlight_language = "none"
nb_execution_mode = "off"  # notebooks are shown with the outputs they were saved with

python_maximum_signature_line_length = 90
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "featlab"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1d4e89", "color-brand-content": "#1d4e89"},
    "dark_css_variables": {"color-brand-primary": "#8ab8e6", "color-brand-content": "#8ab8e6"},
}
