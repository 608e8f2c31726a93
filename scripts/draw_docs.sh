#!/usr/bin/env bash
# Draws what README.md and docs/ show of the program anew: printed answers (scripts/draw_docs.py says how) and the
# pictures of a plan. With pages named, these alone; pictures with README.md, whose plan they show.
#
#   scripts/draw_docs.sh [--check] [PAGE ...]      --check writes nothing; the exit status is 1 where something differs
#
# The program is PIPEWEAVER_BIN, or that of the preset check or release; Python is that of run-tests.sh, if it is there.
# Not drawn: docs/pictures/report.png and search.png (a browser's), accuracy.svg (published runs), and tables of studies.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
exec </dev/null

program=${PIPEWEAVER_BIN:-}
for built in build/check/bin/pipeweaver build/release/bin/pipeweaver; do
  [ -n "$program" ] || [ ! -x $built ] || program=$built
done
[ -x "$program" ] || { echo "no program: set PIPEWEAVER_BIN, or build the preset check or release" >&2; exit 2; }
python=python3
[ ! -x .venv/bin/python ] || python=.venv/bin/python

kept=$(mktemp -d)
trap 'rm -rf "$kept"' EXIT
status=0
"$python" scripts/draw_docs.py "$program" "$@" --keep "$kept/pages" || status=$?
[ $status -le 1 ] && [ -f "$kept/pages/README/plan/plan.json" ] || exit $status

mkdir "$kept/pictures"
"$python" studies/draw_plan.py "$kept/pictures" "$kept/pages/README/plan"
for picture in "$kept"/pictures/*.svg; do
  kept_one=docs/pictures/$(basename "$picture")
  cmp --silent "$picture" "$kept_one" && continue
  echo "$kept_one differs"
  if [[ " $* " == *" --check "* ]]; then status=1; else cp "$picture" "$kept_one"; fi
done
exit $status
