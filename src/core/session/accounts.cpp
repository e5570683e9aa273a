#include "core/session/accounts.h"

#include <algorithm>

namespace muster::core {

Account& Accounts::find_or_make(Unit& unit) {
  if (const auto found = by_unit_.find(&unit); found != by_unit_.end()) return *found->second;
  if (free_places_.empty() && places_.size() == count_max) return *places_.back();
  if (free_places_.empty()) {
    free_places_.push_back(static_cast<std::uint16_t>(places_.size()));
    places_.emplace_back();
  }
  const std::uint16_t index = free_places_.back();
  auto made = std::make_unique<Account>(index, unit, name_space_);
  Account& account = *by_unit_.emplace(&unit, made.get()).first->second;
  free_places_.pop_back();
  places_[index] = std::move(made);
  return account;
}

void Accounts::sweep(Units& units, std::size_t count) {
  for (count = std::min(count, places_.size()); count > 0; --count) {
    swept_ = (swept_ + 1) % places_.size();
    Account* const account = places_[swept_].get();
    if (account != nullptr) drop_if_over(units, *account);
  }
}

void Accounts::drop_if_over(Units& units, Account& account) {
  if (!account.is_over()) return;
  Unit& unit = account.unit;
  const std::uint16_t index = account.index;
  by_unit_.erase(&unit);
  free_places_.push_back(index);
  places_[index].reset();
  units.drop_if_over(unit);
}

Unit& Units::find_or_make(const std::string& name) {
  const auto found = units_.find(name);
  if (found != units_.end()) return *found->second;
  return *units_.emplace(name, std::make_unique<Unit>(name, server_)).first->second;
}

/// The last chain is never empty.
void Units::count_sessions(Unit& unit, std::uint32_t count) {
  if (by_sessions_.size() <= count) by_sessions_.resize(count + 1);
  unit.sessions_count = count;
  unit.place.leave();
  if (count > 0) by_sessions_[count].append(unit.place);
  while (!by_sessions_.empty() && by_sessions_.back().empty()) by_sessions_.pop_back();
}

Unit& Units::fullest() { return by_sessions_.back().first(); }

void Units::drop_if_over(Unit& unit) {
  if (unit.is_over()) units_.erase(units_.find(unit.name));
}

}  // namespace muster::core
