"""Talk to the team in the terminal: the same as `maniple chat`."""

import sys
from pathlib import Path

try:
    from maniple.cli import main
except ModuleNotFoundError:
    here = Path(__file__).resolve().parent
    sys.stderr.write(
        f"This Python lacks maniple: run `bash {here}/setup.sh`, then `{here}/.venv/bin/maniple chat`.\n"
    )
    sys.exit(2)

if __name__ == "__main__":
    main("chat")
