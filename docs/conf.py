"""How Sphinx builds these pages, without network access."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from tiering import __version__  # noqa: E402  # found by the line above

project = "kafka-tiering"
author = "the authors of kafka-tiering"
release = __version__

extensions = ["myst_parser", "directives"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_static"]
nitpicky = True
highlight_language = "none"

html_theme = "furo"
html_title = "kafka-tiering"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["wide.css"]
