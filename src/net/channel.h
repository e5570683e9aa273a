#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace muster::net {

/// Bytes that are sent from where they are: `keep_alive` holds them until they have left.
struct SharedBytes {
  std::string_view view;
  std::shared_ptr<const void> keep_alive;
  bool is_for_one = false;  ///< nobody else holds them: they go when they have left
};

enum class CloseCause : std::uint8_t {
  by_peer,  ///< FIN or RST
  lost,     ///< anything else: time-out of the kernel, no route
  refused,  ///< one of both sides does not take who the other one is
};

/// Who is told what happens to a channel. Stands until the channel has called `closed`, or `close`
/// was called; any of these calls may end it.
class ChannelOwner {
 public:
  /// Bytes came; valid during the call. Everything queued meanwhile leaves after it.
  virtual void received(std::string_view bytes) = 0;
  /// The connection is over, and not because `close` was called. The last call, after all that the
  /// peer sent before it was over (unless reading is paused); never made from within a member
  /// function of the channel.
  virtual void closed(CloseCause cause, std::string detail) = 0;
  /// Some of what could not leave at once has left meanwhile.
  virtual void drained() = 0;
  /// Another number of bytes that came is kept by the channel, since their owner does not read on.
  virtual void kept() {}
  /// Asked before each read: how much may be read to nowhere in particular (see `read_into`). 0:
  /// reading is paused.
  virtual std::size_t readable_bytes() { return ~std::size_t{0}; }

 protected:
  ~ChannelOwner() = default;
};

/// Bytes to and from one peer, in order: a connection, or what a test puts in its place. What is
/// asked for each reply is not virtual; what is virtual is called a few times per reply at most.
class Channel {
 public:
  /// An owner as functions, which are kept until the channel is over. `drained` may be empty.
  struct Callbacks {
    std::function<void(std::string_view bytes)> received;
    std::function<void(CloseCause cause, std::string detail)> closed;
    std::function<void()> drained;
  };

  Channel() = default;
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  void start(ChannelOwner& owner);
  void start(Callbacks callbacks);
  /// The channel holds its owner until it is over.
  void start(std::shared_ptr<ChannelOwner> owner);
  /// From now on another owner is told.
  void pass_to(ChannelOwner& owner) { owner_ = &owner; }
  /// The same; the channel holds the new one until it is over.
  void pass_to(std::shared_ptr<ChannelOwner> owner) {
    callbacks_ = std::move(owner);
    owner_ = callbacks_.get();
  }

  /// Queues bytes behind what was queued before: a copy, or by reference when they are many.
  virtual void send(std::string_view bytes) = 0;
  virtual void send(SharedBytes bytes) = 0;

  /// Writes what is queued, now, as far as the socket takes it; the rest follows by itself.
  /// Called by itself after each batch of reads.
  virtual void flush() = 0;

  /// While nothing is unsent: writes of these bytes what the socket takes at once, and queues none.
  /// What the rest waits for, `flush` finds out.
  ///
  /// returns  how many bytes have left; always none where the channel only queues
  virtual std::size_t offer(std::span<const std::string_view>) { return 0; }

  /// The next read goes there, and `received` is told of it there; afterwards, or when it is empty,
  /// into the loop's buffer. For many bytes that their owner keeps.
  virtual void read_into(std::span<char> room) = 0;

  /// No more reads until `resume_reading`: for a peer that does not take its replies. The end of
  /// the connection is not seen meanwhile.
  virtual void pause_reading() = 0;
  virtual void resume_reading() = 0;
  /// Reads what is there without waiting to hear that something is. Not within a call of the owner.
  virtual void read_now() = 0;

  /// Closes at once, or when what is queued has left and the peer has closed its side too, so
  /// that the last bytes reach it; no callback follows. What has not left is let go.
  virtual void close() = 0;
  virtual void close_after_flush(Duration at_most) = 0;
  virtual bool is_open() const = 0;
  /// After `close_after_flush`: whether it still waits.
  virtual bool is_lingering() const = 0;

  /// How long the peer may acknowledge nothing before the connection is lost, where there is a
  /// kernel that sees to it.
  virtual void set_user_timeout(Duration) {}
  /// For an owner who lets other threads send, too, while the I/O thread does nothing with the
  /// connection and nothing is unsent, which its own lock sees to: where `Connection::send_now`
  /// writes. It is open until `closed` has returned. -1: there is none.
  virtual int descriptor() const { return -1; }

  std::uint64_t unsent_bytes() const { return unsent_bytes_; }
  /// Of them, those that are held here and not by reference.
  std::uint64_t unsent_own_bytes() const { return unsent_own_bytes_; }
  /// Of those by reference, the ones that nobody else holds.
  std::uint64_t unsent_for_one_bytes() const { return unsent_for_one_bytes_; }
  /// The number of pieces of those by reference: what is kept for each takes memory, too.
  std::size_t unsent_pieces() const { return unsent_pieces_; }
  /// All memory that what has not left takes here, used or not, but that of bytes by reference.
  virtual std::uint64_t held_bytes() const { return unsent_own_bytes_; }
  /// The memory of the channel itself, where it is more than that of a plain connection: its TLS,
  /// and bytes that came and are not read yet.
  virtual std::uint64_t own_bytes() const { return 0; }
  /// Since when the peer has taken nothing although something was there to take; far_future
  /// when that is not so.
  base::Instant stalled_since() const { return stalled_since_; }

  /// The other side's address, such as "10.0.0.7:51234"; "unix:/path" of the own side's socket.
  virtual std::string peer() const = 0;

 protected:
  /// `owner_` is there.
  virtual void begin() = 0;
  /// Nobody is told anything any more.
  void let_go_of_owner();

  ChannelOwner* owner_ = nullptr;
  std::shared_ptr<ChannelOwner> callbacks_;  ///< the owner, if it was given as functions
  std::uint64_t unsent_bytes_ = 0;
  std::uint64_t unsent_own_bytes_ = 0;
  std::uint64_t unsent_for_one_bytes_ = 0;
  std::size_t unsent_pieces_ = 0;
  base::Instant stalled_since_ = base::far_future;
};

}  // namespace muster::net
