#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/session/tallies/waiting_line.h"
#include "muster/error.h"
#include "muster/types.h"

namespace muster::core {

struct Joiner;

/// The seats of a group that forms. The first joiner that takes one says what the group is like.
/// A joiner that gives up at its deadline leaves its seat free, but the seat remembers that the
/// rank has been there.
class Forming {
 public:
  void seat(Joiner& joiner);
  void leave(const Joiner& joiner);
  void give_up(const Joiner& joiner);
  void clear() { seats_.clear(); }

  bool empty() const { return seats_.empty(); }
  bool is_complete() const { return seated_count_ != 0 && seated_count_ == world_size_; }
  /// Null: the seat is free.
  Joiner* at(std::uint32_t rank) const;
  /// The joiners, in the order of their ranks.
  std::vector<Joiner*> joiners() const;
  std::uint32_t seated_count() const { return seated_count_; }
  std::uint32_t world_size() const { return world_size_; }
  Duration data_expiration() const { return data_expiration_; }

  /// Among all groups that form: since when it does.
  WaitingLine::Place since;

  /// Why a joiner that waits for the others has to give up: who is missing.
  void blame_absent(Error& timeout);

 private:
  const std::vector<RankRange>& never_joined();

  std::uint32_t world_size_ = 0;
  Duration data_expiration_{};
  std::map<std::uint32_t, Joiner*> seats_;  ///< by rank; null: joined and gave up
  std::uint32_t seated_count_ = 0;          ///< without those that gave up
  std::vector<RankRange> never_joined_;     ///< valid unless empty
};

}  // namespace muster::core
