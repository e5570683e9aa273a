#include "launch/stream_choice.h"

#include <charconv>
#include <optional>

#include "base/failure.h"

namespace muster::launch {

namespace {

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

Error wrong_part(std::string_view part) {
  return base::failure(ErrorCode::invalid_argument,
                       "\"" + std::string(part) +
                           "\": write 0 (none), 1 (stdout), 2 (stderr) or 3 (both) for all "
                           "ranks, or LOCAL_RANK:NUMBER for some, such as 0:1,1:3");
}

}  // namespace

Result<StreamChoice> StreamChoice::parse(std::string_view text) {
  StreamChoice choice;
  const auto streams_of = [](std::string_view number) -> std::optional<std::uint8_t> {
    const auto streams = number_in(number);
    if (!streams || *streams < 0 || *streams > 3) return {};
    return static_cast<std::uint8_t>(*streams);
  };
  if (const auto all = streams_of(text)) {
    choice.of_all_ = *all;
    return choice;
  }
  for (std::string_view left = text;;) {
    const auto comma = left.find(',');
    const std::string_view part = left.substr(0, comma);
    const auto colon = part.find(':');
    const auto rank = number_in(part.substr(0, colon));
    const auto streams =
        colon == std::string_view::npos ? std::nullopt : streams_of(part.substr(colon + 1));
    if (!rank || *rank < 0 || !streams) return wrong_part(part);
    choice.of_ranks_[*rank] = *streams;
    if (comma == std::string_view::npos) return choice;
    left.remove_prefix(comma + 1);
  }
}

bool StreamChoice::has(int local_rank, Stream stream) const {
  const auto own = of_ranks_.find(local_rank);
  const std::uint8_t streams = own == of_ranks_.end() ? of_all_ : own->second;
  return (streams & static_cast<std::uint8_t>(stream)) != 0;
}

}  // namespace muster::launch
