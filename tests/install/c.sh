# Test: a host of muster-c, in C11, by pkg-config and by CMake, which needs no compiler of C++. It
# is linked with muster-c alone, so that it does not depend on the ABI of the libraries in C++. The
# library shows its functions alone, with their version.
#
# c.sh LIBRARIES OUT [PREFIX]   under `bash -euo pipefail`; LIBRARIES is where the libraries are
#                               installed. With a PREFIX, where they were moved to: by CMake
libraries=$1
out=$2
prefix=${3:-}
mkdir -p "$out"
if [[ -n $prefix ]]; then
  cmake -S tests/install/c -B "$out" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_FLAGS="-Wall -Wextra -Wpedantic -Werror" -DCMAKE_C_EXTENSIONS=OFF > "$out/log" ||
    { cat "$out/log"; exit 1; }
  cmake --build "$out"
else
  names=$(readelf -d "$libraries/libmuster-c.so")
  grep -q 'SONAME.*\[libmuster-c\.so\.[0-9]*\]' <<< "$names"
  names=$(nm -D --defined-only --with-symbol-versions "$libraries/libmuster-c.so")
  grep -q ' T muster_store_get@@MUSTER_C_1$' <<< "$names"
  if grep -vE '^[0-9a-f]+ (T muster_[a-z_]+@@MUSTER_C_1|A MUSTER_C_1)$' <<< "$names"; then
    echo "These are exported and should not be."
    exit 1
  fi
  # shellcheck disable=SC2046
  cc -std=gnu11 -Wall -Wextra -Wpedantic -Werror tests/install/c/host.c -o "$out/host" \
    $(pkg-config --cflags --libs muster-c)
fi
needed=$(readelf -d "$out/host" | grep 'NEEDED.*muster')
if grep -v 'libmuster-c\.so\.' <<< "$needed"; then
  echo "A host of muster-c does not need this."
  exit 1
fi
LD_LIBRARY_PATH=$libraries timeout 60 "$out/host"
