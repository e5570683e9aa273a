#include "launch/log_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/failure.h"

namespace muster::launch {

namespace {

constexpr std::array<std::string_view, 7> keys = {
    "rank", "local_rank", "world_size", "local_world_size", "node_rank", "attempt", "role"};

Error wrong_format(std::string_view text, const std::string& why) {
  std::string valid;
  for (const std::string_view key : keys) valid += " {" + std::string(key) + "}";
  return base::failure(ErrorCode::invalid_argument, "\"" + std::string(text) + "\": " + why +
                                                        "; it may have" + valid +
                                                        ", and {{ and }} for braces");
}

}  // namespace

Result<LogFormat> LogFormat::parse(std::string_view text) {
  LogFormat format;
  std::string literal;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter != '{' && letter != '}') {
      literal += letter;
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == letter) {
      literal += letter;
      ++at;
      continue;
    }
    if (letter == '}') return wrong_format(text, "a } without a {");
    const auto end = text.find('}', at);
    if (end == std::string_view::npos) return wrong_format(text, "a { without a }");
    const std::string_view name = text.substr(at + 1, end - at - 1);
    const auto key = std::find(keys.begin(), keys.end(), name);
    if (key == keys.end()) return wrong_format(text, "there is no {" + std::string(name) + "}");
    format.parts_.emplace_back(std::exchange(literal, {}));
    format.parts_.emplace_back(static_cast<Key>(key - keys.begin()));
    at = end;
  }
  format.parts_.emplace_back(std::move(literal));
  return format;
}

std::string LogFormat::name(const LogPlace& place) const {
  const auto value_of = [&place](Key key) {
    switch (key) {
      case Key::rank: return std::to_string(place.rank);
      case Key::local_rank: return std::to_string(place.local_rank);
      case Key::world_size: return std::to_string(place.world_size);
      case Key::local_world_size: return std::to_string(place.local_world_size);
      case Key::node_rank: return std::to_string(place.node_rank);
      case Key::attempt: return std::to_string(place.attempt);
      case Key::role: return place.role;
    }
    return std::string();
  };
  std::string name;
  for (const auto& part : parts_) {
    const auto* const literal = std::get_if<std::string>(&part);
    name += literal != nullptr ? *literal : value_of(std::get<Key>(part));
  }
  return name;
}

}  // namespace muster::launch
