#include "server/door/handshakes.h"

#include <algorithm>

namespace muster::server {
namespace {

constexpr int prices_at_once = 200;

/// What a failure costs a unit, which may owe so many.
constexpr Duration penalty = std::chrono::milliseconds(2);
constexpr int penalties_at_once = 16;

/// How long a handshake may be under way while others wait for its place.
constexpr Duration time_while_full = std::chrono::milliseconds(500);

/// So many units are looked at that have to wait.
constexpr int units_per_turn = 16;

bool may_owe(base::Instant paid_until, base::Instant now, Duration at_most) {
  return paid_until - now <= at_most;
}

}  // namespace

void Handshakes::add(Newcomer& newcomer) {
  newcomer.stage = Newcomer::Stage::at_door;
  Unit& unit = *newcomer.unit;
  if (unit.at_door.empty()) {
    units_.append(unit.in_door_turn);
    ++units_count_;
  }
  unit.at_door.append(newcomer.by_tls->in_door);
}

void Handshakes::leave(Newcomer& newcomer) {
  if (newcomer.by_tls == nullptr || !newcomer.by_tls->in_door.linked()) return;
  newcomer.by_tls->in_door.leave();
  Unit& unit = *newcomer.unit;
  if (newcomer.stage != Newcomer::Stage::at_door) {
    --under_way_count_;
    --unit.handshakes_count;
  } else if (unit.at_door.empty()) {
    unit.in_door_turn.leave();
    --units_count_;
  }
}

Newcomer* Handshakes::take_next(base::Instant now) {
  if (under_way_count_ >= under_way_max) return nullptr;
  if (!may_owe(paid_until_, now, price * prices_at_once)) return nullptr;
  const auto looks = std::min<std::size_t>(units_count_, units_per_turn);
  for (std::size_t look = 0; look < looks; ++look) {
    Unit& unit = units_.first();
    units_.append(unit.in_door_turn);
    if (!may_owe(unit.penalties_until, now, penalty * penalties_at_once)) continue;
    Newcomer& newcomer = unit.at_door.first();
    leave(newcomer);
    newcomer.stage = Newcomer::Stage::handshake;
    newcomer.by_tls->since = now;
    under_way_.append(newcomer.by_tls->in_door);
    ++under_way_count_;
    ++unit.handshakes_count;
    paid_until_ = std::max(paid_until_, now) + price;
    return &newcomer;
  }
  return nullptr;
}

void Handshakes::succeeded(Newcomer& newcomer) {
  newcomer.stage = Newcomer::Stage::hello;
  paid_until_ -= price;
}

void Handshakes::failed(Newcomer& newcomer, base::Instant now) {
  base::Instant& until = newcomer.unit->penalties_until;
  until = std::max(until, now) + penalty;
}

Newcomer* Handshakes::overdue(base::Instant now) const {
  if (units_.empty() || under_way_count_ < under_way_max) return nullptr;
  std::size_t most = 0;
  Newcomer* first = nullptr;
  for (Newcomer& each : under_way_) {
    if (each.unit->handshakes_count <= most) continue;
    most = each.unit->handshakes_count;
    first = &each;
  }
  return now - first->by_tls->since >= time_while_full ? first : nullptr;
}

}  // namespace muster::server
