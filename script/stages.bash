# shellcheck shell=bash
#
# script/stages.bash: runs named stages and sums up, for .ci/run. To be sourced. A stage that fails does not stop the
# others.
#
#   stage NAME CMD...        runs a command, shows its output as it comes
#   stages_beside N          runs those of the arrays `beside` and `later` (entries "NAME: CMD..."), N at a time. The
#                            output of each is shown when it ends. Those of `later` begin once the file
#                            `later_may_begin` exists, and then before the others. Each array keeps its order.
#   sum_up                   lists what became of each stage; returns 1 if one failed

NOT_RUN=75 # the status of a stage that cannot be had here and says why
stages_folder=$(mktemp -d "${TMPDIR:-/tmp}/pitwall-stages.XXXXXX")
later_may_begin=$stages_folder/later-may-begin
beside=()
later=()

# Bash ignores errors in functions that are called in a condition. Stages therefore chain their commands with &&.
stage() {
  local name=$1 began=$SECONDS log status=0
  log=$(mktemp "$stages_folder/log.XXXXXX")
  shift
  echo "=== $name"
  ("$@") 2>&1 | tee "$log" || status=$?
  record "$name" "$status" "$((SECONDS - began))" "$log"
}

minitest_summary='([0-9]+) runs, ([0-9]+) assertions, ([0-9]+) failures, ([0-9]+) errors, ([0-9]+) skips'

# One line a stage: result, seconds, runs, assertions, failures, errors, skips, name.
record() { # NAME STATUS SECONDS LOG
  local counts result=passed names=
  case $2 in 0) ;; "$NOT_RUN") result=not-run ;; *) result=FAILED names=$(failed_tests "$4") ;; esac
  counts=$(sed -nE "s/^$minitest_summary\$/\\1 \\2 \\3 \\4 \\5/p" "$4" |
    awk '{ for (i = 1; i <= 5; i++) sum[i] += $i }
         END { print sum[1] + 0, sum[2] + 0, sum[3] + 0, sum[4] + 0, sum[5] + 0 }')
  echo "$result $3 $counts $1${names:+: $names}" >>"$stages_folder/results"
  sed -n "s/^unsteady: /unsteady: $1: /p" "$4" | cut -c1-240 >>"$stages_folder/unsteady"
  [ "$result" != FAILED ] || what_failed "$1" "$4" >>"$stages_folder/failed"
  echo "=== $1 $result in $3 s"
}

# The names of a log's failed tests, at most five: "FooTest#test_bar FooTest#test_baz". They share a line with the
# stage.
failed_tests() { # failed_tests LOG
  awk '/^ *[0-9]+\) / { after = NR }
       after && NR == after + 1 && named < 5 { printf "%s%s", (named++ ? " " : ""), $1 }' "$1"
}

# The failed tests of a log, or its last lines where no test failed. Short, because a reader of CI may see only the end
# of its output.
what_failed() { # what_failed STAGE LOG
  local text
  text=$(sed -nE '/^ *[0-9]+\) /,/^$/p; /^Skipped, where nothing may be/,/^$/p; /^test: /p' "$2" | grep -v '^$' || true)
  # A run that was cut short has no list of failed tests: a crash, a sanitizer's report, a time limit.
  [ -n "$text" ] || text=$(
    grep -aE 'Sanitizer|\[BUG\]|Segmentation|Command failed|^    #[0-9] ' "$2" | head -n 8 || true
    tail -n 4 "$2"
  )
  echo "--- $1"
  head -n 12 <<<"$text" | cut -c1-160
}

stages_beside() { # stages_beside N
  echo 0 0 >"$stages_folder/begun"
  local lanes=()
  while [ ${#lanes[@]} -lt "$1" ]; do
    lane & lanes+=($!)
  done
  wait "${lanes[@]}"
}

# Takes the next stage that nobody has begun, until there is none.
lane() {
  local stage name words began status log
  while stage=$(next_stage) && [ -n "$stage" ]; do
    name=${stage%%: *}
    read -ra words <<<"${stage#*: }"
    log=$(mktemp "$stages_folder/log.XXXXXX")
    began=$SECONDS status=0
    echo "=== $name begins"
    ("${words[@]}") >"$log" 2>&1 || status=$?
    {
      flock 8
      echo "=== $name"
      cat "$log"
      record "$name" "$status" "$((SECONDS - began))" "$log"
    } 8>"$stages_folder/lock"
  done
}

# Prints it; nothing where all have begun. Waits where only `later` has any left and may not begin.
next_stage() {
  local may first second found=
  until [ -n "$found" ]; do
    may=
    [ ! -e "$later_may_begin" ] || may=1
    {
      flock 8
      read -r first second <"$stages_folder/begun"
      if [ -n "$may" ] && [ "$second" -lt ${#later[@]} ]; then
        found=${later[second]}
        second=$((second + 1))
      elif [ "$first" -lt ${#beside[@]} ]; then
        found=${beside[first]}
        first=$((first + 1))
      elif [ "$second" -ge ${#later[@]} ]; then
        return 0
      fi
      echo "$first $second" >"$stages_folder/begun"
    } 8>"$stages_folder/begun.lock"
    [ -n "$found" ] || sleep 1
  done
  echo "$found"
}

# The last line has minitest's form and counts all tests of all stages. A stage that failed without a failed test counts
# as one error.
sum_up() {
  echo
  echo "=== stages, seconds"
  awk '{ name = $0; for (i = 1; i <= 7; i++) sub(/^[^ ]+ /, "", name)
         printf "%-8s %6d  %s\n", $1, $2, name }' "$stages_folder/results"
  echo "total    $(printf '%6d' "$SECONDS")"
  cat "$stages_folder/unsteady"
  local status=0
  if grep -q '^FAILED ' "$stages_folder/results"; then
    status=1
    cat "$stages_folder/failed"
    echo "=== FAILED: $(sed -nE 's/^FAILED ([^ ]+ ){6}//p' "$stages_folder/results" | paste -sd, | sed 's/,/, /g')"
  else
    echo "=== all stages passed"
  fi
  awk '{ for (i = 3; i <= 7; i++) sum[i] += $i; if ($1 == "FAILED" && $5 + $6 == 0) sum[6]++ }
    END { printf "%d runs, %d assertions, %d failures, %d errors, %d skips\n",
                 sum[3], sum[4], sum[5], sum[6], sum[7] }' "$stages_folder/results"
  rm -rf "$stages_folder"
  return "$status"
}
