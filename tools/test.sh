# What `tools/dev test` does. Sourced by tools/dev, whose functions and variables it uses.

refuse_tests() {
  echo "tools/dev test: $*" >&2
  exit 2
}

# Fails if a word of the arguments is the name of no test: Meson is content if another one is.
look_for_tests() {
  local word previous=
  for word; do
    if [[ $word =~ ^[a-z0-9_]+$ && $previous != -* ]] &&
      ! grep -qF "\"name\": \"$word\"" "$build/meson-info/intro-tests.json"; then
      refuse_tests "there is no test $word; see tools/dev test --list"
    fi
    previous=$word
  done
}

run_tests() {
  unset MUSTER_TEST_SCALE  # the same tests everywhere
  local which=(--no-suite torch) arguments=() words=" $* "
  local folder='(client|core|job|launch|link|runtime|server)'
  if [[ $words == *" --only "* && ! $words =~ ^\ script_$folder\ --only\ [a-z0-9_]+\ $ ]]; then
    refuse_tests "--only needs a folder of scripts and a script, and nothing else:" \
      "script_core --only store_take"
  fi
  if [[ $words == *" --torch "* && $words == *" --suite "* ]]; then
    refuse_tests "--torch means the suite torch; give it names of tests, or nothing"
  fi
  while (($# > 0)); do
    case $1 in
      --torch) which=(--suite torch) ;;
      --suite)
        if [[ ${2:-} == torch ]]; then
          which=(--suite torch)
          shift
        else
          arguments+=("$1")
        fi
        ;;
      --only)
        arguments+=("--test-args=--only $2")
        shift
        ;;
      *) arguments+=("$1") ;;
    esac
    shift
  done
  setup test
  if ((${#arguments[@]} == 0)); then
    (setup loops) || echo "Going on without: tests of uvloop and anyio are skipped."
  fi
  if [[ ${which[*]} == "--suite torch" ]]; then setup torch; fi
  if ((${#arguments[@]} > 0)) || [[ ${which[*]} == "--suite torch" ]]; then
    configure
  else
    build
  fi
  look_for_tests "${arguments[@]}"
  # Most tests wait most of the time.
  local test=(meson test -C "$build" --print-errorlogs --num-processes $((4 * $(nproc)))
    "${which[@]}" "${arguments[@]}")
  local log=$build/meson-logs/testlog.json status=0
  rm -f "$log"
  if [[ -t 1 ]]; then "${test[@]}"; else PYTHONUNBUFFERED=1 "${test[@]}" | progress; fi || status=$?
  # Meson is content if there is no such test.
  if ((status == 0)) && [[ ! -s $log && $words != *" --list "* ]]; then
    echo "No test was run: there is none of that name, or it needs --torch" >&2
    return 1
  fi
  return $status
}
