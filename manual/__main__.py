"""Build the manual's site: python -m manual [FOLDER], by default `site/`."""

import sys
from pathlib import Path

from manual.site import ROOT, ManualError, build_site

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"
try:
    build_site(folder)
except ManualError as error:
    sys.exit(str(error))
print(f"The manual is in {folder}; `python -m http.server --directory {folder}` shows it.")
