#!/usr/bin/env bash
# Run the image's file system as compose.yaml runs the image: read-only, as a user without rights, in namespaces.
#   bash deploy/image/run.sh ROOT              serve on 127.0.0.1:8000
#   bash deploy/image/run.sh ROOT doctor       any other command
# DATA=FOLDER keeps conversations; without it they end with the program. NETWORK=none starts it without any.
# BASIC_MODEL, BASIC_BASE_URL and BASIC_API_KEY name the model.
set -euo pipefail
root=$(realpath "${1:?"name the folder that rootfs.sh has made"}")
shift
[ $# -gt 0 ] || set -- serve
export ROOT=$root DATA=${DATA:-}
flags=(--mount --pid --fork --kill-child)
[ "$(id -u)" = 0 ] || flags+=(--user --map-root-user --map-auto)
[ "${NETWORK:-}" != none ] || flags+=(--net)

# shellcheck disable=SC2016 # the variables are those of the inner shell
exec unshare "${flags[@]}" -- bash -euc '
  ip link set lo up 2>/dev/null || :
  mount --bind "$ROOT" "$ROOT"
  cd "$ROOT"
  export PATH=/usr/sbin:/usr/bin:/sbin:/bin
  mount -t proc proc proc
  mount --rbind /dev dev
  mount -t tmpfs -o mode=1777 tmpfs tmp
  mount -t tmpfs -o mode=0755,uid=10001,gid=10001 tmpfs home/maniple
  if [ -n "$DATA" ]; then
    mkdir -p "$DATA" && chown 10001:10001 "$DATA" && mount --bind "$DATA" var/lib/maniple
  else
    mount -t tmpfs -o mode=0700,uid=10001,gid=10001 tmpfs var/lib/maniple
  fi
  touch /etc/resolv.conf && mount --bind /etc/resolv.conf etc/resolv.conf
  mount -o remount,bind,ro "$ROOT"
  # Not chroot: inside of one, the kernel gives the sandbox no user namespace.
  pivot_root . .
  umount -l .
  exec setpriv --reuid 10001 --regid 10001 --clear-groups --bounding-set -all --no-new-privs \
    env -i -C /app PATH=/opt/maniple/bin:/usr/bin:/bin LANG=C.UTF-8 HOME=/home/maniple PYTHONDONTWRITEBYTECODE=1 \
    MANIPLE_DATA_DIR=/var/lib/maniple MANIPLE_CACHE_DIR=/var/cache/maniple MANIPLE_TRUSTED_FOLDERS=/app \
    BASIC_MODEL="${BASIC_MODEL:-}" BASIC_BASE_URL="${BASIC_BASE_URL:-}" BASIC_API_KEY="${BASIC_API_KEY:-}" \
    tini -- maniple "$@"
' run "$@"
