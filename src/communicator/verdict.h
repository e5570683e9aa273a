#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "client/failure.h"
#include "muster/process_group.h"

namespace muster::communicator {

/// A digest of the epoch and its size: who is meant by an epoch's number are the epochs of a
/// server's start.
std::uint64_t members_of(const StatelessProcessGroup& group);

/// A digest of this host's name and boot.
std::uint64_t host_digest();

/// Why these ranks get no communicator, and which of them are at fault.
struct Verdict {
  Error error;
  std::function<bool(int rank)> is_at_fault;
};

/// Whose `is_odd` holds of all ranks' presences.
template <class Presence, class IsOdd>
std::function<bool(int rank)> whose(const std::vector<Presence>& presences, IsOdd is_odd) {
  return [presences, is_odd](int rank) {
    return is_odd(presences[static_cast<std::size_t>(rank)], presences.front());
  };
}

/// Who cannot take part, then who is no rank of rank 0's group. A presence has `rank`, `members`
/// and `trouble`.
template <class Presence>
std::optional<Verdict> verdict_on_presence(const std::vector<Presence>& presences) {
  for (const Presence& presence : presences) {
    if (!presence.trouble) continue;
    return Verdict{*presence.trouble,
                   whose(presences, [code = presence.trouble->code](const auto& each, const auto&) {
                     return each.trouble && each.trouble->code == code;
                   })};
  }
  const auto is_member = [](const Presence& each, const Presence& first, int rank) {
    return each.rank == rank && each.members == first.members;
  };
  int rank = 0;
  for (const Presence& presence : presences) {
    if (is_member(presence, presences.front(), rank++)) continue;
    return Verdict{
        client::failure(ErrorCode::mismatch, "another rank or other members than the group has"),
        [presences, is_member](int other) {
          return !is_member(presences[static_cast<std::size_t>(other)], presences.front(), other);
        }};
  }
  return std::nullopt;
}

}  // namespace muster::communicator
