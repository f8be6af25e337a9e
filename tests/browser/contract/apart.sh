#!/usr/bin/env bash
# Run the contract suite on browser-use, in an environment that has maniple[browser-use] and what these tests need.
set -euo pipefail
cd "$(dirname "$0")/../../.."
place=.venv/browser-use
wanted=$(cksum < pyproject.toml)
if [ "$(cat $place/made-for 2>/dev/null)" != "$wanted" ]; then
  rm -rf $place
  .venv/bin/python -m venv $place
  $place/bin/python -m pip --quiet --disable-pip-version-check install --upgrade 'pip>=25.1'
  $place/bin/python -m pip --quiet --disable-pip-version-check install -e '.[browser-use]' --group browser-use
  echo "$wanted" > $place/made-for
fi
exec $place/bin/python -m pytest tests/browser/contract
