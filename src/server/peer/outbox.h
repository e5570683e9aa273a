#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/channel.h"
#include "net/send_queue.h"
#include "wire/frame.h"

namespace muster::server {

/// What one peer is sent. Short frames leave at once; long replies leave in parts, one reply after
/// the other, and let short frames between their parts: heartbeats are answered while a peer takes
/// minutes to download something. A socket that takes them gets several parts in one write.
class Outbox {
 public:
  /// The connection outlives the outbox.
  explicit Outbox(net::Channel& connection) : connection_(connection) {}

  /// A longer reply is sent in parts.
  static constexpr std::uint64_t part_bytes_max = 256 * 1024;

  /// A frame whose body begins with these two; the rest of it, if any, must follow.
  void send(const wire::FrameHeader& header, std::string_view head, std::string_view value = {}) {
    const auto bytes = wire::encode_frame_header(header);
    connection_.send({bytes.data(), bytes.size()});
    if (!head.empty()) connection_.send(head);
    if (!value.empty()) connection_.send(value);
  }
  void send(net::SharedBytes rest) { connection_.send(std::move(rest)); }

  /// A long reply, whose body is `head` and then `tail`; either may be empty.
  void send_in_parts(wire::FrameHeader header, net::SharedBytes head, net::SharedBytes tail);

  /// Bytes of a protocol that has no frames: behind all that was sent before. Long ones leave as
  /// parts of a reply do, without headers.
  void send_bare(std::string_view bytes);
  void send_bare(net::SharedBytes bytes);

  /// Writes what the socket takes, of long replies about so many bytes; 0: none of them.
  void flush(std::uint64_t long_bytes);
  bool has_long() const { return !long_.empty(); }
  /// Whether there is more of the long replies, and room for it before the socket.
  bool wants_part() const;

  /// Lets go of the long replies.
  void clear() {
    std::vector<LongReply>().swap(long_);
    bare_ = nullptr;
    long_bytes_ = long_for_one_bytes_ = bare_bytes_ = 0;
  }

  /// What a reply takes here beside its bytes, which are sent from where they are.
  static constexpr std::uint64_t reply_bytes = net::SendQueue::piece_bytes;

  /// Bytes that have not left and go with this peer: those that are copied here, those by
  /// reference that nobody else holds, and what is kept for each reply.
  std::uint64_t own_bytes() const {
    return connection_.unsent_own_bytes() + connection_.unsent_for_one_bytes() +
           long_for_one_bytes_ + replies_count() * reply_bytes;
  }
  /// All memory that replies take here and in the connection, used or not, but that of bytes by
  /// reference.
  std::uint64_t held_bytes() const {
    return connection_.held_bytes() + long_.capacity() * sizeof(LongReply) + bare_bytes_;
  }
  /// The number of replies, or parts of them, that are sent from where they are.
  std::uint64_t replies_count() const { return connection_.unsent_pieces() + long_.size(); }
  /// Bytes that have not left, by reference or not.
  std::uint64_t unsent_bytes() const { return connection_.unsent_bytes() + long_bytes_; }
  /// Of them, those that wait behind the reply that is being sent.
  std::uint64_t waiting_bytes() const;

 private:
  struct LongReply {
    std::optional<wire::FrameHeader> header;  ///< of its last part; nothing: it has no frames
    net::SharedBytes head;                    ///< what has not been passed on
    net::SharedBytes tail;
    std::uint64_t bare_bytes = 0;  ///< allocated here for `head`
    std::uint64_t bytes() const { return head.view.size() + tail.view.size(); }
    std::uint64_t for_one_bytes() const {
      return (head.is_for_one ? head.view.size() : 0) + (tail.is_for_one ? tail.view.size() : 0);
    }
  };

  struct Part {
    std::array<char, wire::frame_header_bytes> header_bytes;
    std::size_t header_bytes_count;  ///< none where there are no frames
    std::uint64_t body_bytes;
    bool is_last;
    std::string_view header() const { return {header_bytes.data(), header_bytes_count}; }
    std::uint64_t bytes() const { return header_bytes_count + body_bytes; }
  };

  Part part_at(std::uint64_t offset) const;
  bool offer_parts(std::uint64_t bytes);
  std::uint64_t send_part(std::uint64_t left_bytes);
  void send_some(net::SharedBytes& from, std::uint64_t& count, std::uint64_t& left_bytes);

  net::Channel& connection_;
  std::vector<LongReply> long_;   ///< few; an empty deque would take half a kilobyte
  std::uint64_t long_bytes_ = 0;  ///< of all in `long_`
  std::uint64_t long_for_one_bytes_ = 0;
  std::uint64_t bare_bytes_ = 0;       ///< allocated for bare bytes in `long_`
  std::shared_ptr<std::string> bare_;  ///< the last bare bytes that were gathered
};

}  // namespace muster::server
