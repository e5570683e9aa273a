# Of `tools/dev`, which sources it: the live page of musterd in a browser.

# Chromium and its driver are Debian's. axe-core, which looks for what is not accessible, is in a
# package of Python's index, without which those tests are skipped; it is asked nothing later.
page() {
  local pytest=(/usr/bin/python3 -m pytest -q -rs -p no:cacheprovider tests/http/page)
  export PAGE_PICTURES=$root/build/page/pictures PAGE_AXE=$root/build/page/axe.min.js
  export PYTHONDONTWRITEBYTECODE=1
  case ${1:-} in
    --story) exec /usr/bin/python3 tests/http/page/double.py "${@:2}" ;;
    --help)
      echo "tools/dev page [--speed [SECONDS] | --pictures | --story STORY | ARGUMENT of pytest...]"
      return
      ;;
  esac
  setup page
  mkdir -p build/page
  case ${1:-} in
    --speed) PAGE_SECONDS=${2:-30} exec "${pytest[@]}" -s -k test_speed ;;
    --pictures) exec /usr/bin/python3 tests/http/page/pictures.py docs/pictures ;;
  esac
  build tools/musterd tools/musterctl tests/http/http_ranks
  export MUSTERD=$root/$build/tools/musterd MUSTERCTL=$root/$build/tools/musterctl
  export HTTP_RANKS=$root/$build/tests/http/http_ranks
  [[ -f $PAGE_AXE ]] || fetch_axe || echo "There is no axe-core to be had" >&2
  # A browser waits most of the time.
  "${pytest[@]}" --numprocesses $((2 * $(nproc))) "$@"
}

fetch_axe() {
  local tools=build/page/tools
  [[ -x $tools/bin/pip ]] || /usr/bin/python3 -m venv "$tools" || return
  "$tools/bin/pip" --quiet --disable-pip-version-check download --no-deps --require-hashes \
    --dest build/page -r tests/http/page/axe.txt || return
  /usr/bin/python3 -m zipfile --extract build/page/axe_playwright_python-*.whl build/page/unpacked
  cp build/page/unpacked/axe_playwright_python/axe.min.js "$PAGE_AXE"
}
