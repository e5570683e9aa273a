# What `tools/dev bench` does. Sourced by tools/dev, whose functions and variables it uses.

configure_bench() {
  build=build/bench
  options_of_build=(-Doptimization=3 -Db_ndebug=true -Dbenchmarks=enabled -Dgloo=auto
    "$python" -Dunity=on -Dunity_size=24)
  configure_exactly
}

# Without an argument, or with --build, --check or --accept.
bench_micro() {
  local programs=(bench/micro_repeat)
  if (($# == 0)); then
    setup micro
    programs+=(bench/micro_times)
  else
    setup instructions
  fi
  configure_bench
  if (($# == 0)); then
    # Configured before Google Benchmark was there?
    grep -q bench/micro_times "$build/build.ninja" || meson setup --reconfigure "$build" > /dev/null
  fi
  ninja -C "$build" "${programs[@]}" | progress
  if [[ $* == --build ]]; then return; fi
  if (($# == 0)); then "$build/bench/micro_times"; fi
  /usr/bin/python3 bench/micro/instructions.py "$build/bench/micro_repeat" "$@"
}

# bench_turns FOLDER ARGUMENTS...: programs that take turns, of bench/FOLDER.
bench_python() {
  setup
  if [[ " $* " == *" --peers "* ]]; then setup compare; setup python_peers; fi
  configure_bench
  ninja -C "$build" tools/musterd bench/python_calls python_package | progress
  /usr/bin/python3 bench/python/run.py "$build" "$@"
}
bench_drop_ins() {
  setup
  [[ " $* " != *" --peers "* ]] || setup compare
  configure_bench
  ninja -C "$build" tools/musterd python_package | progress
  /usr/bin/python3 bench/python/drop_ins.py "$build" "$@"
}
bench_turns() {
  setup
  [[ " $* " != *" --peers "* ]] || setup compare
  configure_bench
  ninja -C "$build" tools/{musterd,musterrun} bench/{runtime_ranks,launched_child,bare_launcher} |
    progress
  /usr/bin/python3 "bench/$1/run.py" "$build" "${@:2}"
}

# Only a run of everything is written to docs/benchmarks, or the rest would be lost.
# Prints the Python of the newest torch that compat has installed.
newest_torch() {
  local found
  found=$(find build/compat/ -maxdepth 3 -path '*/bin/python' 2>/dev/null | sort -V | tail -n 1)
  [[ -n $found ]] || echo "no newer torch: tools/dev compat installs one" >&2
  echo "$found"
}

bench() {
  if [[ $* == --report ]]; then
    /usr/bin/python3 bench/report.py docs/benchmarks/results.json docs/benchmarks
    for page in runtime musterrun encryption tcpstore python drop_ins; do
      [[ ! -f docs/benchmarks/$page.json ]] ||
        /usr/bin/python3 bench/turns_report.py "docs/benchmarks/$page.json" docs/benchmarks
    done
    return
  fi
  local arguments=() extent=full folder argument with_peers= is_part= report=report page= asks=
  for argument; do
    case $argument in
      --quick) extent=quick ;;
      --peers) with_peers=1 ;;
      --list) arguments+=(--list) ;;
      --encryption | --tcpstore) page=${argument#--} report=turns_report ;;
      *)
        arguments+=("$argument")
        is_part=1
        [[ $argument == --* ]] || asks=1
        ;;
    esac
  done
  [[ -z $page || -n $asks ]] || arguments+=("$page")
  setup
  if [[ -n $with_peers ]]; then
    setup_peers
    arguments+=(--redis "$peers/redis-server" --memcached "$memcached"
      --etcd "$etcd" --tcpstore-server bench/tcpstore_server.py)
    [[ $page != tcpstore ]] || arguments+=(--libuv-python "$(newest_torch)")
  fi
  configure_bench
  ninja -C "$build" bench_programs | progress
  local found=$build/found.json measured=0
  "$build/bench/muster_bench" --musterd "$build/tools/musterd" \
    --echo-server "$build/bench/echo_server" --extent "$extent" --output "$found" \
    "${arguments[@]}" || measured=$?
  if [[ ${arguments[*]} != *--list* && -f $found ]]; then
    folder=build/bench/report
    [[ $extent == full && $with_peers && ! $is_part && $measured == 0 ]] && folder=docs/benchmarks
    /usr/bin/python3 "bench/$report.py" "$found" "$folder"
    echo "The tables and plots are in $folder"
  fi
  return "$measured"
}
