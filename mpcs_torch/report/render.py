"""Pages from templates, with embedded figures."""

import base64
import io

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure


def render(template: str, **content: object) -> str:
    """Render a page from one of our templates."""
    environment = Environment(
        loader=PackageLoader("mpcs_torch.report", "templates"), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template(f"{template}.html.j2").render(content)


def data_uri(figure: Figure) -> str:
    """Return the figure as a data URI, to be embedded in a page."""
    return "data:image/svg+xml;base64," + base64.b64encode(to_svg(figure).encode()).decode()


def to_svg(figure: Figure) -> str:
    """Return the figure as an SVG document."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
