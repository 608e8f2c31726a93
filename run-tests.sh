#!/usr/bin/env bash
# Runs all tests and closes with the line "N passed, N failed"; the exit status is 0 only if none failed.
#
#   run-tests.sh                    everything that a change must pass; some 35 minutes from nothing on two slow cores
#   run-tests.sh --quick            while working, under three minutes: format, structure, C++ tests of modules that changed
#   run-tests.sh --core             without the tests that need PyTorch, a framework on it, a browser, Ray or Slurm
#   run-tests.sh --all[=PART,...]   the full forms, too; these parts alone: full dev asan tidy python roots studies fuzz tsan
#   run-tests.sh --only PART,...    these parts: format structure build tidy alone cpp types python
#
# Counted are: each C++ test case once, on the libraries with address and undefined-behaviour sanitizers in its short form
# or on the release build's, where those differ; each Python test; and each check of the sources as one. A case that ran
# nowhere and does not wait for --all=full is a failure. A failure stops nothing, so the count is whole. No part begins
# after 75 minutes: what is left out then counts as failed. What the run cost is printed at the end, beside the last
# landing's (tests/run_cost.txt).
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" || exit 1
exec </dev/null
. scripts/debian.sh
. scripts/count.sh

usage() {
  echo "usage: run-tests.sh [--core] [--quick | --all[=PART,...] | --only PART,...]; parts are listed at its top" >&2
  exit 2
}

usual_parts=(format structure build tidy alone cpp types python)
quick_parts=(format structure quick)
full_parts=(full dev asan tidy python roots studies fuzz tsan)
core=no
parts=("${usual_parts[@]}")
while [ $# -gt 0 ]; do
  case "$1" in
    --core) core=yes ;;
    --quick) parts=("${quick_parts[@]}") ;;
    --all) parts+=("${full_parts[@]/#/all_}") ;;
    --all=*) IFS=, read -ra parts <<<"${1#--all=}"; parts=("${parts[@]/#/all_}") ;;
    --only) IFS=, read -ra parts <<<"${2:-}"; shift ;;
    *) usage ;;
  esac
  shift
done
for part in "${parts[@]}"; do
  [[ " ${usual_parts[*]} quick ${full_parts[*]/#/all_} " == *" $part "* ]] || usage
done

dev_programs=(pipeweaver pipeweaver-bench pipeweaver-load pipeweaver_tests)
results=$PWD/build/check/test-results
python_packages=
python_packages_status=1

# --- what the parts do

compiled() { cmake --preset "$1" && cmake --build --preset "$1" -j"$(nproc)" --target "${@:2}"; }

sources() {
  find . \( -path ./build -o -path ./out -o -path ./.venv -o -path ./.cache -o -path ./.git \) -prune -o \
    \( -name '*.hpp' -o -name '*.cpp' \) -print0
}

formatted() { sources | xargs -0 .venv/bin/clang-format --dry-run -Werror; }

# cases_of PRESET PROGRAM [OPTION...]: how many cases the program would run.
cases_of() { "build/$1/bin/$2" --count "${@:3}" | grep -o '[0-9]*$'; }

