#!/bin/sh
# The user that the service runs as, and the folders that it may write.
set -eu
useradd --uid 10001 --create-home --home-dir /home/maniple --shell /usr/sbin/nologin maniple
mkdir -p /var/lib/maniple /var/cache/maniple
chown -R maniple:maniple /var/lib/maniple /var/cache/maniple
