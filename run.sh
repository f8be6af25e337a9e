#!/usr/bin/env bash
# Set up what is missing and talk to the team: `bash run.sh` or `bash run.sh "1+3=?"`.
set -euo pipefail
bash "$(dirname "$0")/setup.sh"
exec "$(dirname "$0")/.venv/bin/maniple" chat "$@"
