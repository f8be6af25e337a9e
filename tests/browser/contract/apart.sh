#!/usr/bin/env bash
# Run the contract suite on browser-use, which has an environment of its own as it has at run time.
#   bash apart.sh            make that environment, if it has to be made, and run
#   bash apart.sh prepare    only make it: a minute of waiting for packages, which passes beside other checks
set -euo pipefail
cd "$(dirname "$0")/../../.."
place=$PWD/.venv/browser-use
source=src/maniple/browser/drivers/browser_use/environment.py
wanted=$(grep ^REQUIREMENT $source)

prepare() {
  [ "$(cat "$place/made-for" 2>/dev/null)" != "$wanted" ] || return 0
  .venv/bin/python - "$place" >&2 <<'PYTHON'
import subprocess, sys
from pathlib import Path
from maniple.browser.drivers.browser_use.environment import BrowserUseEnvironment

for command in BrowserUseEnvironment(Path(sys.argv[1])).commands():
    subprocess.run(command, check=True)
PYTHON
  echo "$wanted" > "$place/made-for"
}

# One at a time: who comes second finds it made, or makes it and says what is wrong.
if command -v flock >/dev/null; then
  exec 9< tests/browser/contract/apart.sh
  flock 9
elif [ "${1:-}" = prepare ]; then
  exit 0
fi
prepare
[ "${1:-}" != prepare ] || exit 0
exec 9<&-
# As in the Makefile: CI tries a failed test once more and lists it.
MANIPLE_TEST_BROWSER_USE=$place exec .venv/bin/python -m pytest -m "" ${CI:+--reruns 1 -r R} tests/browser/contract
