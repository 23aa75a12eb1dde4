#!/bin/sh
# Install the cell's .debs over the base in one offline run.
set -eu
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C.UTF-8
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
# apt orders pre-dependencies, which dpkg alone does not. All it may use is here.
apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null \
  -o APT::Sandbox::User=root -o Dpkg::Options::=--force-unsafe-io -o Dpkg::Use-Pty=0 \
  -o Dpkg::Options::=--force-confold --no-install-recommends --yes install /debs/*.deb > /tmp/apt.log 2>&1 || {
  tail -n 60 /tmp/apt.log
  exit 1
}
dpkg --audit
rm /usr/sbin/policy-rc.d
exec sh /imgforge/finish.sh
