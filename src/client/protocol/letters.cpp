#include "client/protocol/letters.h"

#include <algorithm>

#include "base/planted.h"
#include "wire/request.h"

namespace muster::client::protocol {

void Letters::acknowledge(std::uint64_t id) {
  if (ids_.insert(id).second) to_acknowledge_.push_back(id);
}

void Letters::abandon(std::uint64_t id) {
  if (ids_.insert(id).second) to_abandon_.push_back(id);
}

std::vector<std::uint64_t> Letters::take(Ids& ids, std::uint64_t serial, bool abandons) {
  const auto count = std::min<std::size_t>(ids.size(), wire::ids_per_frame_max);
  const auto end = ids.begin() + static_cast<Ids::difference_type>(count);
  std::vector<std::uint64_t> taken(ids.begin(), end);
  ids.erase(ids.begin(), end);
  for (const std::uint64_t id : taken) unproven_.push_back({serial, id, abandons});
  return taken;
}

std::vector<std::uint64_t> Letters::take_acknowledgements(std::uint64_t serial) {
  return take(to_acknowledge_, serial, false);
}

std::vector<std::uint64_t> Letters::take_abandons(std::uint64_t serial) {
  return take(to_abandon_, serial, true);
}

void Letters::confirm(std::uint64_t serial) {
  while (!unproven_.empty() && unproven_.front().serial <= serial) {
    ids_.erase(unproven_.front().id);
    unproven_.pop_front();
  }
}

void Letters::connection_lost() {
  if (MUSTER_PLANTED(confirmation_lost)) unproven_.clear();
  while (!unproven_.empty()) {
    const Sent& last = unproven_.back();
    (last.abandons ? to_abandon_ : to_acknowledge_).push_front(last.id);
    unproven_.pop_back();
  }
}

void Letters::clear() {
  to_acknowledge_.clear();
  to_abandon_.clear();
  unproven_.clear();
  ids_.clear();
}

}  // namespace muster::client::protocol
