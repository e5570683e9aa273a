#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler.h"

// Connections under virtual time: bytes arrive in order, in pieces, after a while; or not at all.
// What travels on different connections overtakes each other.

namespace muster::sim {

enum class Side : std::uint8_t { client = 0, server = 1 };
constexpr Side other(Side side) { return side == Side::client ? Side::server : Side::client; }

/// One end of a connection as its owner sees it.
struct End {
  std::function<void(std::string_view bytes)> received;
  std::function<void()> closed;  ///< FIN or RST; the last call
};

class Network {
 public:
  using ConnectionId = std::uint64_t;

  Network(Scheduler& scheduler, Random& random) : scheduler_(scheduler), random_(random) {}

  /// Both ends have to be set before time goes on.
  ConnectionId open(std::uint64_t client);
  void set_end(ConnectionId connection, Side side, End end);
  std::uint64_t client_of(ConnectionId connection) const;

  /// returns  how many of the bytes are under way; they arrive, and `taken` is told of it
  std::size_t send(ConnectionId connection, Side from, std::string_view bytes);
  /// The owner of this end closes it: what it sent arrives, then the other end learns.
  void close(ConnectionId connection, Side from);

  /// So many bytes that the server has sent have come to its client.
  std::function<void(ConnectionId connection, std::size_t bytes)> taken;

  // What goes wrong.

  /// The newest connection of a client breaks: each end learns, or does not, by itself.
  void cut(std::uint64_t client, bool client_learns, bool server_learns);
  /// Nothing of a client arrives on this side until then; what was under way arrives later.
  void block(std::uint64_t client, Side arriving, Instant until);
  void block(std::uint64_t client, Instant until);
  /// Whether a new connection of the client would come to nothing.
  bool is_blocked(std::uint64_t client) const;
  /// The server's process is gone, with all its connections.
  void server_died();

  Duration delay();
  /// From now on each piece takes up to this long.
  void set_delay_max(Duration most) { delay_max_ = most; }

 private:
  using Piece = std::optional<std::string>;  ///< nothing: the end of the stream
  /// What one end sees.
  struct Direction {
    End end;
    std::deque<Piece> under_way;
    Instant last_arrives{};
    bool is_open = true;
  };
  struct Connection {
    std::uint64_t client = 0;
    std::array<Direction, 2> ways;
    Direction& to(Side side) { return ways[static_cast<std::size_t>(side)]; }
    bool is_cut = false;  ///< nothing new gets through
  };
  struct Blocked {
    std::array<Instant, 2> until{};  ///< by the side on which nothing arrives
  };

  /// Null: both ends are closed, and all has arrived.
  Connection* find(ConnectionId connection);
  void forget_if_over(ConnectionId connection, const Connection& over);
  Instant blocked_until(std::uint64_t client, Side to) const;
  void put(ConnectionId id, Connection& connection, Side to, Piece piece);
  /// An arrival at this end is due; if it is held back, at its end.
  void arrive(ConnectionId connection, Side to);
  void tell_closed(ConnectionId id, Side side);

  Scheduler& scheduler_;
  Random& random_;
  Duration delay_max_{std::chrono::milliseconds(3)};
  ConnectionId last_ = 0;
  std::map<ConnectionId, Connection> connections_;
  std::map<std::uint64_t, ConnectionId> newest_;
  std::map<std::uint64_t, Blocked> blocked_;
};

}  // namespace muster::sim
