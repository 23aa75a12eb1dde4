#!/bin/sh
# Make the empty virtual environment every wheel layer is merged into.
set -eu
python3 -m venv --without-pip /opt/venv
mkdir -p /out/opt
cp -a /opt/venv /out/opt/
find /out -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
