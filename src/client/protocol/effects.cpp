#include "client/protocol/effects.h"

#include <algorithm>
#include <variant>

namespace muster::client::protocol {
namespace {

/// Frames are put together until they are so many: more would be moved more often than sent.
constexpr std::size_t joined_bytes_max = 16 * 1024;
constexpr std::size_t spare_bytes_max = 64 * 1024;

bool has_less_room(const std::string& a, const std::string& b) {
  return a.capacity() < b.capacity();
}

}  // namespace

std::string& Effects::outgoing() {
  std::string& bytes = behind_the_last();
  if (!first_.empty()) bytes += std::exchange(first_, {});
  return bytes;
}

std::string& Effects::behind_the_last() {
  if (!effects_.empty()) {
    auto* const last = std::get_if<Transmit>(&effects_.back());
    const bool is_joined =
        last != nullptr && !last->of_attempt && last->bytes.size() < joined_bytes_max;
    if (is_joined) return last->bytes;
  }
  const auto most = std::max_element(spare_bytes_.begin(), spare_bytes_.end(), has_less_room);
  add(Transmit{std::exchange(*most, {})});
  std::string& bytes = std::get<Transmit>(effects_.back()).bytes;
  bytes.clear();
  return bytes;
}

std::vector<Effect> Effects::take(std::vector<Effect> spare) {
  spare.clear();
  return std::exchange(effects_, std::move(spare));
}

std::optional<Transmit> Effects::take_transmit() {
  if (effects_.size() != 1) return std::nullopt;
  const auto* const transmit = std::get_if<Transmit>(&effects_[0]);
  if (transmit == nullptr || transmit->of_attempt) return std::nullopt;
  Transmit only = std::get<Transmit>(std::move(effects_[0]));
  effects_.clear();
  return only;
}

void Effects::give_spare(std::string bytes) {
  if (bytes.capacity() > spare_bytes_max) return;
  const auto least = std::min_element(spare_bytes_.begin(), spare_bytes_.end(), has_less_room);
  if (has_less_room(*least, bytes)) *least = std::move(bytes);
}

}  // namespace muster::client::protocol
