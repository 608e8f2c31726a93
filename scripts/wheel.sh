#!/usr/bin/env bash
# Builds the wheel for any Linux on x86-64, with Debian 12's compiler: out/wheel/pipeweaver-*.whl. Further arguments are
# pip's, such as --config-settings build-dir=build/release.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
exec </dev/null
. scripts/debian.sh

install_packages "${release_packages[@]}" python3 python3-dev python3-venv
use_ccache "$PWD"
tools=build/wheel-tools
[ -x $tools/bin/python ] || python3 -m venv $tools
$tools/bin/python -m pip install --quiet --disable-pip-version-check --requirement scripts/requirements-wheel.txt
rm -rf build/wheel-plain
CMAKE_BUILD_PARALLEL_LEVEL=$(nproc) $tools/bin/python -m pip wheel --quiet --disable-pip-version-check \
  --no-build-isolation --no-deps --wheel-dir build/wheel-plain "$@" .
$tools/bin/python scripts/portable_wheel.py --out out/wheel build/wheel-plain/*.whl
