#!/usr/bin/env bash
# Build the image's file system without a container engine, from Debian's packages, by the steps of the Dockerfile.
#   bash deploy/image/rootfs.sh FOLDER          a model elsewhere
#   bash deploy/image/rootfs.sh FOLDER model    the embedded model inside
# Takes mmdebstrap; an ordinary user can run it where user namespaces are allowed. CA_BUNDLE=FILE names the
# certificates that pip trusts during the build, where a proxy has its own.
set -euo pipefail
root=${1:?"name the folder to make"}
with=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
[ ! -e "$root" ] || { echo "$root exists. Name a folder that does not." >&2; exit 1; }
command -v mmdebstrap >/dev/null || { echo "mmdebstrap is missing: apt-get install mmdebstrap" >&2; exit 1; }

sources=$(mktemp)
trap 'rm -f "$sources"' EXIT
git -C "$source" ls-files --cached --others --exclude-standard -z -- . ':!tests' ':!bench' |
  tar -C "$source" --null --files-from - --create --file "$sources"
trusting=
for name in ${CA_BUNDLE:+PIP_CERT REQUESTS_CA_BUNDLE CURL_CA_BUNDLE SSL_CERT_FILE NODE_EXTRA_CA_CERTS}; do trusting+="$name=/tmp/ca.pem "; done
in_root() { printf 'chroot "$1" env %ssh -c %q' "$trusting" "$1"; }

mmdebstrap --quiet --variant=minbase \
  --customize-hook="upload $here/system.sh /tmp/system.sh" \
  --customize-hook="$(in_root 'sh /tmp/system.sh')" \
  --customize-hook='mkdir "$1/src"' \
  --customize-hook="tar-in $sources /src" \
  ${CA_BUNDLE:+--customize-hook="upload $CA_BUNDLE /tmp/ca.pem"} \
  --customize-hook="$(in_root "sh /src/deploy/image/install.sh $with")" \
  --customize-hook="$(in_root 'sh /src/deploy/image/user.sh && mkdir -p /app && rm -rf /src /tmp/* /root/.cache')" \
  trixie "$root"
echo "$root: $(du -sm "$root" | cut -f1) MB. Try it: bash deploy/image/run.sh $root" >&2
