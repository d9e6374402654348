"""Reports as self-contained HTML files: the renderer, and one page per file."""
