#include "net/listening.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "support/machine.h"

namespace {

using muster::ErrorCode;
using muster::net::Listening;
using muster::net::ListenOptions;
using muster::net::SocketAddress;
using muster::net::UniqueFd;
using muster::test::has_ipv6;
namespace fs = std::filesystem;

/// Whether somebody can connect.
bool answers(const SocketAddress& address) {
  const UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(fd.get(), address.data(), address.size()) == 0;
}

SocketAddress with_host(const std::string& host, std::uint16_t port) {
  auto listening = muster::net::listen_at({host + ":0"}, {});
  REQUIRE(listening);
  SocketAddress address = (*listening)[0].address();
  address.set_port(port);
  return address;
}

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("muster-listen-" + std::to_string(::getpid()))) {
    fs::create_directory(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string socket() const { return (path / "socket").string(); }

  fs::path path;
};

TEST_CASE("port 0 becomes a port that somebody can connect to") {
  std::vector<std::string> addresses = {"127.0.0.1:0"};
  if (has_ipv6()) addresses.emplace_back("[::1]:0");
  const auto listening = muster::net::listen_at(addresses, {});
  REQUIRE(listening);
  REQUIRE(listening->size() == addresses.size());
  for (const Listening& one : *listening) {
    CHECK(one.address().port() != 0);
    CHECK(answers(one.address()));
  }
}

TEST_CASE("a host name stands for all its addresses, on one port") {
  const auto listening = muster::net::listen_at({"localhost:0"}, {});
  REQUIRE(listening);
  for (const Listening& one : *listening) {
    CHECK(one.address().port() == (*listening)[0].address().port());
    CHECK(answers(one.address()));
  }
}

TEST_CASE("an empty host is all of this machine, for both families") {
  const auto listening = muster::net::listen_at({":0"}, {16, true});
  REQUIRE(listening);
  REQUIRE(listening->size() == 1);
  const std::uint16_t port = (*listening)[0].address().port();
  CHECK(answers(with_host("127.0.0.1", port)));
  if (has_ipv6()) CHECK(answers(with_host("[::1]", port)));
}

TEST_CASE("what others could reach is refused before anything is bound") {
  for (const char* address : {"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0"}) {
    CAPTURE(address);
    const auto listening = muster::net::listen_at({address}, {});
    REQUIRE_FALSE(listening);
    CHECK(listening.error().code == ErrorCode::permission_denied);
  }
  Folder folder;
  const auto second = muster::net::listen_at({"unix:" + folder.socket(), "0.0.0.0:0"}, {});
  REQUIRE_FALSE(second);
  CHECK_FALSE(fs::exists(folder.socket()));
}

TEST_CASE("an address in use is named") {
  const auto first = muster::net::listen_at({"127.0.0.1:0"}, {});
  REQUIRE(first);
  const std::string address = to_string((*first)[0].address());
  const auto second = muster::net::listen_at({address}, {});
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::address_in_use);
  CHECK(second.error().where == address);
}

TEST_CASE("an address of another machine is unavailable") {
  const auto listening = muster::net::listen_at({"192.0.2.1:0"}, {16, true});
  REQUIRE_FALSE(listening);
  CHECK(listening.error().code == ErrorCode::unavailable);
}

TEST_CASE("the file of a Unix socket goes with it") {
  const Folder folder;
  {
    const auto listening = muster::net::listen_at({"unix:" + folder.socket()}, {});
    REQUIRE(listening);
    CHECK(answers((*listening)[0].address()));
    CHECK(fs::exists(folder.socket()));
  }
  CHECK_FALSE(fs::exists(folder.socket()));
}

TEST_CASE("a Unix socket may have a name without a file; it is free again with its last socket") {
  const std::string name = "unix:@muster-listen-" + std::to_string(::getpid());
  {
    const auto listening = muster::net::listen_at({name}, {});
    REQUIRE(listening);
    CHECK(to_string((*listening)[0].address()) == name);
    CHECK(answers((*listening)[0].address()));
    const auto second = muster::net::listen_at({name}, {});
    REQUIRE_FALSE(second);
    CHECK(second.error().code == ErrorCode::address_in_use);
  }
  CHECK(muster::net::listen_at({name}, {}));
}

TEST_CASE("a Unix socket that somebody answers at is in use") {
  const Folder folder;
  const auto first = muster::net::listen_at({"unix:" + folder.socket()}, {});
  REQUIRE(first);
  const auto second = muster::net::listen_at({"unix:" + folder.socket()}, {});
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::address_in_use);
  CHECK(answers((*first)[0].address()));
}

TEST_CASE("the file that a dead server has left is replaced") {
  const Folder folder;
  {
    const UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress address = SocketAddress::unix_path(folder.socket());
    REQUIRE(::bind(dead.get(), address.data(), address.size()) == 0);
    REQUIRE(::listen(dead.get(), 1) == 0);
  }
  REQUIRE(fs::exists(folder.socket()));
  const auto listening = muster::net::listen_at({"unix:" + folder.socket()}, {});
  REQUIRE(listening);
  CHECK(answers((*listening)[0].address()));
}

TEST_CASE("a Unix socket goes from its folder, wherever the path of that leads by then") {
  const Folder folder;
  const auto in = [&](const char* name) { return (folder.path / name).string(); };
  fs::create_directory(in("own"));
  fs::create_directory(in("other"));
  {
    const auto listening = muster::net::listen_at({"unix:" + in("own/socket")}, {});
    REQUIRE(listening);
    fs::rename(in("own"), in("moved"));
    std::ofstream(in("other/socket")) << "something of value";
    fs::create_symlink(in("other"), in("own"));
  }
  CHECK(fs::is_empty(in("moved")));
  CHECK(fs::exists(in("other/socket")));
}

TEST_CASE("a file that is no socket is left alone") {
  const Folder folder;
  std::ofstream(folder.socket()) << "something of value";
  const auto listening = muster::net::listen_at({"unix:" + folder.socket()}, {});
  REQUIRE_FALSE(listening);
  CHECK(listening.error().code == ErrorCode::address_in_use);
  CHECK(fs::file_size(folder.socket()) == 18);
}

TEST_CASE("a socket that was handed in is checked") {
  const UniqueFd datagram(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const UniqueFd unbound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  const UniqueFd reading(pipe_ends[0]);
  const UniqueFd writing(pipe_ends[1]);
  for (const int fd : {datagram.get(), unbound.get(), reading.get(), 9999, -5}) {
    CAPTURE(fd);
    const auto listening = muster::net::listen_on(fd, {});
    REQUIRE_FALSE(listening);
    CHECK(listening.error().code == ErrorCode::invalid_argument);
  }
}

TEST_CASE("a listening socket that was handed in is served, unless others could reach it") {
  const auto own = muster::net::listen_at({"127.0.0.1:0"}, {});
  REQUIRE(own);
  const auto given = muster::net::listen_on((*own)[0].fd(), {});
  REQUIRE(given);
  CHECK(given->address() == (*own)[0].address());
  const auto open = muster::net::listen_at({"0.0.0.0:0"}, {16, true});
  REQUIRE(open);
  const auto refused = muster::net::listen_on((*open)[0].fd(), {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::permission_denied);
}

}  // namespace
