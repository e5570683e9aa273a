#include "core/name_spaces.h"

#include <algorithm>
#include <utility>

#include "core/session/failure.h"

// Life of a namespace: made with its first session -> idle: the last one has gone -> over: nothing
// is in it, and nothing of it is on its way. Or it is dropped with its keys, by an operator or
// because it has been idle for too long: then nobody finds it any more, and its keys go in pieces.

namespace muster::core {
namespace {

constexpr std::size_t swept_at_a_time = 16;

}  // namespace

NameSpace* NameSpaces::find(const std::string& name) const {
  const auto found = name_spaces_.find(name);
  return found == name_spaces_.end() ? nullptr : found->second.get();
}

std::optional<Error> NameSpaces::refusal_to_make(const std::string& name, const Unit& unit) {
  if (name.empty()) return std::nullopt;  // the default one has a place of its own
  const Options& options = services_.options();
  if (unit.name_spaces_count >= options.name_spaces_per_unit_max) {
    return full(unit.name + " has made namespaces_per_address_max namespaces that are in use",
                unit.name_spaces_count, options.name_spaces_per_unit_max);
  }
  const std::size_t count = name_spaces_.size() - name_spaces_.count({});
  if (count < options.name_spaces_max) return std::nullopt;
  return full("the server is full: it has reached its namespaces_max", count,
              options.name_spaces_max);
}

NameSpace& NameSpaces::make(const std::string& name, Unit& unit) {
  auto made = std::make_unique<NameSpace>(name, unit, services_, waiting_names_);
  return *name_spaces_.emplace(name, std::move(made)).first->second;
}

void NameSpaces::session_gone(NameSpace& name_space, Account& account) {
  name_space.accounts.drop_if_over(units_, account);
  if (--name_space.sessions != 0) return;
  name_space.idle_since = services_.now();
  if (drop_if_over(name_space) || name_space.is_idle) return;
  idle_.push_back(name_space.name);
  name_space.is_idle = true;
}

void NameSpaces::sweep() {
  for (std::size_t count = std::min(idle_.size(), swept_at_a_time); count > 0; --count) {
    const std::string name = std::move(idle_.front());
    idle_.pop_front();
    NameSpace* const name_space = find(name);
    if (name_space == nullptr || !name_space->is_idle) continue;
    name_space->is_idle = name_space->sessions == 0;
    if (!name_space->is_idle || drop_if_over(*name_space)) continue;
    const Duration lifetime = services_.options().name_space_idle_lifetime;
    if (lifetime > Duration::zero() && services_.now() - name_space->idle_since >= lifetime) {
      drop(*name_space);
    } else {
      idle_.push_back(name);
    }
  }
  for (std::size_t count = std::min(dropped_.size(), swept_at_a_time); count > 0; --count) {
    std::unique_ptr<NameSpace> name_space = std::move(dropped_.front());
    dropped_.pop_front();
    if (!is_over(*name_space)) {
      dropped_.push_back(std::move(name_space));
      continue;
    }
    Unit& maker = name_space->maker;
    name_space.reset();
    units_.drop_if_over(maker);
  }
}

bool NameSpaces::is_over(NameSpace& name_space) {
  if (!name_space.is_empty()) return false;
  name_space.accounts.sweep(units_, Accounts::count_max);
  return name_space.accounts.size() == 0 && name_space.quota.used_bytes() == 0;
}

bool NameSpaces::drop_if_over(NameSpace& name_space) {
  if (!is_over(name_space)) return false;
  Unit& maker = name_space.maker;
  name_spaces_.erase(name_spaces_.find(name_space.name));
  units_.drop_if_over(maker);
  return true;
}

void NameSpaces::drop(NameSpace& name_space) {
  const auto found = name_spaces_.find(name_space.name);
  dropped_.push_back(std::move(found->second));
  name_spaces_.erase(found);
  name_space.table.remove_all();
}

void NameSpaces::clear() {
  dropped_.clear();
  name_spaces_.clear();
}

}  // namespace muster::core
