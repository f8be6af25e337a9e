"""Write the generated pages of the manual and build its site: python -m manual [--site-url URL] [FOLDER].

FOLDER is `site/` if none is given; URL is where the site will be published.
"""

import argparse
import sys
from pathlib import Path

from manual.reference import write_reference
from manual.site import ROOT, ManualError, build_site

parser = argparse.ArgumentParser(prog="python -m manual")
parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "site")
parser.add_argument("--site-url", default="")
options = parser.parse_args()
folder = options.folder
write_reference()
try:
    build_site(folder, options.site_url)
except ManualError as error:
    sys.exit(str(error))
print(f"The manual is in {folder}; `python -m http.server --directory {folder}` shows it.")
