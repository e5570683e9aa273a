# Sourced by `.ci/run`: the gates of the installed files, and of hosts that use them.

# Where `meson install` has put libmuster.a; the other gates of what is installed begin with it.
installed_libraries() {
  local library
  library=$(find build/ci-install -name libmuster.a 2> /dev/null)
  [[ -n $library ]] || skip "nothing is installed; the gates release and install come first"
  dirname "$root/$library"
}

# A host by pkg-config, shared and static: examples/embedding/compile.sh, to the letter.
gate_install() {
  local out=$root/build/ci-embedding/pkg-config folder
  [[ -f build/ci-release/build.ninja ]] || skip "the release build is not there"
  rm -rf build/ci-install "$out"
  mkdir -p "$out"
  meson install -C build/ci-release --no-rebuild --quiet
  folder=$(installed_libraries)
  cp examples/embedding/{host.cpp,compile.sh} "$out"
  export PKG_CONFIG_PATH=$folder/pkgconfig
  (cd "$out" && bash -euo pipefail compile.sh)
  run_hosts "$out" "$folder"
  # The same with muster-nccl.
  local flags libraries
  mkdir "$out/nccl"
  flags=$(pkg-config --cflags muster-nccl)
  libraries=$(pkg-config --libs muster-nccl)
  # shellcheck disable=SC2086
  g++ -std=c++17 tests/install/nccl/host.cpp -o "$out/nccl/host" $flags $libraries
  # shellcheck disable=SC2086
  g++ -std=c++17 tests/install/nccl/host.cpp -o "$out/nccl/host_static" $flags \
    "$folder"/libmuster{-nccl,}.a -pthread
  run_hosts "$out/nccl" "$folder"
  # The same with muster-runtime.
  mkdir "$out/runtime"
  flags=$(pkg-config --cflags muster-runtime)
  libraries=$(pkg-config --libs muster-runtime)
  # shellcheck disable=SC2086
  g++ -std=c++17 tests/install/runtime/host.cpp -o "$out/runtime/host" $flags $libraries
  # shellcheck disable=SC2086
  g++ -std=c++17 tests/install/runtime/host.cpp -o "$out/runtime/host_static" $flags \
    "$folder"/libmuster{-runtime,}.a -pthread
  run_hosts "$out/runtime" "$folder"
  if [[ -e $folder/libmuster-gloo.so ]]; then
    mkdir "$out/gloo"
    # This host has communicators of both kinds.
    flags=$(pkg-config --cflags muster-gloo muster-nccl)
    libraries=$(pkg-config --libs muster-gloo muster-nccl)
    # shellcheck disable=SC2086
    g++ -std=c++17 tests/install/gloo/host.cpp -o "$out/gloo/host" $flags $libraries
    # shellcheck disable=SC2086
    g++ -std=c++17 tests/install/gloo/host.cpp -o "$out/gloo/host_static" $flags \
      "$folder"/libmuster{-gloo,-nccl,}.a -lgloo -pthread
    run_hosts "$out/gloo" "$folder"
  fi
  bash -euo pipefail tests/install/tls.sh "$folder" "$out/tls"
  bash -euo pipefail tests/install/c.sh "$folder" "$out/c"
  bash -euo pipefail tests/install/programs.sh build/ci-install
}

# Runs DIR/host, which loads the library of FOLDER, and DIR/host_static, which loads none.
run_hosts() {
  local loads
  loads=$(LD_LIBRARY_PATH=$2 ldd "$1/host")
  grep -q "libmuster.so.[0-9]* => $2/" <<< "$loads"
  LD_LIBRARY_PATH=$2 timeout 60 "$1/host"
  loads=$(ldd "$1/host_static")
  if grep libmuster <<< "$loads"; then return 1; fi
  timeout 60 "$1/host_static"
}

