#!/usr/bin/env bash
# Run the contract suite on browser-use, in an environment that has maniple[browser-use] and what these tests need.
#   bash apart.sh            make that environment, if it has to be made, and run
#   bash apart.sh prepare    only make it: two minutes of waiting for packages, which pass beside other checks
set -euo pipefail
cd "$(dirname "$0")/../../.."
place=.venv/browser-use
wanted=$(cksum < pyproject.toml)

prepare() {
  [ "$(cat $place/made-for 2>/dev/null)" != "$wanted" ] || return 0
  rm -rf $place
  .venv/bin/python -m venv --without-pip $place
  # Of 500 MB these tests import a small part: that is compiled when it is imported.
  .venv/bin/python -m pip --python $place/bin/python --quiet --disable-pip-version-check \
    install --no-compile -e '.[browser-use]' --group browser-use
  echo "$wanted" > $place/made-for
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
exec $place/bin/python -m pytest -m "" ${CI:+--reruns 1 -r R} tests/browser/contract
