"""The ``mpcs`` command. Each verb (subcommand) has a module that parses arguments, calls the library and prints."""

import sys

from mpcs_torch.exit_statuses import ExitStatus


def main() -> None:
    """Run ``mpcs`` on the arguments of this process, and exit."""
    try:
        import typer  # noqa: F401
    except ImportError:
        print(
            "mpcs: the command line needs more packages: pip install 'mpcs_torch[cli]'",
            file=sys.stderr,
        )
        sys.exit(ExitStatus.REFUSED)
    from mpcs_torch.cli.app import run_app

    run_app(sys.argv[1:])
