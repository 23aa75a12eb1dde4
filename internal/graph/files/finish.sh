#!/bin/sh
# Remove what differs from machine to machine or from run to run, then set every
# time later than the epoch to the epoch.
set -eu
rm -rf /var/cache/apt/*.bin /var/cache/ldconfig/aux-cache /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
rm -f /etc/passwd- /etc/shadow- /etc/group- /etc/gshadow- /etc/subuid- /etc/subgid- /etc/.pwd.lock
rm -f /var/lib/dpkg/*-old /var/cache/debconf/*-old /var/lib/dpkg/lock* /var/cache/apt/archives/lock
find /var/log -type f -delete
if [ -e /etc/machine-id ]; then : > /etc/machine-id; fi
# The day a password last changed is the day of the build.
if [ -e /etc/shadow ]; then
  days=$((SOURCE_DATE_EPOCH / 86400))
  awk -F: -v OFS=: -v d="$days" '$3 ~ /^[0-9]+$/ && $3 > d { $3 = d } { print }' /etc/shadow > /tmp/shadow
  cmp -s /tmp/shadow /etc/shadow || cat /tmp/shadow > /etc/shadow
fi
# Mounts of the step itself are none of the image.
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /imgforge \
  -o -path /debs -o -path /etc/hosts -o -path /etc/resolv.conf \) -prune \
  -o -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
