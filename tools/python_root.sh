#!/usr/bin/env bash
# python_root.sh SUITE: the tests of the Python package with the Python of another Debian release,
# such as `trixie`. They are built and run in a root of that release in build/roots, which is kept
# and can be removed at any time. Needs root, and installs mmdebstrap.
set -euo pipefail

suite=$1
root=$PWD/build/roots/$suite
if ((EUID != 0)); then
  echo "This needs to be root: it makes a file system of $suite." >&2
  exit 2
fi
if [[ ! -e $root.complete ]]; then
  command -v mmdebstrap > /dev/null || apt-get -qq install --yes mmdebstrap > /dev/null
  rm -rf "$root"
  mkdir -p "$root"
  # The rest is installed by `tools/dev` there. A mirror may be older than its release file allows.
  mmdebstrap --quiet --variant=apt --include=g++,git,python3 \
    --aptopt='Acquire::Check-Valid-Until "false"' "$suite" "$root"
  touch "$root.complete"
fi
mkdir -p "$root/muster"
if [[ ! -e $root/muster/.git ]]; then git clone --quiet "$PWD" "$root/muster"; fi
git -C "$root/muster" fetch --quiet "$PWD" HEAD
git -C "$root/muster" checkout --quiet --force FETCH_HEAD

# What is mounted is gone with the processes.
in_root() {
  local variables=(HOME=/muster PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
    MUSTER_TEST_SCALE="${MUSTER_TEST_SCALE:-}" CCACHE_DIR=/muster/build/ccache)
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child bash -c '
    mount --bind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/dev/shm" && mount -t proc proc "$1/proc"
    exec chroot "$1" env -i "${@:2}"' _ "$root" "${variables[@]}" "$@"
}
in_root python3 --version
# Only what these tests need is built.
doubles=tests/nccl/doubles
in_root bash -euc "cd /muster && tools/dev setup test
  tools/dev build python_package tools/musterd $doubles/libnccl.so.2 $doubles/libcuda.so.1
  meson test -C build/dev --no-rebuild --print-errorlogs --suite python"