# ctest_of PRESET CASES LABEL...: the tests of CTest with these labels; CASES must leave a result.
ctest_of() {
  local preset=$1 cases=$2 labels folder=$PWD/build/$1/test-results label files=()
  shift 2
  for label in "$@"; do rm -rf "${folder:?}/$label" && mkdir -p "$folder/$label"; done
  rm -f "$folder/plan-digests"
  labels=$(IFS='|'; echo "$*")
  # No test takes long; one that hangs must not hold up the rest for long.
  ctest --preset "$preset" --label-regex "^($labels)\$" -j"$(nproc)" --timeout 900 --output-on-failure --output-log "$folder/log" \
    --output-junit "$folder/ctest.junit" >/dev/null ||
    sed -n '/tests passed, /,$p' "$folder/log"
  for label in "$@"; do files+=("$folder/$label"/*.xml); done
  count "C++ tests, $preset, $*" --at-least "$cases" --log "$folder/log" --ctest "$folder/ctest.junit" "${files[@]}"
}

# The cases of PRESET's test program in their full forms.
full_cases_of() {
  PIPEWEAVER_FULL=1 ctest_of "$1" "$(PIPEWEAVER_FULL=1 cases_of "$1" pipeweaver_tests)" pipeweaver_tests
}

each_case_ran() { python3 scripts/cases.py build/check >"$results/cases.txt" && echo "where: ${results#"$PWD"/}/cases.txt"; }

# What is changed is built source by source, and its tests are run in their short forms.
part_quick() {
  local modules
  local changed
  changed=$(python3 scripts/changed.py --commits 1) || { failure "what changed"; return; }
  modules=$(printf '%s' "$changed" | sed 's,^support$,verifier,' | grep -vx 'python\|studies' | paste -sd'|')
  if [ -z "$modules" ]; then
    echo "nothing to do: neither the work tree nor the last commit changed a module of C++"
    return
  fi
  echo "modules: ${modules//|/ }"
  must "build of preset dev" compiled dev pipeweaver_tests || return
  rm -rf build/dev/test-results/pipeweaver_tests && mkdir -p build/dev/test-results/pipeweaver_tests
  PIPEWEAVER_SHORT=1 ctest --preset dev --tests-regex "^pipeweaver_tests/($modules)/" --no-tests=ignore -j"$(nproc)" \
    --timeout 120 --output-on-failure --output-log build/dev/test-results/log >/dev/null ||
    sed -n '/tests passed, /,$p' build/dev/test-results/log
  local files=(build/dev/test-results/pipeweaver_tests/*.xml)
  if [ -e "${files[0]}" ]; then
    count "C++ tests of these modules" "${files[@]}"
  else
    echo "nothing to do: these modules have no C++ tests"
  fi
}

part_format() { must "formatter and linter" tools_installed && check "clang-format" formatted; }
part_structure() {
  check "structure" python3 tools/check_structure.py
  check "commits" python3 tools/check_commits.py
}
part_build() {
  rm -rf "$results" && mkdir -p "$results"
  local since
  since=$(cpu_seconds)
  must "build of the program" compiled check pipeweaver || return
  program_cpu=$(($(cpu_seconds) - since))
  must "build" compiled check pipeweaver_pages pipeweaver-bench pipeweaver-load pipeweaver_tests pipeweaver_tests_sanitized
}
part_tidy() {
  must "formatter and linter" tools_installed && check "clang-tidy" python3 scripts/tidy.py --changed build/check
}
part_alone() { check "changed sources compile alone" python3 scripts/compile_alone.py; }
part_cpp() {
  local sanitized release
  rm -rf "${results:?}/pipeweaver_tests"
  sanitized=$(cases_of check pipeweaver_tests_sanitized)
  release=$(cases_of check pipeweaver_tests "--test-suite=release libraries,both libraries")
  # Reports are seldom read: of allocations they know two callers (with one LeakSanitizer finds nothing).
  ASAN_OPTIONS=malloc_context_size=2:quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1 \
    ctest_of check $((sanitized + release)) pipeweaver_tests_sanitized release_cases
  check "each C++ case ran" each_case_ran
}

part_all_full() {
  must "build" compiled check pipeweaver_tests && full_cases_of check
}
part_all_dev() {
  must "build of preset dev" compiled dev "${dev_programs[@]}" && full_cases_of dev
}
# The tests in their full forms, and the command line on 6,000 mutated inputs.
part_all_asan() {
  must "build of preset asan" compiled asan pipeweaver pipeweaver_tests && full_cases_of asan &&
    check "sanitized command line on mutated inputs" python3 tests/fuzz/mutated_inputs.py --slow 10 --program build/asan/bin/pipeweaver
}
part_all_tidy() {
  must "formatter and linter" tools_installed && must "build of preset dev" compiled dev "${dev_programs[@]}" &&
    check "clang-tidy, each source" python3 scripts/tidy.py --each build/dev
}
part_all_python() { PIPEWEAVER_FULL=1 part_python; }
# A fresh clone in bare roots of Debian 12 and 13: quickstart.sh in both, run-tests.sh in the newer.
part_all_roots() {
  check "quickstart.sh in bare roots" tests/install/in_clean_roots.sh --source
  check "run-tests.sh --core in a bare root" tests/install/in_clean_roots.sh --core
}
# What clients may send to a server, for three minutes.
part_all_fuzz() {
  must "Debian packages of the fuzzers" install_packages "${fuzz_packages[@]}" &&
    must "build of preset fuzz" compiled fuzz fuzz_request &&
    check "fuzzer of requests" python3 tools/fuzz.py --minutes 3 request
}
# The server under the load of many clients, for a minute; 200 solves and plans; 50 submits of a Python process.
part_all_tsan() {
  await_python_packages || return
  check "server under the thread sanitizer" python3 tools/tsan_service.py --seconds 60
  check "runs under the thread sanitizer" .venv/bin/python tools/tsan_runs.py
}
part_all_studies() {
  await_python_packages || return
  must "build of the studies" cmake --preset check -DPIPEWEAVER_BUILD_STUDIES=ON || return
  must "build of the studies" cmake --build --preset check -j"$(nproc)" --target pipeweaver pipeweaver-bench pipeweaver_studies || return
  .venv/bin/python -m pytest -q -n 3 studies/tests --junitxml="$results/studies.xml"
  count "studies" "$results/studies.xml"
}

# --- Python

python_there() { .venv/bin/python -c pass 2>/dev/null || python3 -m venv --clear .venv; }

pip_install() { .venv/bin/python -m pip --quiet --disable-pip-version-check install "$@"; }

# Formatter and linter, of which each part that wants one asks first: they are there in seconds.
tools_installed() {
  local wanted=tests/python/requirements-tools.txt
  python_there && { cmp -s $wanted .venv/tools || { pip_install --requirement $wanted && cp $wanted .venv/tools; }; }
}

# The CPU build of PyTorch: from where pip is told to look for files, else from PyTorch's own index; PyPI's build for
# Linux would bring gigabytes of GPU libraries.
install_torch() {
  local cpu_index=()
  .venv/bin/python -c 'import torch' 2>/dev/null || pip_install --no-index --no-deps torch==2.13.0 2>/dev/null ||
    cpu_index=(--extra-index-url https://download.pytorch.org/whl/cpu)
  pip_install "${cpu_index[@]}" --requirement tests/python/requirements-torch.txt \
    --requirement tests/python/requirements-frameworks.txt
}

install_python_packages() {
  python_there || return
  local wanted=(requirements requirements-package requirements-oracle requirements-openapi) name
  [ $core = yes ] || wanted+=(requirements-browser requirements-ray requirements-site)
  for name in "${wanted[@]}"; do pip_install --requirement "tests/python/$name.txt" || return; done
  [ $core = yes ] || install_torch
}

# While the compiler runs; who needs them waits.
begin_python_packages() {
  mkdir -p build
  install_python_packages >build/python-packages.log 2>&1 &
  python_packages=$!
}

await_python_packages() {
  [ -z "$python_packages" ] || { wait "$python_packages"; python_packages_status=$?; python_packages=; }
  [ $python_packages_status -eq 0 ] || { tail -n 20 build/python-packages.log; must "Python packages" false; }
}

# The wheel, from the objects of the preset check, which are those of the release build.
python_package() {
  rm -rf build/wheel
  CMAKE_BUILD_PARALLEL_LEVEL=$(nproc) .venv/bin/python -m pip --quiet --disable-pip-version-check wheel \
    --no-build-isolation --no-deps --wheel-dir build/wheel --config-settings build-dir=build/check . &&
    pip_install --no-deps --force-reinstall build/wheel/*.whl && (cd build && ../.venv/bin/python -c 'import pipeweaver._core')
}

# Without PyTorch the part of the package that runs on it cannot be checked.
typed() {
  local left_out=()
  [ $core = no ] || left_out=(--exclude 'pipeweaver/(torch/|profil|selfcheck/)')
  .venv/bin/python -m mypy --strict python/pipeweaver "${left_out[@]}"
}

# pytest that ran its tests, whatever came of them; with any other status some have not run.
to_their_end() { "$@" || [ $? -eq 1 ]; }

part_types() {
  await_python_packages && check "mypy --strict" typed
}

part_python() {
  await_python_packages && must "Python package" python_package || return
  local left_out=()
  [ $core = no ] || left_out=(--ignore=tests/python/{torch,frameworks,browser,clusters})
  local pytest=(.venv/bin/python -m pytest -q tests/python "${left_out[@]}" --session-timeout=5400)
  # Three workers on two cores: much of the time they wait. What asks the clock runs by itself.
  must "Python tests came to their end" to_their_end "${pytest[@]}" -m "not alone" -n 3 --junitxml="$results/python.xml"
  count "Python tests" "$results/python.xml"
  must "Python tests that ask the clock came to their end" to_their_end "${pytest[@]}" -m alone --junitxml="$results/python-alone.xml"
  count "Python tests that ask the clock" "$results/python-alone.xml"
}

# --- all of it

heading "Debian packages"
packages=("${release_packages[@]}" "${test_packages[@]}")
[[ $core = yes || ! " ${parts[*]} " =~ python ]] || packages+=("${browser_packages[@]}" "${pages_packages[@]}" "${slurm_packages[@]}")
must "Debian packages" install_packages "${packages[@]}" || close
use_ccache "$PWD"
mkdir -p "$results"
python_there  # before two want to make it
export CCACHE_STATSLOG=$PWD/build/ccache-statistics
rm -f "$CCACHE_STATSLOG"
[[ ! " ${parts[*]} " =~ python|types|studies|tsan ]] || begin_python_packages
for part in "${parts[@]}"; do run_part "$part"; done
[ -z "$python_packages" ] || wait "$python_packages"
close
