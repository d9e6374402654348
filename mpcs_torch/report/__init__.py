"""Reports as self-contained HTML files: the renderer, and a module for each kind of page."""
