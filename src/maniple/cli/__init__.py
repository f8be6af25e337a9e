"""The team in the terminal: `maniple chat`, `maniple serve`, `maniple doctor`."""

import io
import sys


def main(*command: str) -> None:
    """Run the command line and exit with its status.

    `command` comes before the program's own arguments: `main("chat")` is what `main.py` calls.
    """
    from maniple.cli.app import app

    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a stream may be closed, or a test's
            stream.reconfigure(errors="replace")
    try:
        app(args=[*command, *sys.argv[1:]], prog_name="maniple")
    except OSError as error:  # --help and --version are written before any command runs
        from maniple.cli.process import status_without_output

        sys.exit(status_without_output(error))
