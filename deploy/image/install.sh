#!/bin/sh
# Install the maniple of /src into /opt/maniple, and what its sandbox can import into /var/cache/maniple.
#   sh install.sh          the image that uses a model elsewhere
#   sh install.sh model    with the embedded model inside: 1.1 GB more
set -eu
export PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
cd /src
python3 -m venv /opt/maniple
pip() { /opt/maniple/bin/python -m pip install --quiet "$@"; }
pip --require-hashes -r lock/cluster.txt ${1:+-r lock/local.txt}
pip --no-deps .
# The sandbox is tested where the image runs; a build has no rights to start one.
MANIPLE_CACHE_DIR=/var/cache/maniple /opt/maniple/bin/maniple doctor --packages
if [ -n "${1:-}" ]; then
  MANIPLE_CACHE_DIR=/var/cache/maniple /opt/maniple/bin/maniple doctor --fix --yes
fi
