# Completion of musterrun for bash: options and their values, the program, and behind it files.
# tests/tool_docs.py compares it with --help.

# Prints what an option may say; or sets what bash is to offer where this prints nothing.
_musterrun_values() {
  local list=''
  case $1 in
    -n | --nproc | --nproc-per-node) compgen -W 'auto cpu gpu' -- "$2" ;;
    -r | --redirects | -t | --tee) compgen -W '0 1 2 3' -- "$2" ;;
    --compat) compgen -W 'composer torchrun' -- "$2" ;;
    --pid-namespace) compgen -W 'auto always never' -- "$2" ;;
    --tcpstore) compgen -W 'auto on off' -- "$2" ;;
    --tcpstore-dialect) compgen -W 'first second' -- "$2" ;;
    --rdzv-backend) compgen -W 'static c10d' -- "$2" ;;
    --rdzv-conf) compgen -W 'join_timeout= last_call_timeout= timeout=' -- "$2" ;;
    --start-method) compgen -W 'spawn fork forkserver' -- "$2" ;;
    --event-log-handler) compgen -W 'null' -- "$2" ;;
    --logs-specs) compgen -W 'default' -- "$2" ;;
    --rendezvous | --rdzv-endpoint | --master-addr | --local-addr)
      compgen -A hostname -- "$2"
      ;;
    --signals-to-handle)
      if [[ $2 == *,* ]]; then list=${2%,*},; fi
      compgen -A signal -P "$list" -X '!SIG*' -- "${2##*,}" | grep -vE 'SIG(KILL|STOP)$'
      ;;
  esac
}

_musterrun() {
  local current='' expects='' has_ended=0 is_module=0 word words=()
  # The line itself: the words that bash makes of it end at each ":" and "=".
  local line=${COMP_LINE:0:COMP_POINT}
  read -ra words <<< "$line"
  if [[ $line == *[![:space:]] ]]; then
    current=${words[-1]}
    unset 'words[-1]'
  fi
  COMPREPLY=()
  for word in "${words[@]:1}"; do
    if ((has_ended)); then return; fi
    if [[ -n $expects ]]; then
      expects=''
      continue
    fi
    case ${word//_/-} in
      --) has_ended=1 ;;
      -m | --module | --module-mode) is_module=1 ;;
      -n | -r | -t | --nproc | --nproc-per-node | --compat | --max-restarts | --shutdown-timeout | \
        --exit-grace | --signals-to-handle | --pid-namespace | --nnodes | --node-rank | --base-rank | --world-size | \
        --master-addr | --master-port | --tcpstore | --tcpstore-dialect | --rendezvous | --rdzv-endpoint | --job-id | --rdzv-id | \
        --join-timeout | --last-call | --role | --local-addr | --certificate-file | \
        --certificate-key-file | --authorities-file | --rdzv-backend | --rdzv-conf | \
        --stdout | --stderr | --log-dir | --redirects | --tee | --local-ranks-filter | \
        --log-line-prefix-template | \
        --monitor-interval | --start-method | --event-log-handler | --duplicate-stdout-filters | \
        --duplicate-stderr-filters | --logs-specs | --numa-binding) expects=${word//_/-} ;;
      -*) ;;
      *) return ;; # the program; what stands behind it is files, for all that is known here
    esac
  done
  if [[ -z $expects && $has_ended == 0 && $current == --*=* ]]; then
    expects=${current%%=*}
    expects=${expects//_/-}
    current=${current#*=}
  fi
  case $expects,$current in
    --stdout,* | --stderr,*) ;;
    --log-dir,*) compopt +o default -o dirnames ;;
    -*)
      compopt +o default
      mapfile -t COMPREPLY < <(_musterrun_values "$expects" "$current")
      ;;
    ,-*) if ((!has_ended)); then _musterrun_options; fi ;;
    ,*) _musterrun_program ;;
  esac
}

_musterrun_options() {
  local options='--help --version --nproc --nproc-per-node --module --module-mode --command-mode'
  options+=' --no-python --no-expand --compat --max-restarts --shutdown-timeout --exit-grace'
  options+=' --signals-to-handle --pid-namespace --dry-run --verbose --nnodes --node-rank --base-rank'
  options+=' --world-size --master-addr --master-port --tcpstore --tcpstore-dialect'
  options+=' --rendezvous --rdzv-endpoint --allow-unauthenticated'
  options+=' --job-id --rdzv-id --join-timeout --last-call --scale-up --role --local-addr'
  options+=' --certificate-file --certificate-key-file --authorities-file'
  options+=' --standalone --rdzv-backend --rdzv-conf --stdout --stderr --log-dir --redirects --tee'
  options+=' --local-ranks-filter --log-line-prefix-template --run-path --monitor-interval --start-method --event-log-handler'
  options+=' --duplicate-stdout-filters --duplicate-stderr-filters --logs-specs --numa-binding'
  options+=' --virtual-local-rank'
  compopt +o default
  mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
}

# Files, by themselves or beside the commands that begin in the same way; of modules nothing is known.
_musterrun_program() {
  if ((is_module)); then
    compopt +o default
  elif [[ $current == [!./~\"\']* && $current != */* ]]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    while IFS= read -r word; do
      if type -P -- "$word" > /dev/null; then COMPREPLY+=("$word"); fi
    done < <(compgen -c -- "$current" | sort -u)
  fi
}

complete -o default -F _musterrun musterrun
