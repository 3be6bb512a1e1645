#!/bin/sh
# Measures a pull request against its base in one job, and writes pitwall.md. It needs no token.
#
#   gate.sh BASE BENCHMARK...    BASE: a commit, e.g. HEAD^1 of a merge commit
#
# Status: 0 passes, or nothing to measure; 1 slower in both runs; 2 no such commit; 4 can't be measured.
# Settings by environment variables: PITWALL_LIMIT, PITWALL_BUDGET (seconds a run and case), PITWALL_REPORT.
set -u

if [ $# -lt 2 ]; then
  echo "usage: gate.sh BASE BENCHMARK..." >&2
  exit 2
fi
base=$1
shift
report=${PITWALL_REPORT:-pitwall.md}
worst=0
: >"$report"
for benchmark in "$@"; do
  printf '### %s\n\n' "$benchmark" >>"$report"
  status=0
  pitwall compare --rev "$base" --as base --rev HEAD --as head --fail-if "${PITWALL_LIMIT:-slower by 3%}" \
    --budget "${PITWALL_BUDGET:-40}" --format markdown --out "$report.part" "$benchmark" || status=$?
  if [ -s "$report.part" ]; then
    cat "$report.part" >>"$report"
  else
    echo "Could not be measured (status $status): the log of the job says why." >>"$report"
  fi
  rm -f "$report.part"
  echo >>"$report"
  # A benchmark that is slower counts more than one that can't be measured.
  if [ "$status" -eq 1 ] || [ "$worst" -eq 0 ]; then worst=$status; fi
done
cat "$report"
exit "$worst"
