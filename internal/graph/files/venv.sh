#!/bin/sh
# Make the empty virtual environment every wheel layer is merged into.
# usage: venv.sh PYTHON [OPTION OF venv]...
set -eu
python=$1
shift
"$python" -m venv --without-pip "$@" /opt/venv
mkdir -p /out/opt
cp -a /opt/venv /out/opt/
find /out -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
