#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "core/memory/chain.h"
#include "core/memory/frame_charging.h"
#include "net/channel.h"
#include "net/tls/encryption.h"
#include "server/door/arrival.h"
#include "server/peer/connection_events.h"
#include "server/peer/units.h"
#include "wire/hello.h"

namespace muster::server {

/// A connection that has not said its hello yet. There may be very many, and nobody knows who they
/// are: one takes at most 1 KiB with its connection, and what a peer needs is made when the hello
/// is there.
struct Newcomer final : net::ChannelOwner {
  Newcomer(ConnectionEvents& its_events, std::shared_ptr<net::Channel> its_connection,
           Unit& its_unit, const Arrival& its_arrival, base::Instant its_deadline)
      : events(its_events),
        connection(std::move(its_connection)),
        unit(its_unit),
        arrival(its_arrival),
        stage(its_arrival.kind == Arrival::Kind::tls ? Stage::first_flight : Stage::hello),
        deadline(its_deadline) {
    if (stage == Stage::first_flight) by_tls = std::make_unique<ByTls>(*this);
  }

  void received(std::string_view bytes) override { events.received(*this, bytes); }
  void closed(net::CloseCause cause, std::string detail) override {
    events.closed(*this, cause, detail);
  }
  void drained() override {}
  /// What comes behind the hello may have to wait, stored.
  std::size_t readable_bytes() override { return core::frame_read_bytes_min; }

  using HelloBytes = std::array<char, wire::client_hello_bytes>;

  /// What it is at; before its hello, if it comes by TLS, see Entrance.
  enum class Stage : std::uint8_t { first_flight, at_door, handshake, hello };

  ConnectionEvents& events;
  std::shared_ptr<net::Channel> connection;
  UnitPlace unit;
  Arrival arrival;
  Stage stage;
  base::Instant deadline;               ///< of its hello
  std::unique_ptr<HelloBytes> hello;    ///< null: nothing has come, or all at once
  std::uint32_t hello_bytes_count = 0;  ///< that have come
  core::ChainLink<Newcomer> in_all{*this};
  core::ChainLink<Newcomer> in_unit{*this};

  /// Of one that comes by TLS, until its hello can be read.
  struct ByTls {
    explicit ByTls(Newcomer& newcomer) : in_door(newcomer) {}

    std::string first_flight;           ///< while it is not used yet
    base::Instant since{};              ///< when its handshake began
    core::ChainLink<Newcomer> in_door;  ///< see Handshakes
  };
  std::unique_ptr<ByTls> by_tls;
  const net::tls::Encryption* tls = nullptr;  ///< of its connection; null: there is none yet
};

}  // namespace muster::server
