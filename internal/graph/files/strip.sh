#!/bin/sh
# Remove from a base what the image must not have.
# usage: strip.sh PATH...
set -eu
rm -rf -- "$@"
exec sh /imgforge/finish.sh
