#include "work.h"

#include <iterator>

namespace muster::bench {

const std::vector<Work>& all_work() {
  static const std::vector<Work> work = [] {
    std::vector<Work> all;
    for (const auto part : {wire_work, frame_work, key_work, group_work, object_work, timer_work}) {
      std::vector<Work> more = part();
      std::move(more.begin(), more.end(), std::back_inserter(all));
    }
    return all;
  }();
  return work;
}

}  // namespace muster::bench
