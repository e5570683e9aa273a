# Sourced by `.ci/run`: the gate of the Python package.

# The wheel of the source distribution, unpacked where there is no git and no network, in a bare
# environment. Then mypy reads the package, its examples and tests, and the stub of the extension.
# The flags and the relative paths are those of the gate `release`, so that the compiler's cache
# has most of the objects.
gate_python() {
  local module out=$root/build/ci-python alone=()
  for module in build mesonpy pybind11 mypy ensurepip; do
    /usr/bin/python3 -c "import $module" || skip "Debian's Python has no $module"
  done
  rm -rf "$out"/{dist,source}
  mkdir -p "$out"/{dist,source/build}
  if unshare --map-root-user --net ip link set lo up; then  # which is down there at first
    alone=(unshare --map-root-user --net bash -c 'ip link set lo up && exec "$@"' _)
  fi
  rm -f .mesonpy-native-file.ini
  /usr/bin/python3 -m build --no-isolation --sdist --outdir "$out/dist" . > "$out/sdist.log" ||
    { cat "$out/sdist.log"; return 1; }
  tar -xf "$out"/dist/muster_groups-*.tar.gz -C "$out/source" --strip-components=1
  (
    cd "$out/source"
    export GIT_DIR=/nonexistent CCACHE_BASEDIR=$out/source
    building_log=$root/build/ci-building building "${alone[@]}" /usr/bin/python3 -m build \
      --no-isolation --wheel --outdir "$out/dist" -C builddir=build/wheel \
      -C setup-args=-Dwerror=true -C setup-args=-Dcpp_args="-ffile-prefix-map=$out/source/=" . \
      > "$out/wheel.log" ||
      { cat "$out/wheel.log"; return 1; }
  )
  "${alone[@]}" /usr/bin/python3 tests/install/python/wheel.py "$out"/dist/muster_groups-*.whl \
    "$out/installed"
  check_types "$out/installed/venv/lib/python3"*/site-packages
}

# The same package, installed in the FOLDER given, has the extension beside its stub.
check_types() {
  local mypy=(/usr/bin/python3 -m mypy --strict --cache-dir "$root/build/ci-python/mypy")
  "${mypy[@]}" bindings/python/muster
  MYPYPATH=bindings/python:tests/python "${mypy[@]}" {examples,tests}/python/*.py
  /usr/bin/python3 tests/python/stubs.py "$1"
}
export -f check_types
