#include "core/name_spaces.h"

#include <utility>

namespace muster::core {

NameSpace* NameSpaces::find_or_make(const std::string& name) {
  const auto found = name_spaces_.find(name);
  if (found != name_spaces_.end()) return found->second.get();
  if (name_spaces_.size() >= services_.options().name_spaces_max) return nullptr;
  auto made = std::make_unique<NameSpace>(name, services_, services_.quota());
  return name_spaces_.emplace(name, std::move(made)).first->second.get();
}

void NameSpaces::session_gone(NameSpace& name_space) {
  if (--name_space.sessions != 0 || name_space.watched) return;
  watched_.push_back(&name_space);
  name_space.watched = true;
}

/// Are its keys gone by now, and the replies that were on their way?
void NameSpaces::delete_one_unused() {
  if (watched_.empty()) return;
  NameSpace& name_space = *watched_.front();
  watched_.pop_front();
  if (name_space.sessions != 0) {
    name_space.watched = false;
    return;
  }
  Counts counts;
  name_space.table.add_counts(counts);
  name_space.groups.add_counts(counts);
  if (counts.keys + counts.groups == 0 && name_space.quota.used_bytes() == 0) {
    name_spaces_.erase(name_spaces_.find(name_space.name));
    return;
  }
  watched_.push_back(&name_space);
}

void NameSpaces::add_counts(Counts& counts) const {
  for (const auto& [name, name_space] : name_spaces_) {
    name_space->table.add_counts(counts);
    name_space->groups.add_counts(counts);
  }
}

}  // namespace muster::core
