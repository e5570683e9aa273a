#include "server/work_scheduler.h"

#include <algorithm>
#include <utility>

namespace muster::server {
namespace {

/// What all who wait may have sent, together and without being handled: memory is not for that.
constexpr std::size_t waiting_bytes_max = 16U << 20;
constexpr std::size_t read_bytes_min = 2 * 1024;
constexpr std::size_t read_bytes_max = 64 * 1024;

/// Of each unit so many are looked at in a turn that have done too much in earlier ones.
constexpr int debtors_per_turn = 16;

/// To look at somebody whose turn it is, and to read from it.
constexpr std::uint64_t work_of_a_turn = 8;

}  // namespace

/// A unit that has gone and come again may be taken for the last one: then a turn is longer once.
void WorkScheduler::note(const Unit& unit) {
  if (last_unit_ != nullptr && last_unit_ != &unit) {
    shared_until_turn_ = world_.turn() + limits_.turn.shared_turns;
  }
  last_unit_ = &unit;
}

void WorkScheduler::spend(Peer& peer, std::uint64_t work) {
  note(*peer.unit);
  all_.spend(work);
  peer.unit->work.spend(work);
  peer.work.budget.spend(work);
}

bool WorkScheduler::may_work(Peer& peer) {
  return left(peer) > 0 && left(*peer.unit) > 0 && left() > 0;
}

bool WorkScheduler::is_behind_others(const Peer& peer) {
  if (units_.empty()) return false;
  if (!peer.unit->waiting.empty()) return true;
  return left() <= part_of(limits_.turn.work_per_turn) / 2;
}

std::size_t WorkScheduler::readable_bytes(Peer& peer) {
  const bool has_turn = std::exchange(peer.work.has_turn, false);
  if (!has_turn && (is_behind_others(peer) || !may_work(peer))) {
    wait(peer);
    return 0;
  }
  return std::clamp(waiting_bytes_max / (counts_.waiting + 1), read_bytes_min, read_bytes_max);
}

void WorkScheduler::wait(Peer& peer) {
  if (peer.work.in_unit.linked()) return;
  Unit& unit = *peer.unit;
  if (unit.waiting.empty()) {
    units_.append(unit.in_turn);
    ++units_count_;
  }
  unit.waiting.append(peer.work.in_unit);
  ++counts_.waiting;
  world_.wake_soon();
}

Peer* WorkScheduler::take_next() {
  for (std::size_t count = units_count_; count > 0 && left() > 0; --count) {
    Unit& unit = units_.first();
    units_.append(unit.in_turn);
    Peer* const peer = take_next_of(unit);
    if (peer == nullptr) continue;
    forget(*peer);
    all_.spend(work_of_a_turn);
    unit.work.spend(work_of_a_turn);
    return peer;
  }
  return nullptr;
}

Peer* WorkScheduler::take_next_of(Unit& unit) {
  for (int count = 0; count < debtors_per_turn && left(unit) > 0; ++count) {
    Peer& peer = unit.waiting.first();
    if (left(peer) > 0) return &peer;
    unit.waiting.append(peer.work.in_unit);
  }
  return nullptr;
}

void WorkScheduler::forget(Peer& peer) {
  if (!peer.work.in_unit.linked()) return;
  peer.work.in_unit.leave();
  --counts_.waiting;
  Unit& unit = *peer.unit;
  if (!unit.waiting.empty()) return;
  unit.in_turn.leave();
  --units_count_;
}

}  // namespace muster::server
