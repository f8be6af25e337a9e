#!/usr/bin/env bash
# Write the locks: every package with its version and hashes, for every platform and Python from 3.11 on.
#   core.txt    what maniple needs
#   local.txt   and the embedded model's engine
#   cluster.txt what several processes on PostgreSQL need, without that engine
#   dev.txt     and what the tests and checks need
# By hand: alone.txt, what the tests take without what it needs.
# Takes uv (`pip install uv`). `--upgrade` takes newer versions where pyproject.toml allows them.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {  # FILE OPTIONS
  uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
    --custom-compile-command 'make lock' --output-file "lock/$1" "${@:2}"
}
compile core.txt "$@"
compile local.txt --extra local "$@"
compile cluster.txt --extra postgres "$@"
compile dev.txt --extra local --group dev "$@"
