#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "core/groups/regroups/seating.h"

namespace muster::core {

/// Whether an open regroup can have its size. Others may come, and are waited for; but who was
/// there, when all were, and is gone is not waited for in silence.
class Reach {
 public:
  /// Somebody came.
  void changed() { is_known_ = false; }
  /// A member or a candidate goes, who had this rank or asked for it.
  void gone(std::uint32_t rank, RankReport report);
  /// Nothing: those who are there are enough, or never were. Else it names the ranks of the next
  /// epoch that are empty again, with those who would have had them.
  std::optional<Error> look(const Roster& roster, const Seating& seating,
                            const RegroupSizes& sizes);

 private:
  Error error_of(const Roster& roster, const Seating& seating, const RegroupSizes& sizes);

  bool is_known_ = false;
  bool was_whole_ = false;                         // all were there, called or not
  std::multimap<std::uint32_t, RankReport> gone_;  // since then
};

}  // namespace muster::core
