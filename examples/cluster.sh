#!/usr/bin/env bash
# maniple on several processes of this machine: two that accept requests and three that drive runs, on PostgreSQL.
#   bash examples/cluster.sh              an own PostgreSQL server in ./cluster-data (Debian: apt install postgresql)
#   MANIPLE_STORE__URL=postgresql://… bash examples/cluster.sh        a database that you have; also set in .env or conf.yaml
# The page is at http://127.0.0.1:8001 and :8002. A process that dies is started again; one that says that something is
# set wrong (status 2) ends all, and so does Ctrl-C.
# Start it in the folder with your .env and conf.yaml. MANIPLE names the program, WORKERS and PORTS other numbers.
set -euo pipefail
set -m  # each child gets a process group of its own: Ctrl-C reaches this script alone, which stops them in order
maniple=${MANIPLE:-maniple}
workers=${WORKERS:-3}
read -ra ports <<<"${PORTS:-8001 8002}"
folder=$PWD/cluster-data
STOP_SECONDS=40
own_server= children=()

say() { printf '[cluster] %s\n' "$*" >&2; }

has_url() {  # whether store.url is set: in the environment, in .env or in conf.yaml
  [ -n "${MANIPLE_STORE__URL:-}" ] || grep -qsE '^ *(export +)?MANIPLE_STORE__URL=' .env ||
    { [ -f conf.yaml ] && sed -n '/^store:/,/^[^ #]/p' conf.yaml | grep -qE '\burl:'; }
}

programs() {  # the folder of the newest PostgreSQL's programs
  command -v initdb >/dev/null && { dirname "$(command -v initdb)"; return; }
  printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -1
}

as_postgres() {  # PostgreSQL refuses to run as root
  if [ "$(id -u)" = 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}

start_postgres() {
  bin=$(programs)
  [ -x "$bin/initdb" ] || { say "PostgreSQL is not installed. Install it, or set MANIPLE_STORE__URL."; exit 2; }
  mkdir -p "$folder/postgres"
  sockets=$(mktemp -d)  # a short path: that of a socket has 107 bytes at most
  [ "$(id -u)" != 0 ] || chown postgres "$folder/postgres" "$sockets"
  as_postgres test -w "$folder/postgres" || { say "The user postgres cannot reach $folder. Start it elsewhere."; exit 2; }
  [ -f "$folder/postgres/PG_VERSION" ] || as_postgres "$bin/initdb" --no-instructions -A trust -U maniple -D "$folder/postgres" >/dev/null
  # It listens on a socket alone.
  as_postgres "$bin/pg_ctl" -w -D "$folder/postgres" -l "$folder/postgres/log" \
    -o "-k $sockets -c listen_addresses=" start >/dev/null
  own_server=1
  export MANIPLE_STORE__URL="postgresql://maniple@/postgres?host=$sockets"
}

keep() {  # NAME COMMAND…: run a program, and run it again when it dies
  local name=$1 child=
  shift
  trap '[ -z "$child" ] || kill -TERM "$child" 2>/dev/null || :; stopping=1' TERM
  stopping=
  while [ -z "$stopping" ]; do
    "$@" >>"$folder/$name.log" 2>&1 & child=$!
    echo "$child" >"$folder/$name.pid"
    local status=0
    wait "$child" || status=$?
    while [ -n "$stopping" ] && kill -0 "$child" 2>/dev/null; do wait "$child" || :; done
    [ -z "$stopping" ] || break
    if [ "$status" = 2 ]; then
      say "$name: $(tail -n 1 "$folder/$name.log") (all of it: $folder/$name.log)"
      kill -USR1 $$
      break
    fi
    say "$name ended with status $status; it is started again"
    sleep 1
  done
}

stop() {
  trap - EXIT INT TERM USR1
  say "stopping"
  [ ${#children[@]} = 0 ] || kill -TERM "${children[@]}" 2>/dev/null || :
  for ((second = 0; second < STOP_SECONDS; second++)); do
    [ -n "$(jobs -r)" ] || break
    sleep 1
  done
  [ ${#children[@]} = 0 ] || kill -KILL -- "${children[@]/#/-}" 2>/dev/null || :
  [ -z "$own_server" ] || as_postgres "$bin/pg_ctl" -w -D "$folder/postgres" -m fast stop >/dev/null
  [ -z "$own_server" ] || rmdir "$sockets"
}

mkdir -p "$folder"
trap stop EXIT
trap 'exit 0' INT TERM
trap 'exit 2' USR1
export MANIPLE_STORE__BACKEND=postgres
has_url || start_postgres
"$maniple" db migrate
for port in "${ports[@]}"; do
  keep "api-$port" "$maniple" serve --role api --port "$port" & children+=($!)
done
for ((number = 1; number <= workers; number++)); do
  keep "worker-$number" "$maniple" work & children+=($!)
done
say "the page: $(printf 'http://127.0.0.1:%s ' "${ports[@]}")· logs: $folder"
wait
