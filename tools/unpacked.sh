# Sourced by `tools/dev`: programs that are unpacked next to the build and not installed. So no
# service is started, and the system's packages do not change.

peers=build/peers
memcached=$peers/memcached/usr/bin/memcached
etcd=$peers/etcd-server/usr/bin/etcd
newer_asio=$peers/asio
promtool=$peers/prometheus/usr/bin/promtool  # beside prometheus itself

# unpack PACKAGE PROGRAM: a package of Debian, unless its program is there.
unpack() {
  if [[ -x $2 ]]; then return; fi
  echo "Unpacking $1"
  (
    cd "$peers" && apt-get -qq -o APT::Sandbox::User=root download "$1" &&
      dpkg-deb -x "$1"_*.deb "$1" && rm "$1"_*.deb
  )
}

# Installs redis's tools, which contain its server, and unpacks the others.
setup_peers() {
  setup peers
  mkdir -p "$peers"
  ln -sf "$(command -v redis-check-rdb)" "$peers/redis-server"
  unpack memcached "$memcached"
  unpack etcd-server "$etcd"
}

# For the tests of alerts: 19 MB to fetch, 95 MB unpacked, two seconds. The package itself would
# start a service.
setup_prometheus() {
  mkdir -p "$peers"
  unpack prometheus "$promtool" && return
  local as_root
  as_root=$(way_to_root) || return
  ${as_root:+"$as_root"} apt-get -qq update || return
  unpack prometheus "$promtool"
}

# Asio of a later Debian, which is but unpacked. Where that cannot be had: the one of Meson's wrap.
setup_asio() {
  if [[ -e $newer_asio/include/asio.hpp ]]; then return; fi
  rm -rf "$newer_asio"
  mkdir -p "$newer_asio"/{lists,cache}/partial
  if ! (fetch_asio_of_debian || fetch_asio_of_wrap) > "$newer_asio/log" 2>&1; then
    cat "$newer_asio/log" >&2
    echo "There is no newer Asio to be had." >&2
    return 1
  fi
}

# From the mirror that this machine has, by a list of its own: what is installed does not change.
fetch_asio_of_debian() (
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' \
    'Component: main' | head -n 1)
  [[ -n $mirror ]] && cd "$newer_asio" || exit 1
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror forky main" > sources
  apt=(apt-get -qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$PWD/sources"
    -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD/cache")
  "${apt[@]}" update && "${apt[@]}" download libasio-dev/forky &&
    dpkg-deb -x libasio-dev_*.deb . && rm -r lists cache libasio-dev_*.deb && mv usr/include .
)

fetch_asio_of_wrap() (
  meson subprojects download asio && cp -r subprojects/asio-*/include "$newer_asio"
)
