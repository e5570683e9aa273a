// Who has no key gets nowhere: first flights, records and whole recordings that are forged, in
// memory, without sockets. MUSTER_TEST_SCALE=200 makes it a million flights and a million records.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "net/tls/library.h"
#include "support/scale.h"

namespace {

using muster::net::tls::derive;
using muster::net::tls::Phase;
using muster::net::tls::Secret;
using muster::net::tls::TlsContext;
using muster::net::tls::TlsSession;

using Context = std::shared_ptr<const TlsContext>;
using Dice = std::mt19937_64;

constexpr std::string_view client_key = "the key of a client, of 32 bytes";
constexpr std::string_view other_key = "another key, which is wrong here";
constexpr std::string_view id = "known id";
constexpr std::string_view unknown_id = "stranger";
constexpr std::size_t header_bytes = 5;  // of a record

Dice seeded() {
  const char* const text = std::getenv("MUSTER_TEST_SEED");
  const std::uint64_t seed = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
  MESSAGE("MUSTER_TEST_SEED=", seed);
  return Dice(seed);
}

std::size_t below(Dice& dice, std::size_t end) {
  return std::uniform_int_distribution<std::size_t>(0, end - 1)(dice);
}

Secret secret_of(std::string_view own_key) { return derive(own_key, "test").value(); }

Context server_context() {
  static const Context made =
      TlsContext::server(
          [](std::string_view named, unsigned char* secret) {
            static const Secret known = secret_of(client_key);
            if (named != id) return false;
            std::copy_n(known.data(), muster::net::tls::secret_bytes, secret);
            return true;
          },
          {})
          .value();
  return made;
}

Context client_context(std::string_view named, std::string_view own_key) {
  return TlsContext::client(named, secret_of(own_key)).value();
}

/// One side of a connection.
struct Side {
  explicit Side(const Context& context) : session(TlsSession::create(context)) {}

  /// Takes all of it, and returns what was for its owner.
  std::string take(std::string_view came) {
    std::array<char, muster::net::tls::record_bytes_max> room;
    std::string plain;
    for (;;) {
      const auto read = session->read(came, room.data(), room.size(), out);
      phase = read.phase;
      came.remove_prefix(read.taken);
      plain.append(room.data(), read.plain);
      if (phase == Phase::failed || (read.taken == 0 && read.plain == 0)) return plain;
    }
  }
  std::string said() { return std::exchange(out, {}); }

  std::unique_ptr<TlsSession> session;
  std::string out;
  Phase phase = Phase::handshaking;
};

std::string first_flight(const Context& context) {
  Side client(context);
  client.take({});
  return client.said();
}

/// A handshake as somebody on the path records it.
struct Recording {
  std::string first;   ///< the client's
  std::string server;  ///< the server's answer
  std::string last;    ///< the client's, with a first record
};

struct Connected {
  Connected() : client(client_context()), server(server_context()) {
    client.take({});
    recording.first = client.said();
    server.take(recording.first);
    recording.server = server.said();
    client.take(recording.server);
    REQUIRE(client.phase == Phase::open);
    REQUIRE(client.session->write("hello", client.out));
    recording.last = client.said();
    REQUIRE(server.take(recording.last) == "hello");
    REQUIRE(server.phase == Phase::open);
  }
  static Context client_context() {
    static const Context made = ::client_context(id, client_key);
    return made;
  }

  Side client;
  Side server;
  Recording recording;
};

/// One of the ways to spoil it; never what it was.
std::string spoiled(std::string bytes, Dice& dice) {
  const std::string before = bytes;
  while (bytes == before) {
    const std::size_t at = below(dice, bytes.size());
    switch (below(dice, 6)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(dice, 8))); break;
      case 1: bytes[at] = static_cast<char>(dice()); break;
      case 2: bytes.erase(at, 1 + below(dice, 8)); break;
      case 3: bytes.insert(at, 1, static_cast<char>(dice())); break;
      case 4: std::swap(bytes[at], bytes[below(dice, bytes.size())]); break;
      default:
        for (std::size_t count = 2 + below(dice, 16); count > 0; --count) {
          bytes[below(dice, bytes.size())] = static_cast<char>(dice());
        }
    }
    if (bytes.empty()) bytes = before;
  }
  return bytes;
}

