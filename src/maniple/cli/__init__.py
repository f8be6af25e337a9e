"""The team in the terminal: `maniple chat`, `maniple serve`, `maniple doctor`."""

import io
import os
import sys


def main(*command: str) -> None:
    """Run the command line and exit with its status.

    `command` comes before the program's own arguments: `main("chat")` is what `main.py` calls.
    """
    from maniple.cli.app import app
    from maniple.cli.completion import COMPLETE_VARIABLE, PROGRAM

    if COMPLETE_VARIABLE in os.environ:  # noqa: TID251 - a shell asks for completions by it
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()  # it makes the shells known, as `add_completion` would
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a stream may be closed, or a test's
            stream.reconfigure(errors="replace")
    try:
        app(args=[*command, *sys.argv[1:]], prog_name=PROGRAM)
    except OSError as error:  # --help and --version are written before any command runs
        from maniple.cli.process import status_without_output

        sys.exit(status_without_output(error))
