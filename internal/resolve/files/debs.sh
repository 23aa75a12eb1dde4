#!/bin/sh
# Ask apt, with no network, what each set of packages comes to on the architecture
# that is named, which need not be this machine's. /in/archive holds
# verified Packages files, one a directory; each directory of /in/ask holds
# `packages`, one a line, `status`, what is installed already, and `preferences`,
# what to choose again; where that has no solution, apt chooses freely.
set -eu
export LC_ALL=C APT_CONFIG=/tmp/apt.conf
mkdir -p /tmp/lists/partial /tmp/cache/archives/partial
for dir in /in/archive/*/; do
  echo "deb [trusted=yes] file:${dir%/} ./"
done > /tmp/sources.list
cat > /tmp/apt.conf << CONF
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Architecture "$1";
APT::Architectures { "$1"; };
Acquire::Languages "none";
Debug::NoLocking "true";
Dir::Cache "/tmp/cache";
Dir::Etc::sourcelist "/tmp/sources.list";
Dir::Etc::sourceparts "/nonexistent";
Dir::State::lists "/tmp/lists";
Dir::State::status "/tmp/status";
CONF
: > /tmp/status
apt-get -q update
for ask in /in/ask/*/; do
  name=$(basename "$ask")
  cp "$ask/status" /tmp/status
  solve() {
    xargs apt-get -q -s --no-remove "$@" install < "$ask/packages" > "/out/$name.out" 2> "/out/$name.err"
  }
  if solve -o "Dir::Etc::preferences=$ask/preferences" || solve; then
    echo ok > "/out/$name.end"
  fi
done
