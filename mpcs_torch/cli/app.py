"""The ``mpcs`` command with its options; a verb (subcommand) is imported only when it is used."""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mpcs_torch.cli.console import COMMAND_LINE
from mpcs_torch.cli.failures import reported_errors
from mpcs_torch.errors import Rule

VERBS = (
    "train",
    "reproduce",
    "score",
    "explore",
    "detect",
    "calibrate",
    "decide",
    "monitor",
    "select",
    "report",
    "demo",
    "data",
    "concern",
    "metrics",
)
"""The verbs (subcommands). The module ``cli.verbs.NAME`` defines NAME: a function, or a Typer for several."""


class FlagGroup(TyperGroup):
    """A Typer group whose own options are all flags, such as --help."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options. A default of None becomes False, because Typer would import pydantic for None."""
        params = super().get_params(ctx)
        for option in params:
            option.default = option.default or False
        return params


def group_of_commands(text: str) -> typer.Typer:
    """Return a verb that has commands, as ``decide`` has ``fit`` and ``apply``; alone, it prints the help ``text``."""
    return typer.Typer(cls=FlagGroup, help=text, no_args_is_help=True, add_completion=False)


ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
"""A pattern for an argument in a docstring: its name, and its text with all further lines."""


def _describe(command: Any) -> None:
    """Set the help of ``command`` to its docstring without line breaks, and that of each option to its text in Args."""
    text, _, arguments = (command.help or "").partition("\n\nArgs:\n")
    command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", text)  # keeps empty lines
    described = {
        name: " ".join(lines.split()) for name, lines in ARGUMENT.findall(arguments)
    }
    for parameter in command.params:
        parameter.help = parameter.help or described.get(parameter.name)


def _refuse_repeats(command: Any) -> None:
    """Make ``command`` refuse a single-valued option that is given twice; Click would silently take the last value."""
    parsed = command.parse_args

    def parse_args(ctx: Any, args: list[str]) -> Any:
        order = list[Any]()  # the options and arguments, in the order of the command line
        if args:
            _, _, order = command.make_parser(ctx).parse_args(list(args))
        for option in order:
            is_single = option.param_type_name == "option" and not option.is_flag
            if is_single and not option.multiple and order.count(option) > 1:
                repeated = str(Rule("given_once"))
                raise typer.BadParameter(repeated, param_hint=option.opts[0])
        return parsed(ctx, args)

    command.parse_args = parse_args


class VerbGroup(FlagGroup):
    """The group of all verbs. It imports the module of a verb only when that verb is called or listed."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        names: dict[str, Any] = dict.fromkeys(VERBS)
        self.commands = names  # Typer lists these, and suggests them for a misspelt verb

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  # Typer's signature
        """Import the verb ``cmd_name`` and return its command; None for an unknown name."""
        if cmd_name not in VERBS:
            return None
        verb = getattr(import_module(f"mpcs_torch.cli.verbs.{cmd_name}"), cmd_name)
        if not isinstance(verb, typer.Typer):
            function, verb = verb, typer.Typer(add_completion=False)
            verb.command(cmd_name)(function)
        command = typer.main.get_command(verb)
        command.name = cmd_name
        for described in (command, *getattr(command, "commands", {}).values()):
            _describe(described)
            _refuse_repeats(described)
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the verb in ``ctx``. If it raises an error, print a message and exit."""
        with reported_errors(debug=ctx.params["debug"]):
            return super().invoke(ctx)


app = typer.Typer(cls=VerbGroup, no_args_is_help=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mpcs_torch {version('mpcs_torch')}")
        raise typer.Exit


@app.callback()
def mpcs(
    *,
    version: Annotated[  # its callback reads the value
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
    debug: Annotated[  # `VerbGroup.invoke` reads the value
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Evaluate and train classifiers whose errors are not equally bad."""


def run_app(arguments: Sequence[str]) -> None:
    """Run the command line ``mpcs ARGUMENTS`` and exit with an `ExitStatus`."""
    COMMAND_LINE.begin(arguments)
    typer.main.get_command(app)(list(arguments), prog_name="mpcs")
