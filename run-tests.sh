#!/usr/bin/env bash
# Runs all tests and closes with the line "N passed, N failed"; the exit status is 0 only if none failed.
#
#   run-tests.sh          everything
#   run-tests.sh --core   without the tests that need PyTorch, a browser, Ray or Slurm
#
# Counted are: each C++ test case, once as built for development and once under address and undefined-behaviour
# sanitizers; each Python test; and each check of the sources as one. A failure stops nothing, so the count is whole.
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" || exit 1
exec </dev/null
. scripts/debian.sh

core=no
case "${1:-}" in
  "") ;;
  --core) core=yes ;;
  *) echo "usage: run-tests.sh [--core]" >&2; exit 2 ;;
esac

results=$PWD/build/test-results
passed=0
failed=0
began=$SECONDS

heading() { printf '\n== %s (%d s)\n' "$1" $((SECONDS - began)); }

# check NAME COMMAND...: one check, passed if the command succeeds.
check() {
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    echo "FAILED: $name"
    failed=$((failed + 1))
  fi
}

# must NAME COMMAND...: a step that tests depend on; counted only where it fails.
must() {
  local name=$1
  shift
  "$@" && return 0
  echo "FAILED: $name"
  failed=$((failed + 1))
  return 1
}

# count NAME FILE: adds the tests of a JUnit file; a run that left none is a failure.
count() {
  local counts
  if ! counts=$(python3 scripts/count_tests.py "$2"); then
    echo "FAILED: $1 left no results"
    failed=$((failed + 1))
    return
  fi
  read -r more_passed more_failed <<<"$counts"
  echo "$1: $more_passed passed, $more_failed failed"
  passed=$((passed + more_passed))
  failed=$((failed + more_failed))
}

build() { cmake --preset "$1" && cmake --build --preset "$1" -j"$(nproc)"; }

cpp_tests() {
  heading "C++ tests, preset $1"
  must "build of preset $1" build "$1" || return
  # No test takes long; one that hangs must not hold up the rest for long.
  ctest --preset "$1" -j"$(nproc)" --timeout 900 --output-junit "$results/$1.xml"
  count "C++ tests, preset $1" "$results/$1.xml"
}

pip_install() { .venv/bin/python -m pip --quiet --disable-pip-version-check install "$@"; }

# The CPU build of PyTorch: from where pip is told to look for files, else from PyTorch's own index; PyPI's build for
# Linux would bring gigabytes of GPU libraries.
install_torch() {
  local cpu_index=()
  .venv/bin/python -c 'import torch' 2>/dev/null || pip_install --no-index --no-deps torch==2.13.0 2>/dev/null ||
    cpu_index=(--extra-index-url https://download.pytorch.org/whl/cpu)
  pip_install "${cpu_index[@]}" --requirement tests/python/requirements-torch.txt
}

# The wheel, from the release build's objects as far as ccache has them: same compiler, same flags.
python_package() {
  pip_install --requirement tests/python/requirements-package.txt || return
  rm -rf build/wheel
  CMAKE_BUILD_PARALLEL_LEVEL=$(nproc) .venv/bin/python -m pip --quiet --disable-pip-version-check wheel \
    --no-build-isolation --no-deps --wheel-dir build/wheel . && pip_install --no-deps --force-reinstall build/wheel/*.whl
}

# Without PyTorch the part of the package that runs on it cannot be checked.
typed() {
  local left_out=()
  [ $core = no ] || left_out=(--exclude 'pipeweaver/(torch/|profil)')
  .venv/bin/python -m mypy --strict python/pipeweaver "${left_out[@]}"
}

python_environment() {
  .venv/bin/python -c pass 2>/dev/null || python3 -m venv --clear .venv || return
  pip_install --requirement tests/python/requirements.txt || return
  must "OR-tools" pip_install --requirement tests/python/requirements-oracle.txt
  must "schemathesis" pip_install --requirement tests/python/requirements-openapi.txt
  must "Python package" python_package
  [ $core = no ] || return 0
  install_torch && pip_install --requirement tests/python/requirements-browser.txt
}

python_tests() {
  heading "Python tests"
  must "Python environment" python_environment || return
  local left_out=()
  [ $core = no ] || left_out=(--ignore-glob='*torch*' --ignore-glob='*browser*')
  timeout 900 .venv/bin/python -m pytest -q tests/python "${left_out[@]}" --junitxml="$results/python.xml"
  count "Python tests" "$results/python.xml"
}

sources() {
  find . \( -path ./build -o -path ./out -o -path ./.venv -o -path ./.cache -o -path ./.git \) -prune -o \
    \( -name '*.hpp' -o -name '*.cpp' \) -print0
}

formatted() { sources | xargs -0 clang-format --dry-run -Werror; }

heading "Debian packages"
packages=("${release_packages[@]}" "${test_packages[@]}")
[ $core = yes ] || packages+=("${browser_packages[@]}")
if ! install_packages "${packages[@]}"; then
  echo "0 passed, 1 failed"
  exit 1
fi
use_ccache "$PWD"
rm -rf "$results"
mkdir -p "$results"

cpp_tests dev
cpp_tests asan
heading "the release build has no warnings"
check "release build" build release
python_tests
heading "types of the Python package"
check "mypy --strict" typed
heading "structure"
check "structure" python3 tools/check_structure.py
heading "clang-format"
check "clang-format" formatted
heading "clang-tidy"
check "clang-tidy" python3 tools/tidy.py build/dev  # whose flags it needs

heading "done"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
