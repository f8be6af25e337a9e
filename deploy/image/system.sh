#!/bin/sh
# The Debian packages of the image: Python, the sandbox, the browser, fonts for Chinese, Japanese, Korean,
# Hindi and emoji.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends \
  ca-certificates python3 python3-venv libgomp1 bubblewrap chromium-headless-shell libnss3-tools fonts-dejavu-core fonts-wqy-zenhei \
  fonts-lohit-deva fonts-noto-color-emoji tini
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log /usr/share/doc/* /usr/share/man/* \
  /usr/share/locale/*
