#pragma once

#include <algorithm>
#include <cstdint>

#include "core/memory/quota.h"

namespace muster::core {

/// What most replies take, and more: values that are longer are sent from where they are.
inline constexpr std::uint64_t short_reply_bytes = 4096;
/// A reply that takes no more waits for nobody, if nothing waits for its peer.
inline constexpr std::uint64_t prompt_reply_bytes = 8192;

/// What waits, and what the replies' quota does not know of it, when a request comes.
struct UnsentReplies {
  std::uint64_t of_peer_bytes = 0;    ///< held for who asks, charged or not
  std::uint64_t uncharged_bytes = 0;  ///< queued in this turn, for anybody
  std::uint64_t ahead_bytes = 0;      ///< that others need whose requests were postponed before
  std::uint64_t frames_bytes = 0;     ///< of requests that are stored and wait
};

/// What replies, and frames that wait, may take of the server's memory: as much as they leave free,
/// of all that is below the end of the reserve. So there is always something left for groups. Where
/// there are several units it is what is below the limit, so that something is left for the values
/// of others too; or half of the reserve when values have taken all.
class ReplyRoom {
 public:
  /// `replies`: what all replies are charged to, below the server's quota. Both outlive this.
  ReplyRoom(const Quota& server, const Quota& replies) : server_(server), replies_(replies) {}

  /// Whether no reply waits at all: then any may be begun.
  bool is_unused(const UnsentReplies& unsent) const {
    return replies_.used_bytes() + unsent.uncharged_bytes + unsent.ahead_bytes == 0;
  }
  /// Whether a reply of `bytes` may be begun: it fits, or it is short and its peer takes what it
  /// is sent, or no waiting would help. What does not fit even alone is refused when it is charged,
  /// or is a page, which is not long.
  bool has(std::uint64_t bytes, const UnsentReplies& unsent) const {
    if (is_unused(unsent)) return true;
    if (bytes <= prompt_reply_bytes && unsent.of_peer_bytes == 0) return true;
    if (bytes > server_.left_bytes() + replies_.used_bytes()) return true;
    // All but what is not charged yet is taken from what is left already.
    const std::uint64_t soon_bytes = unsent.uncharged_bytes + unsent.ahead_bytes;
    return soon_bytes + 2 * bytes <= free_bytes(soon_bytes + unsent.frames_bytes);
  }
  /// What they may still take, all together, beside `others_bytes` that wait as well.
  std::uint64_t free_bytes(std::uint64_t others_bytes) const {
    const std::uint64_t taken_bytes = replies_.used_bytes() + others_bytes;
    return left_bytes() > taken_bytes ? left_bytes() - taken_bytes : 0;
  }
  /// Whether not even a short reply fits.
  bool is_full() const { return free_bytes(2 * short_reply_bytes) == 0; }
  /// Whether more is charged than there is: something has to go.
  bool is_passed() const { return server_.used_reserve_bytes() > server_.reserve_bytes(); }
  /// Of what is for them, not taken by anything.
  std::uint64_t left_bytes() const {
    const std::uint64_t left_bytes = server_.left_bytes();
    if (!server_.is_shared()) return left_bytes;
    const std::uint64_t reserve_bytes = server_.reserve_bytes();
    const std::uint64_t below_limit_bytes = left_bytes - std::min(left_bytes, reserve_bytes);
    return std::min(left_bytes, std::max(below_limit_bytes, reserve_bytes / 2));
  }
  bool is_empty() const { return replies_.used_bytes() == 0; }

 private:
  const Quota& server_;
  const Quota& replies_;
};

/// All memory of the server, and what of it is a reply's, until it has left: one that is made for
/// one reader, or what the rim has copied.
struct ServerMemory {
  explicit ServerMemory(std::uint64_t limit_bytes) : all(limit_bytes, nullptr, nullptr, &freed) {}

  /// What is kept goes when there is no more room for it beside what is charged.
  void fit_kept() {
    if (freed.kept_bytes() == 0) return;
    if (all.used_bytes() + freed.kept_bytes() > all.limit_bytes()) freed.let_go_of_kept();
  }

  FreedMemory freed;
  Quota all;
  Quota guests{UINT64_MAX};  ///< of `all`, what the units of guests have together
  Quota replies{UINT64_MAX, &all};
  ReplyRoom room{all, replies};
};

}  // namespace muster::core
