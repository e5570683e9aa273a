# Test: hosts of muster-tls by pkg-config. One loads it, one has its static form, with the system's
# OpenSSL; the shared library shows its entry alone.
#
# tls.sh LIBRARIES OUT   under `bash -euo pipefail`; LIBRARIES is where the libraries are installed
libraries=$1
out=$2
if [[ ! -e $libraries/libmuster-tls.so ]]; then
  echo "muster-tls was not built: there is no OpenSSL"
  exit 0
fi
[[ $(nm -D --defined-only "$libraries/libmuster-tls.so" | cut -d ' ' -f 3) == muster_tls_table ]]
names=$(readelf -d "$libraries/libmuster-tls.so")
grep -q 'SONAME.*\[libmuster-tls\.so\.0\]' <<< "$names"
mkdir "$out"
flags=$(pkg-config --cflags muster)
linked=$(pkg-config --libs muster)
# shellcheck disable=SC2086
g++ -std=c++17 tests/install/tls/host.cpp -o "$out/host" $flags $linked
linked=$(pkg-config --libs --static muster-tls)
linked=${linked//-lmuster-tls/"$libraries/libmuster-tls.a"}
# shellcheck disable=SC2086
g++ -std=c++17 tests/install/tls/host.cpp -o "$out/host_static" $flags "$libraries/libmuster.a" \
  $linked -pthread
LD_LIBRARY_PATH=$libraries timeout 60 "$out/host"
loads=$(ldd "$out/host_static")
if grep libmuster <<< "$loads"; then exit 1; fi
timeout 60 "$out/host_static"
