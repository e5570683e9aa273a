#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "credential_file.h"
#include "muster/codec_cereal.h"
#include "muster/process_group.h"
#include "support/ranks.h"

// Groups by host and port whose ranks have a key.

namespace muster::test {
namespace {

using Group = StatelessProcessGroup;

/// A socket that listens on a free port, of loopback or of all addresses.
struct BoundSocket {
  explicit BoundSocket(std::uint32_t host) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(host);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(fd, generic, size) == 0);
    REQUIRE(::listen(fd, 16) == 0);
    REQUIRE(::getsockname(fd, generic, &size) == 0);
    port = ntohs(address.sin_port);
  }
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port = 0;
};

HostedGroupOptions options_of(int rank, const BoundSocket& socket) {
  HostedGroupOptions options;
  if (rank == 0) options.listening_socket = socket.fd;
  return options;
}

TEST_CASE("ranks with one key meet at the server of rank 0, and nobody else does") {
  const BoundSocket socket(INADDR_ANY);
  const CredentialFile file(key_line("job", 1));
  const CredentialFile other(key_line("job", 2));
  run_ranks(3, [&](int rank) {
    HostedGroupOptions options = options_of(rank, socket);
    options.store.credential_file = file.path();
    options.store.server_name = "job-7";
    auto group = must(Group::create("127.0.0.1", socket.port, rank, 3, 3600s, 20s, options));
    CHECK(must(group.all_gather_obj(rank)) == std::vector<int>{0, 1, 2});
    if (rank == 2) {
      const std::string address = "127.0.0.1:" + std::to_string(socket.port);
      StoreOptions stranger;
      CHECK_FALSE(Store::connect(address, stranger, 500ms).has_value());
      stranger.credential_file = other.path();
      stranger.server_name = "job-7";
      CHECK(must_fail(Store::connect(address, stranger, 20s)).code == ErrorCode::permission_denied);
    }
    must(group.barrier());
  });
}

TEST_CASE("the key may be a line of the environment") {
  const BoundSocket socket(INADDR_LOOPBACK);
  const Variable key("MUSTER_CREDENTIAL", key_line("job", 1));
  run_ranks(2, [&](int rank) {
    auto group = must(
        Group::create("127.0.0.1", socket.port, rank, 2, 3600s, 20s, options_of(rank, socket)));
    must(group.barrier());
  });
}

TEST_CASE("without a key others than this host are not served") {
  const BoundSocket socket(INADDR_ANY);
  const auto created =
      Group::create("127.0.0.1", socket.port, 0, 1, 3600s, 5s, options_of(0, socket));
  CHECK(must_fail(created).code == ErrorCode::permission_denied);
}

TEST_CASE("a server that rank 0 hosts takes no certificate") {
  HostedGroupOptions options;
  options.store.certificate_file = "/nowhere/certificate";
  const auto refusal_of = [](const HostedGroupOptions& of) {
    return must_fail(Group::create("127.0.0.1", 1, 0, 1, 3600s, 5s, of)).detail;
  };
  CHECK(refusal_of(options).find("knows its ranks by a key") != std::string::npos);
  const Variable certificate("MUSTER_CERTIFICATE_FILE", "/nowhere/certificate");
  CHECK(refusal_of({}).find("knows its ranks by a key") != std::string::npos);
}

}  // namespace
}  // namespace muster::test
