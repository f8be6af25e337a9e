#!/usr/bin/env bash
# Set up what is missing and talk to the team: `bash run.sh` or `bash run.sh "1+3=?"`.
# The settings are conf.yaml and .env in this folder, in whichever folder it is called.
set -euo pipefail
here=$(CDPATH='' cd -P -- "$(dirname -- "$0")" && pwd)
bash "$here/setup.sh" </dev/null # the question may come from standard input
config=()
[ . -ef "$here" ] || config=(--config "$here/conf.yaml")
exec "$here/.venv/bin/maniple" chat "${config[@]}" "$@"
