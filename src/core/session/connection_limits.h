#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory/server_memory.h"
#include "muster/types.h"

namespace muster::core {

/// What becomes of a connection whose peer takes nothing of its replies.
enum class SlowPeer : std::uint8_t {
  may_stay,
  has_stalled,             ///< for longer than any peer may
  has_stalled_when_short,  ///< for longer than one may while memory is short
  is_overfull,             ///< more waits for it than may, and it has stalled for a moment
};

/// How much is done in one turn of the loop. The rest waits for the next turn.
struct TurnLimits {
  // In the engine's steps: for a connection, for all connections of its unit, and for all together.
  std::uint32_t work_per_connection = 2048;
  std::uint32_t work_per_unit = 4096;
  std::uint32_t work_per_turn = 8192;
  /// While several units have work, all of this is divided by this number: turns are short, so that
  /// no client waits for long. Turns of one unit alone are longer, which costs it less.
  std::uint32_t shared_part = 16;
  /// Several units count as having work until so many turns after the last change between units.
  std::uint32_t shared_turns = 256;
  /// The number of peers that are written to, or fewer if they are sent much.
  std::uint32_t writes_per_turn = 512;
};

/// What connections may take and how long they may wait. The rim counts bytes and looks at the
/// clock; what follows from them is decided here.
struct ConnectionLimits {
  std::uint32_t connections_max = 16384;
  /// Places for connections that have not said hello yet, beside those above, of which they may
  /// have all that are free. When all are taken a further one takes the place of the first one of
  /// the unit that has most.
  std::uint32_t hello_connections_max = 1024;
  /// Places beside those above, which only operators may have: see `Session::is_operator`. When all
  /// are taken, the operator that has asked for nothing for the longest time makes room.
  std::uint32_t operators_max = 8;
  /// So many are waited for until they have taken their last bytes.
  std::uint32_t leaving_connections_max = 256;

  /// How long a hello may take: many who come at once have it only when they have all connected.
  Duration hello_time{std::chrono::seconds(10)};
  /// And the last bytes of a connection that the server ends.
  Duration leaving_time{std::chrono::seconds(1)};
  Duration leaving_time_at_stop{std::chrono::milliseconds(500)};

  /// Who takes nothing of its replies for so long is let go.
  Duration stall_time_max{std::chrono::seconds(10)};
  Duration stall_time_when_short_max{std::chrono::milliseconds(500)};
  /// And for so long while more waits for it than may. A process whose container may not run for a
  /// moment reads on in time.
  Duration stall_time_when_overfull_max{std::chrono::seconds(1)};
  /// When a request is postponed, the peer for which most is held makes room if it has taken
  /// nothing for the first; whoever it is does when the request has waited for the second.
  Duration stall_time_when_postponed_max{std::chrono::milliseconds(100)};
  Duration postponed_time_max{std::chrono::seconds(1)};
  /// What may wait for a peer that takes nothing, behind the reply that it is being sent and beside
  /// what it has asked for at once.
  std::uint64_t waiting_bytes_max = 8u << 20;

  /// A peer for which more waits is held: its frames are not handled until less than the second
  /// waits. While it is held so many bytes of its frames are read.
  std::uint64_t hold_bytes = 1u << 20;
  std::uint64_t continue_bytes = 256u << 10;
  /// The same of the number of replies that are sent from where their values are.
  std::uint32_t hold_replies = 256;
  std::uint32_t continue_replies = 64;
  std::uint64_t held_bytes_max = 64u << 10;

  TurnLimits turn;

  /// Connections with sessions at most, and those without a hello.
  std::size_t places() const {
    return SharedLimit{connections_max}.with_reserve() + operators_max + hello_connections_max;
  }
  /// Whether a peer's frames have to wait for its replies to leave. `own_bytes` are held for it
  /// alone, also of the reply that it is being sent: more than a quarter of what is free.
  bool holds(std::uint64_t waiting_bytes, std::uint64_t replies_count, std::uint64_t own_bytes,
             bool is_held, const ReplyRoom& room) const {
    if (waiting_bytes > (is_held ? continue_bytes : hold_bytes)) return true;
    if (replies_count > (is_held ? continue_replies : hold_replies)) return true;
    return own_bytes > short_reply_bytes && own_bytes > room.left_bytes() / 4;
  }
  /// Whether a peer that is held may be read on.
  bool reads_held(std::uint64_t stored_bytes) const { return stored_bytes < held_bytes_max; }
  /// Whether more waits for a peer that takes nothing than may; `asked_bytes` of it are answers to
  /// what it had sent before it was held.
  bool is_overfull(std::uint64_t waiting_bytes, std::uint64_t asked_bytes) const {
    return waiting_bytes > waiting_bytes_max + asked_bytes;
  }
  /// Of a peer that has taken nothing for `stalled`, for which more waits than may if it
  /// `has_too_much`; memory is short when there is no room for further replies.
  SlowPeer judge(Duration stalled, bool has_too_much, const ReplyRoom& room) const {
    if (stalled >= stall_time_max) return SlowPeer::has_stalled;
    if (has_too_much && stalled >= stall_time_when_overfull_max) return SlowPeer::is_overfull;
    const bool is_short = room.is_full();
    if (is_short && stalled >= stall_time_when_short_max) return SlowPeer::has_stalled_when_short;
    return SlowPeer::may_stay;
  }
};

}  // namespace muster::core
