"""Finished runs in; figures and one self-contained HTML file out."""
