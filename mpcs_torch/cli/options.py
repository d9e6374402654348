"""Options that several verbs take."""

from pathlib import Path
from typing import Annotated

import typer

DataRoot = Annotated[
    Path,
    typer.Option(envvar="MPCS_DATA_ROOT", help="Folder of the data files."),
]
Out = Annotated[Path, typer.Option(help="Folder of the runs.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace runs of the same name.")]