std::string made_up(Dice& dice) {
  std::string bytes(1 + below(dice, 600), '\0');
  for (char& byte : bytes) byte = static_cast<char>(dice());
  if (below(dice, 4) == 0) return bytes;
  const std::size_t length = bytes.size() - std::min(bytes.size(), header_bytes);
  constexpr char head[] = {22, 3, 1};
  std::copy_n(head, std::min(sizeof head, bytes.size()), bytes.begin());
  if (bytes.size() >= header_bytes) {
    bytes[3] = static_cast<char>(length >> 8U);
    bytes[4] = static_cast<char>(length & 255U);
  }
  if (bytes.size() > header_bytes) bytes[header_bytes] = 1;  // a ClientHello
  return bytes;
}

TEST_CASE("no forged first flight opens a connection, whatever follows") {
  Dice dice = seeded();
  const Recording recorded = Connected().recording;
  const std::string of_stranger = first_flight(client_context(unknown_id, other_key));
  const std::string of_wrong_key = first_flight(client_context(id, other_key));
  const int flights = muster::test::scaled(5'000);
  int opened = 0;
  int told = 0;
  for (int count = 0; count < flights; ++count) {
    Side server(server_context());
    std::string flight;
    switch (count % 4) {
      case 0: flight = made_up(dice); break;
      case 1: flight = spoiled(of_stranger, dice); break;
      case 2: flight = spoiled(of_wrong_key, dice); break;
      default: flight = spoiled(recorded.first, dice);
    }
    told += server.take(flight).empty() ? 0 : 1;
    if (server.phase != Phase::failed) told += server.take(recorded.last).empty() ? 0 : 1;
    opened += server.phase == Phase::open ? 1 : 0;
  }
  CHECK(opened == 0);
  CHECK(told == 0);
}

TEST_CASE("a recording that is sent again opens nothing, on another connection or another server") {
  const Recording recorded = Connected().recording;
  const auto restarted = TlsContext::server(
                             [](std::string_view, unsigned char* secret) {
                               const Secret known = secret_of(client_key);
                               std::copy_n(known.data(), muster::net::tls::secret_bytes, secret);
                               return true;
                             },
                             {})
                             .value();
  for (const Context& context : {server_context(), restarted}) {
    Side server(context);
    CHECK(server.take(recorded.first).empty());
    CHECK(server.phase == Phase::handshaking);
    CHECK(server.take(recorded.last).empty());
    CHECK(server.phase == Phase::failed);
  }
  Side client(Connected::client_context());
  client.take({});
  CHECK(client.take(recorded.server).empty());
  CHECK(client.phase == Phase::failed);
}

TEST_CASE("what a client says is no answer to a client") {
  Side client(Connected::client_context());
  client.take({});
  const std::string own = client.said();
  client.take(own);
  CHECK(client.phase == Phase::failed);
}

TEST_CASE("a record with one bit turned ends its connection, and nothing of it is told") {
  Dice dice = seeded();
  const int records = muster::test::scaled(5'000);
  int told = 0;
  int alive = 0;
  for (int count = 0; count < records; ++count) {
    Connected connected;
    Side& from = count % 2 == 0 ? connected.client : connected.server;
    Side& to = count % 2 == 0 ? connected.server : connected.client;
    REQUIRE(from.session->write("a request that must not be changed", from.out));
    std::string record = from.said();
    const std::size_t bit = below(dice, record.size() * 8);
    const std::size_t at = bit / 8;
    record[at] = static_cast<char>(record[at] ^ (1 << bit % 8));
    const bool is_length = at == 3 || at == 4;
    told += to.take(record).empty() ? 0 : 1;
    // A longer one is waited for; then it is as wrong as the others.
    if (is_length && to.phase == Phase::open) to.take(std::string(1U << 16U, 'x'));
    alive += to.phase == Phase::failed ? 0 : 1;
  }
  CHECK(told == 0);
  CHECK(alive == 0);
}

}  // namespace
