"""The run configs of the package, for ``mpcs train --list``."""

from collections.abc import Mapping

from mpcs_torch.io.packaged import packaged_file, packaged_names
from mpcs_torch.io.yaml_files import read_yaml_file
from mpcs_torch.tables import Table


def config_table() -> Table:
    """Return a row for each config: its name, data and model."""
    rows = []
    for name in packaged_names("experiments"):
        config = read_yaml_file(packaged_file("experiments", name)).value
        rows.append([name, _named(config["data"]), _named(config["model"])])
    return Table(["name", "data", "model"], rows)


def _named(part: Mapping[str, object]) -> str:
    """Return the name of data or a model, with that of the set if it is one of several."""
    return " ".join(str(part[key]) for key in ("name", "set") if key in part)
