#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "failures/failing_calls.h"
#include "net/tls/library.h"

// A handshake in which one piece of memory is refused to OpenSSL, at one of the sides: each of them
// in turn.

namespace muster::test {
namespace {

using net::tls::Phase;
using net::tls::Secret;
using net::tls::TlsContext;
using net::tls::TlsSession;
using net::tls::Trouble;
using Context = std::shared_ptr<const TlsContext>;

constexpr std::string_view id = "8 bytes.";

Secret secret() { return net::tls::derive("a key of thirty-two bytes, or so.", "test").value(); }

Context server_context() {
  static const Secret known = secret();
  const auto find = [](std::string_view named, unsigned char* into) {
    if (named != id) return false;
    std::copy_n(known.data(), net::tls::secret_bytes, into);
    return true;
  };
  return TlsContext::server(find, {}).value();
}

/// One side, whose calls may fail.
struct Side {
  Side(const Context& context, bool fails) : is_exempt(!fails) {
    const Exempt own(is_exempt);
    session = TlsSession::create(context);
    if (session == nullptr) phase = Phase::failed;
  }

  /// Returns what is for the other side.
  std::string take(std::string_view came) {
    std::string out;
    std::array<char, net::tls::record_bytes_max> room;
    while (phase != Phase::failed) {
      const Exempt own(is_exempt);
      const auto read = session->read(came, room.data(), room.size(), out);
      phase = read.phase;
      came.remove_prefix(read.taken);
      if (read.taken == 0 && read.plain == 0) break;
    }
    return out;
  }

  const bool is_exempt;
  std::unique_ptr<TlsSession> session;
  Phase phase = Phase::handshaking;
};

struct Outcome {
  Failed failed;
  bool is_open = false;
  Trouble clients_trouble = Trouble::other;
};

Outcome shake_hands(bool client_fails, std::uint64_t which, const Context& of_client,
                    const Context& of_server) {
  Outcome outcome;
  begin_failing({Fails::openssl, which});
  Side client(of_client, client_fails);
  Side server(of_server, !client_fails);
  std::string said = client.take({});
  for (int turn = 0; turn < 2; ++turn) {
    said = server.take(said);
    said = client.take(said);
  }
  outcome.failed = end_failing();
  outcome.is_open = client.phase == Phase::open && server.phase == Phase::open;
  if (client.session != nullptr && client.phase == Phase::failed)
    outcome.clients_trouble = client.session->trouble();
  return outcome;
}

void each_fails(bool at_client) {
  const Exempt own;
  const Context of_client = TlsContext::client(id, secret()).value();
  const Context of_server = server_context();
  shake_hands(at_client, ~std::uint64_t{0}, of_client, of_server);  // what is made once
  const Outcome whole = shake_hands(at_client, ~std::uint64_t{0}, of_client, of_server);
  REQUIRE(whole.is_open);
  const std::uint64_t count = whole.failed.seen_count;
  REQUIRE(count > 100);
  std::uint64_t ended_count = 0;
  std::uint64_t refused_count = 0;
  for (std::uint64_t which = 1; which <= count; ++which) {
    const Outcome outcome = shake_hands(at_client, which, of_client, of_server);
    INFO(which, ": ", outcome.failed.where);
    CHECK(outcome.failed.has_failed);
    // Else he would not try again.
    CHECK(outcome.clients_trouble != Trouble::untrusted);
    refused_count += outcome.clients_trouble == Trouble::refused ? 1 : 0;
    ended_count += outcome.is_open ? 0 : 1;
  }
  MESSAGE(count, " allocations, of which ", ended_count, " end the handshake");
  CHECK(ended_count > 0);
  // A server's OpenSSL takes one failure or the other for a fault of the client's, and says so.
  CHECK(refused_count <= (at_client ? 0 : count / 100));
  CHECK(shake_hands(at_client, ~std::uint64_t{0}, of_client, of_server).is_open);
}

TEST_CASE("each allocation of OpenSSL fails once in a client's handshake") { each_fails(true); }
TEST_CASE("each allocation of OpenSSL fails once in a server's handshake") { each_fails(false); }

}  // namespace
}  // namespace muster::test
