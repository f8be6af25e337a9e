"""Write the generated pages of the manual and build its site: python -m manual [FOLDER], else `site/`."""

import sys
from pathlib import Path

from manual.reference import write_reference
from manual.site import ROOT, ManualError, build_site

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"
write_reference()
try:
    build_site(folder)
except ManualError as error:
    sys.exit(str(error))
print(f"The manual is in {folder}; `python -m http.server --directory {folder}` shows it.")
