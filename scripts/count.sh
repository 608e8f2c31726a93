# Sourced by run-tests.sh: parts of the run, what passed and failed in them, and how long they took.

passed=0
failed=0
skipped=0
began=$SECONDS
no_part_after=$((75 * 60))  # seconds: a run that is ended from outside loses all that it found
part_seconds=()
result_files=()
program_cpu=0  # CPU-seconds of building the command line

heading() { printf '\n== %s (%d s)\n' "$1" $((SECONDS - began)); }

# cpu_seconds: user and system time of this script and of all that it has waited for.
cpu_seconds() {
  local fields
  read -ra fields </proc/$$/stat
  echo $(((fields[13] + fields[14] + fields[15] + fields[16]) / $(getconf CLK_TCK)))
}

# failure WHAT: counts one.
failure() {
  echo "FAILED: $1"
  failed=$((failed + 1))
}

# check NAME COMMAND...: one check, passed if the command succeeds.
check() {
  if "${@:2}"; then passed=$((passed + 1)); else failure "$1"; fi
}

# must NAME COMMAND...: a step that tests depend on; counted only where it fails.
must() {
  "${@:2}" && return 0
  failure "$1"
  return 1
}

# count NAME [OPTION...] FILE...: adds the tests of JUnit files (see count_tests.py); what left none is a failure.
count() {
  local more_passed more_failed more_skipped counts
  counts=$(python3 scripts/count_tests.py "${@:2}") || counts="0 1 0"
  read -r more_passed more_failed more_skipped <<<"$counts"
  echo "$1: $more_passed passed, $more_failed failed, $more_skipped skipped"
  passed=$((passed + more_passed))
  failed=$((failed + more_failed))
  skipped=$((skipped + more_skipped))
  local argument
  for argument in "${@:2}"; do [[ $argument != *.xml ]] || result_files+=("$argument"); done
}

# run_part NAME: runs part_NAME, unless it is too late.
run_part() {
  if [ $((SECONDS - began)) -gt $no_part_after ]; then
    failure "$1: left out, as the run had taken $((no_part_after / 60)) minutes"
    return
  fi
  heading "$1"
  local since=$SECONDS
  "part_$1"
  part_seconds+=("$((SECONDS - since)) $1")
}

# Tests may be left out where what they need is absent, but not where all of it is to be checked.
skips_allowed() { [ "${CI:-}" != true ] || [ "$skipped" -le "${PIPEWEAVER_MAY_SKIP:-0}" ]; }

# close: says what took how long and what passed, and ends the script.
close() {
  heading "seconds of each part"
  local line comparable=()
  for line in "${part_seconds[@]}"; do printf '%6d  %s\n' $line; done
  heading "the longest tests"
  [ ${#result_files[@]} -eq 0 ] || python3 scripts/count_tests.py --longest 15 "${result_files[@]}"
  heading "cost"
  [[ $core = yes || ${parts[*]} != "${usual_parts[*]}" ]] || comparable=(--comparable)
  python3 scripts/run_cost.py --wall $((SECONDS - began)) --cpu "$(cpu_seconds)" --program "$program_cpu" \
    --compiles "${CCACHE_STATSLOG:-none}" "${comparable[@]}"
  heading "done"
  skips_allowed || failure "$skipped tests were skipped, allowed are ${PIPEWEAVER_MAY_SKIP:-0}"
  local left_out=
  [ "$skipped" -eq 0 ] || left_out=", $skipped skipped"
  echo "$passed passed, $failed failed$left_out"
  [ "$failed" -eq 0 ]
  exit
}
