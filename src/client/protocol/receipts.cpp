#include "client/protocol/receipts.h"

#include <utility>

#include "wire/request.h"

namespace muster::client::protocol {

void Receipts::acknowledge(std::uint64_t id) {
  if (insert(id)) to_acknowledge_.push_back(id);
}

void Receipts::abandon(std::uint64_t id) {
  if (insert(id)) to_abandon_.push_back(id);
}

void Receipts::hold(std::uint64_t id) {
  if (insert(id)) ++held_count_;
}

// Nothing is held of a session that is over.

void Receipts::acknowledge_held(std::uint64_t id) {
  if (!has(id)) return;
  --held_count_;
  to_acknowledge_.push_back(id);
}

void Receipts::abandon_held(std::uint64_t id) {
  if (!has(id)) return;
  --held_count_;
  to_abandon_.push_back(id);
}

bool Receipts::insert(std::uint64_t id) {
  auto node = spare_ids_.take();
  if (node.empty()) return ids_.insert(id).second;
  node.value() = id;
  return ids_.insert(std::move(node)).inserted;
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
  held_count_ = 0;
}

}  // namespace muster::client::protocol
