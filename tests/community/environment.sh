#!/usr/bin/env bash
# Make .venv/community, where maniple is installed beside langchain-community: 460 MB, a minute, once for each change.
set -euo pipefail
cd "$(dirname "$0")/../.."
place=$PWD/.venv/community
wanted=$(cat pyproject.toml tests/community/environment.sh | cksum)

# Who comes second finds it made.
exec 9< tests/community/environment.sh
! command -v flock >/dev/null || flock 9
[ "$(cat "$place/made-for" 2>/dev/null)" != "$wanted" ] || exit 0
rm -rf "$place"
.venv/bin/python -m venv --without-pip "$place"
.venv/bin/python -m pip --python "$place/bin/python" --quiet --disable-pip-version-check \
  install --no-compile -e . 'langchain-community>=0.4.2,<0.5' 'pysrt>=1.1.2,<2'
echo "$wanted" > "$place/made-for"
