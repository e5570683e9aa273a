#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/groups/joiners.h"
#include "core/groups/roster.h"
#include "wire/request.h"

namespace muster::core {

/// A member of the next epoch.
struct Seat {
  std::uint32_t rank = 0;
  Session* session = nullptr;
  Member* survivor = nullptr;  ///< of the epoch before; or
  Joiner* joiner = nullptr;
};

/// What a regroup is to come to. Who joins does not know what the others call, so the sizes of a
/// regroup replace those of joins.
struct RegroupSizes {
  bool takes_everyone() const { return new_size == wire::Regroup::everyone; }
  /// That it is to have; 0: that of those who are there.
  std::uint32_t size() const { return takes_everyone() ? 0 : new_size; }

  std::uint32_t new_size = 0;  ///< as that of the request
  std::uint32_t min_size = 0;
  bool of_join = false;
};

std::string text_of(const RegroupSizes& sizes);

/// Who of an epoch's live members and of the candidates gets which rank of the next epoch.
class Seating {
 public:
  Seating(Roster& roster, const Candidates& candidates)
      : roster_(roster), candidates_(candidates) {}

  /// By rank. Without a size, and with less than the size, ranks may be left out.
  ///
  /// attempt  only members count who have called this one; 0: all who live
  std::vector<Seat> seats(const RegroupSizes& sizes, std::uint64_t attempt) const;
  /// Of the size that is asked for, when all live members have come.
  std::vector<std::uint32_t> empty_ranks(const RegroupSizes& sizes) const;
  /// As many as could have one, if their wishes fit.
  std::size_t count_max() const { return roster_.live_count + candidates_.count(); }

 private:
  std::uint32_t size_of_everyone(const std::vector<Seat>& survivors) const;
  void place_candidates(std::vector<Seat>& seats, const RegroupSizes& sizes) const;

  Roster& roster_;
  const Candidates& candidates_;
};

}  // namespace muster::core
