# Completion of musterctl for bash: commands and flags, and where a server answers the namespaces, the
# groups of `why` and the keys of what takes keys. tests/tool_docs.py compares it with --help.

# Prints what musterctl lists with these arguments, or nothing if there is no quick answer.
_musterctl_ask() {
  "$program" "${place[@]}" --timeout 300ms "$@" 2> /dev/null < /dev/null | head -n 1000
}

_musterctl_names() {
  case $expects,$command,$argument in
    -n,* | --namespace,* | --drop,* | ,namespaces,*)
      _musterctl_ask --json namespaces | sed -n 's/^ *"namespace": "\(..*\)",$/\1/p'
      ;;
    ,why,0) _musterctl_ask --json groups | sed -n 's/^ *"group": "\(.*\)",$/\1/p' ;;
    ,get,0 | ,take,0 | ,set,0 | ,add,0 | ,append,0 | ,touch,0 | ,compare_set,0 | ,rm,* | ,wait,* | \
      ,exists,* | ,multi_get,* | ,queue_push,0 | ,queue_pop,0 | ,queue_length,0) _musterctl_ask ls -- "$current" | cut -f 4- ;;
    ,ls,0) if ((! objects)); then _musterctl_ask ls -- "$current" | cut -f 4-; fi ;;
  esac | grep -v '\\' # an escaped name is not the name
}

_musterctl() {
  local program=${1/#\~/$HOME} command='' argument=0 objects=0 current='' expects='' word name
  local place=() words=()
  local flags=(--help --version --server --namespace --credential-file --certificate-file
    --certificate-key-file --authorities-file --server-name --timeout --wait-for-server --json --watch)
  # The line itself: the words that bash makes of it end at each ":".
  local line=${COMP_LINE:0:COMP_POINT}
  read -ra words <<< "$line"
  if [[ $line == *[![:space:]] ]]; then
    current=${words[-1]}
    unset 'words[-1]'
  fi
  for word in "${words[@]:1}"; do
    case $expects,$word in
      -s,* | --server,*) place+=(--server "$word") expects='' ;;
      -n,* | --namespace,*) place+=(--namespace "$word") expects='' ;;
      --credential-file,* | --certificate-file,* | --certificate-key-file,* | \
        --authorities-file,* | --server-name,*) place+=("$expects" "$word") expects='' ;;
      -?*,*) expects='' ;;
      ,-s | ,--server | ,-n | ,--namespace | ,-t | ,--timeout | ,--wait-for-server | \
        ,--ttl | ,--hung-for | ,--drop | ,--credential-file | ,--certificate-file | \
        ,--certificate-key-file | ,--authorities-file | ,--server-name | ,--namespaces | ,--rights | ,--right | ,--for | ,-o | ,--output) expects=$word ;;
      ,--server=* | ,--namespace=* | ,--credential-file=* | ,--certificate-file=* | \
        ,--certificate-key-file=* | ,--authorities-file=* | ,--server-name=*) place+=("$word") ;;
      ,--objects) objects=1 ;;
      ,-*) ;;
      *) if [[ -z $command ]]; then command=$word; else argument=$((argument + 1)); fi ;;
    esac
  done
  COMPREPLY=()
  case $expects in
    -s | --server) mapfile -t COMPREPLY < <(compgen -A hostname -- "$current") && return ;;
    --credential-file | --certificate-file | --certificate-key-file | --authorities-file)
      mapfile -t COMPREPLY < <(compgen -f -- "$current") && return ;;
    --right) mapfile -t COMPREPLY < <(compgen -W 'read admin' -- "$current") && return ;;
    -n | --namespace | --drop) ;;
    -*) return ;;
  esac
  if [[ $current == -* ]]; then
    case $command in
      get | take | queue_pop) flags+=(--wait) ;;
      touch | compare_set | multi_set) flags+=(--ttl) ;;
      set) flags+=(--ttl --only-if-absent) ;;
      ls) flags+=(--objects) ;;
      why) flags+=(--hung-for) ;;
      namespaces) flags+=(--drop) ;;
      export) flags+=(--output) ;;
      import) flags+=(--if-absent) ;;
      drain) flags+=(--for --cancel) ;;
      keygen) flags+=(--namespaces --rights --http --right) ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "${flags[*]}" -- "$current")
    return
  fi
  if [[ -z $command && -z $expects ]]; then
    local commands='get set add take append touch compare_set exists multi_get multi_set rm wait ls'
    commands+=' queue_push queue_pop queue_length'
    commands+=' report_dead status sessions groups waiters events why namespaces whoami'
    commands+=' keygen credentials export import kill config drain'
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
    return
  fi
  if [[ $command == config && $argument == 0 ]]; then
    mapfile -t COMPREPLY < <(compgen -W 'get set' -- "$current")
    return
  fi
  if [[ $command == import ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    return
  fi
  if [[ $command == credentials ]]; then
    if ((argument == 0)); then
      mapfile -t COMPREPLY < <(compgen -W check -- "$current")
    else
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
    return
  fi
  local broken=${current%"${current##*[:=@]}"} # bash puts the completion behind it
  while IFS= read -r name; do
    if [[ $name == "$current"* ]]; then COMPREPLY+=("$(printf '%q' "${name#"$broken"}")"); fi
  done < <(_musterctl_names)
}

complete -F _musterctl musterctl
