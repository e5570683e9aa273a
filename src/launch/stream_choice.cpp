#include "launch/stream_choice.h"

#include <optional>
#include <string>

#include "base/failure.h"
#include "launch/numbers.h"
#include "muster/log.h"

namespace muster::launch {

namespace {

std::optional<Streams> streams_of(std::string_view digit) {
  if (digit.size() != 1 || digit[0] < '0' || digit[0] > '3') return {};
  const int bits = digit[0] - '0';
  return Streams{(bits & 1) != 0, (bits & 2) != 0};
}

Error wrong_part(std::string_view part, const char* why) {
  return base::failure(ErrorCode::invalid_argument,
                       "'" + printable(part.substr(0, 64)) + "' " + why +
                           ": write 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or a list of "
                           "local ranks such as 0:1,1:3");
}

}  // namespace

Result<StreamChoice> StreamChoice::parse(std::string_view text) {
  StreamChoice choice;
  if (text.find(':') == text.npos) {
    const std::optional<Streams> of_all = streams_of(text);
    if (!of_all) return wrong_part(text, "chooses no streams");
    choice.otherwise_ = *of_all;
    return choice;
  }
  for (bool is_last = false; !is_last;) {
    const std::size_t comma = text.find(',');
    is_last = comma == text.npos;
    const std::string_view part = text.substr(0, comma);
    if (!is_last) text.remove_prefix(comma + 1);
    const std::size_t colon = part.find(':');
    if (colon == part.npos) return wrong_part(part, "names no local rank");
    const std::optional<int> local_rank = whole_number(part.substr(0, colon));
    const std::optional<Streams> streams = streams_of(part.substr(colon + 1));
    if (!local_rank) return wrong_part(part, "names no local rank");
    if (!streams) return wrong_part(part, "chooses no streams");
    if (!choice.by_local_rank_.emplace(*local_rank, *streams).second)
      return wrong_part(part, "names a local rank for the second time");
  }
  return choice;
}

Streams StreamChoice::of(int local_rank) const {
  const auto found = by_local_rank_.find(local_rank);
  return found == by_local_rank_.end() ? otherwise_ : found->second;
}

}  // namespace muster::launch
