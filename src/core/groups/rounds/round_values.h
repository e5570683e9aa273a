#pragma once

#include <cstdint>
#include <vector>

#include "core/groups/objects.h"
#include "core/groups/rounds/round_call.h"

namespace muster::core {

/// The values of one round: what its ranks have brought until it is decided, from then on what they
/// get. They go with the round, and each at its expiration.
class RoundValues {
 public:
  explicit RoundValues(Shelf& shelf) : shelf_(shelf) {}
  ~RoundValues() { clear(); }
  RoundValues(const RoundValues&) = delete;
  RoundValues& operator=(const RoundValues&) = delete;

  /// Stores what `member` brings. False: there is no memory for it, and nothing of it is stored.
  bool store(const Member& member, const wire::CollectiveCall& request);
  /// Removes what `rank` has brought to a round that is not decided.
  void withdraw(const RoundCall& call, std::uint32_t rank);
  /// Joins what all have brought to the RoundReply that they get, or begins to, if it is long.
  /// False: the system gives the server no memory for it, and nothing has changed.
  bool gather(std::uint64_t round, const RoundCall& call);
  /// From now on they expire.
  void let_age();
  /// `object` is one of them.
  void expire(Object& object);
  void drop(std::uint32_t rank) {
    if (of(rank) != nullptr) remove(rank);
  }
  void clear();

  /// What all get: the value of a broadcast, a joined RoundReply. Null: there is none, or it has
  /// expired.
  const Object* common() const { return common_; }
  /// What `rank` has brought, or gets of a scatter; null as above.
  const Object* of(std::uint32_t rank) const {
    return rank < by_rank_.size() ? by_rank_[rank] : nullptr;
  }
  /// The sum of what was brought.
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::string joined() const;
  Payload join_later() const;
  void remove(std::uint32_t rank);

  Shelf& shelf_;
  std::vector<Object*> by_rank_;
  Object* common_ = nullptr;
  std::uint64_t bytes_ = 0;
};

std::uint64_t bytes_of(const std::vector<std::string_view>& values);

}  // namespace muster::core