# A host by CMake's find_package, shared and static, after what is installed was moved elsewhere.
gate_cmake() {
  command -v cmake > /dev/null || skip "there is no cmake"
  local out=$root/build/ci-embedding/cmake folder
  folder=$(installed_libraries)
  rm -rf "$out"
  mkdir -p "$out"
  cp -r build/ci-install "$out/moved"
  folder=$out/moved${folder#"$root/build/ci-install"}
  if grep -r "$root" "$folder/cmake"; then return 1; fi
  cmake -DFOLDER="$folder/cmake/Muster" -P tests/install/versions.cmake
  local hosts launcher=()
  if command -v ccache > /dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  for hosts in examples/embedding tests/install/{nccl,runtime,gloo,tls}; do
    [[ $hosts != */@(gloo|tls) || -e $folder/libmuster-${hosts##*/}.so ]] || continue
    rm -rf "$out/build"
    cmake -S "$hosts" -B "$out/build" -DCMAKE_PREFIX_PATH="$out/moved" "${launcher[@]}" \
      -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" -DCMAKE_CXX_EXTENSIONS=OFF > "$out/log" ||
      { cat "$out/log"; return 1; }
    cmake --build "$out/build"
    run_hosts "$out/build" "$folder"
  done
  bash -euo pipefail tests/install/c.sh "$folder" "$out/c" "$out/moved"
}

# A host with Muster as a Meson subproject: nothing is fetched, and no more built than it needs.
# The compiler's cache has none of its objects, because the paths of a subproject differ. Without
# optimization it compiles in half a minute.
gate_subproject() {
  local out=$root/build/ci-embedding/meson built
  rm -rf "$out"
  mkdir -p "$out/subprojects"
  cp examples/embedding/{host.cpp,meson.build} "$out"
  ln -s "$root" "$out/subprojects/muster"
  meson setup "$out/build" "$out" --wrap-mode=nodownload --force-fallback-for=muster \
    -Doptimization=0 -Ddebug=false -Dwerror=true -Dunity=subprojects -Dunity_size=1000 \
    -Dcpp_args="$anywhere" > "$out/log" || { cat "$out/log"; return 1; }
  building ninja -C "$out/build" --quiet
  timeout 60 "$out/build/host"
  built=$(cd "$out/build" && find . -path ./meson-private -prune -o -path ./host -o \
    \( -name '*.so*' -o -type f -perm -100 \) -print)
  built+=$(find "$out/build/subprojects" -mindepth 1 -maxdepth 1 ! -name muster)
  if [[ -n $built ]]; then
    printf 'A host does not need this:\n%s\n' "$built"
    return 1
  fi
}

# Hosts on Debian's Asio.
gate_asio_host() { run_asio_hosts g++; }

# The same by clang on a newer Asio, of a later Debian or of Meson's wrap.
gate_asio_newer() {
  command -v clang++-14 > /dev/null || skip "there is no clang++-14"
  tools/dev setup asio || skip "there is no newer Asio to be had"
  run_asio_hosts clang++-14 -isystem build/peers/asio/include
}

# By COMPILER FLAG...: in C++17 by callbacks and futures, in C++20 the example, by coroutines.
run_asio_hosts() {
  local out=$root/build/ci-embedding/asio folder
  local compile=("$@" -Wall -Wextra -Werror -I build/ci-install/include -c)
  if command -v ccache > /dev/null; then compile=(ccache "${compile[@]}"); fi
  folder=$(installed_libraries)
  rm -rf "$out"
  mkdir -p "$out"
  building "${compile[@]}" -std=c++17 tests/install/asio_host.cpp -o "$out/host.o"
  g++ "$out/host.o" -o "$out/host" -L "$folder" -lmuster -pthread
  g++ "$out/host.o" -o "$out/host_static" "$folder/libmuster.a" -pthread
  run_hosts "$out" "$folder"
  # Asio does not know that clang 14 has coroutines.
  building "${compile[@]}" -std=c++20 -DASIO_HAS_CO_AWAIT=1 -DASIO_HAS_STD_COROUTINE=1 \
    examples/asio_server.cpp -o "$out/asio_server.o"
  g++ "$out/asio_server.o" -o "$out/asio_server" "$folder/libmuster.a" -pthread
  timeout 60 /usr/bin/python3 examples/run_asio_server.py "$out/asio_server"
}

# The shared libraries show Muster's public names only and carry its ABI's soname; the static ones
# define nothing outside of Muster's namespace.
gate_symbols() {
  local folder
  folder=$(installed_libraries)
  [[ -f $folder/libmuster.so ]] || skip "no shared library is installed"
  check_symbols "$folder/libmuster" 'muster::v1::Store::connect'
  check_symbols "$folder/libmuster" 'muster::v1::Communicator::all_reduce'
  check_symbols "$folder/libmuster-nccl" 'muster::v1::nccl::create'
  check_symbols "$folder/libmuster-runtime" 'muster::v1::Runtime::init'
  if [[ -f $folder/libmuster-gloo.so ]]; then
    check_symbols "$folder/libmuster-gloo" 'muster::v1::gloo::create'
  fi
}

# Of LIBRARY.so, which exports the name that is given, and LIBRARY.a.
check_symbols() {
  local names
  names=$(readelf -d "$1.so")
  grep -q "SONAME.*\[${1##*/}\.so\.[0-9]*\]" <<< "$names"
  names=$(nm -DC --defined-only "$1.so")
  grep -q " $2" <<< "$names"
  if grep -vE '^[0-9a-f]+ [A-Z] (muster::v1::|(typeinfo( name)?|vtable) for muster::v1::)' \
    <<< "$names"; then
    echo "These are exported and should not be."
    return 1
  fi
  nm -C "$1.a" > build/ci-symbols
  local own='(non-virtual thunk to |(guard variable|typeinfo( name)?|vtable|VTT) for )?muster'
  own+='::'
  # Weak names are templates and inline functions of the standard library, the same everywhere.
  if grep -E '^[0-9a-f]+ [A-TX-Z] ' build/ci-symbols | grep -vE "^[0-9a-f]+ [A-Z] $own"; then
    echo "These could meet a name of the host."
    return 1
  fi
}
export -f installed_libraries run_hosts run_asio_hosts check_symbols
