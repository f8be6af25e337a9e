"""The environment of browser-use that `apart.sh` makes for these tests."""

import os
from pathlib import Path

ENVIRONMENT = Path(named) if (named := os.environ.get("MANIPLE_TEST_BROWSER_USE")) else None
"""None where it was not made: `make browser-use`."""
