"""Serve the team over HTTP: the same as `maniple serve`."""

import sys
from pathlib import Path

try:
    from maniple.cli import main
except ModuleNotFoundError:
    here = Path(__file__).resolve().parent
    sys.stderr.write(
        f"This Python lacks maniple: run `bash {here}/setup.sh`, then `{here}/.venv/bin/maniple serve`.\n"
    )
    sys.exit(2)

if __name__ == "__main__":
    main("serve")
