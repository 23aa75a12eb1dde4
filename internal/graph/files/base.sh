#!/bin/sh
# Configure a Debian root whose packages were unpacked by hand: install every
# .deb of /debs properly, with no network, then leave nothing of this build.
set -eu
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C.UTF-8
# dpkg needs no answers from services, and none may start.
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
# The first pass unpacks in any order, so dependencies are only checked by the second.
dpkg --force-unsafe-io --force-depends --force-confold --install /debs/*.deb > /tmp/dpkg.log 2>&1 ||
  dpkg --force-unsafe-io --force-confold --configure -a >> /tmp/dpkg.log 2>&1 || {
  tail -n 60 /tmp/dpkg.log
  exit 1
}
dpkg --force-confold --configure -a
dpkg --audit
rm /usr/sbin/policy-rc.d
exec sh /imgforge/finish.sh
