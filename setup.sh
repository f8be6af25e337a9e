#!/usr/bin/env bash
# Set up maniple in this folder: system packages, .venv, the package itself. Safe to run again; then it takes a moment.
#   bash setup.sh          what running needs
#   bash setup.sh dev      and what the tests need
set -euo pipefail
cd "$(dirname "$0")"
mode=${1:-run}
say() { printf '\033[2m[setup]\033[0m %s\n' "$*" >&2; }

# --- system packages: the sandbox, the browser, and what builds .venv -------------------------------------------
missing=()
command -v bwrap >/dev/null || missing+=(bubblewrap)
command -v make >/dev/null || missing+=(make)
browser=
for name in chromium-headless-shell chromium chromium-browser google-chrome-stable google-chrome; do
  command -v "$name" >/dev/null && browser=$name && break
done
[ -n "$browser" ] || missing+=(chromium-headless-shell)

python=
for name in "${PYTHON:-}" python3.13 python3.12 python3.11 python3; do
  [ -n "$name" ] && command -v "$name" >/dev/null || continue
  "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && python=$name && break
done
[ -n "$python" ] || missing+=(python3)
{ [ -n "$python" ] && "$python" -c 'import ensurepip, venv' 2>/dev/null; } || missing+=(python3-venv)

if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  if command -v apt-get >/dev/null && { [ ${#as_root[@]} = 0 ] || command -v sudo >/dev/null; }; then
    say "installing ${missing[*]} (Debian packages)"
    export DEBIAN_FRONTEND=noninteractive
    "${as_root[@]}" apt-get update -qq >/dev/null || say "apt-get update failed; trying with the lists that are there"
    # One by one: apt-get installs nothing at all when it does not know one of the names.
    for package in "${missing[@]}"; do
      "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
        say "$package could not be installed; \`maniple doctor\` says what is missing without it"
    done
  else
    say "please install: ${missing[*]}. Without bubblewrap no code is executed, without Chromium no page is opened."
  fi
fi
[ -n "$python" ] || python=python3
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  { say "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 1; }

# --- .venv ------------------------------------------------------------------------------------------------------
# What an interruption left half-made is made anew.
if [ ! -f .venv/pyvenv.cfg ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then rm -rf .venv; fi
[ -x .venv/bin/python ] || { say "making .venv with $("$python" --version)"; "$python" -m venv .venv; }
wanted="$mode $(cksum < pyproject.toml)"
# What `dev` installed serves `run` too.
if ! grep -qxF -e "$wanted" -e "dev ${wanted#* }" .venv/.maniple-setup 2>/dev/null; then
  say "installing maniple and what it needs into .venv (about 350 MB; a minute or two the first time)"
  started=$SECONDS
  pip=(.venv/bin/python -m pip --quiet --disable-pip-version-check)
  "${pip[@]}" install --upgrade 'pip>=25.1'
  group=()
  [ "$mode" = dev ] && group=(--group dev)
  "${pip[@]}" install -e '.[local]' "${group[@]}" || {
    say "without the engine of the embedded model, which has no package for this machine"
    "${pip[@]}" install -e . "${group[@]}"
  }
  echo "$wanted" >> .venv/.maniple-setup
  say "done after $((SECONDS - started)) s"
fi
