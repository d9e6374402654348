"""Reports as self-contained HTML files: the renderer, and one module for each kind of page."""
