#include "client/protocol/receipts.h"

#include <utility>

#include "wire/request.h"

namespace muster::client::protocol {

void Receipts::acknowledge(std::uint64_t id) { add(to_acknowledge_, id); }

void Receipts::abandon(std::uint64_t id) { add(to_abandon_, id); }

void Receipts::add(Ids& ids, std::uint64_t id) {
  auto node = spare_ids_.take();
  bool is_new = false;
  if (node.empty()) {
    is_new = ids_.insert(id).second;
  } else {
    node.value() = id;
    is_new = ids_.insert(std::move(node)).inserted;
  }
  if (is_new) ids.push_back(id);
}

const std::vector<std::uint64_t>& Receipts::take(Ids& ids, std::uint64_t serial, bool abandons) {
  taken_.clear();
  while (!ids.empty() && taken_.size() < wire::ids_per_frame_max) {
    taken_.push_back(ids.front());
    unproven_.push_back({serial, ids.front(), abandons});
    ids.pop_front();
  }
  return taken_;
}

const std::vector<std::uint64_t>& Receipts::take_acknowledgements(std::uint64_t serial) {
  return take(to_acknowledge_, serial, false);
}

const std::vector<std::uint64_t>& Receipts::take_abandons(std::uint64_t serial) {
  return take(to_abandon_, serial, true);
}

void Receipts::confirm(std::uint64_t serial) {
  while (!unproven_.empty() && unproven_.front().serial <= serial) {
    spare_ids_.keep(ids_.extract(unproven_.front().id));
    unproven_.pop_front();
  }
}

/// What was told, and may not have arrived, is told again before what was not.
void Receipts::connection_lost() {
  Ids acknowledge;
  Ids abandon;
  for (; !unproven_.empty(); unproven_.pop_front()) {
    const Sent& told = unproven_.front();
    (told.abandons ? abandon : acknowledge).push_back(told.id);
  }
  for (; !to_acknowledge_.empty(); to_acknowledge_.pop_front()) {
    acknowledge.push_back(to_acknowledge_.front());
  }
  for (; !to_abandon_.empty(); to_abandon_.pop_front()) abandon.push_back(to_abandon_.front());
  to_acknowledge_ = std::move(acknowledge);
  to_abandon_ = std::move(abandon);
}

void Receipts::clear() {
  to_acknowledge_.clear();
  to_abandon_.clear();
  unproven_.clear();
  ids_.clear();
}

}  // namespace muster::client::protocol
