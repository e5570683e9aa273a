#include "registry.h"

#include <memory>

namespace muster::sim {
namespace {

using auth::Rights;
using wire::Right;

Registry::Grant grant_of(const char* tenant, const char* name, const char* patterns,
                         Rights rights) {
  auth::Grant grant;
  grant.identity = {tenant, name};
  grant.namespaces = *auth::NamespacePatterns::read(patterns);
  grant.rights = rights;
  return std::make_shared<const auth::Grant>(std::move(grant));
}

Rights rights_of_job() {
  Rights rights;
  for (const Right right : Rights::of_job) rights.add(right);
  return rights;
}

Rights some_rights(Random& random) {
  Rights rights;
  for (const Right right : Rights::of_job) {
    if (!random.one_in(3)) rights.add(right);
  }
  return rights;
}

Registry::Grant stranger(const char* name, Rights rights) {
  return grant_of("other", name, "\"\"", rights);
}

}  // namespace

Registry::Registry(bool is_used) : is_used_(is_used) {
  for (const Line line : {Line::worker, Line::other_worker}) restore(line);
  at(Line::observer) =
      grant_of("team", "observer", "*", {Right::read, Right::write, Right::observe});
  at(Line::one_stranger) = stranger("one", rights_of_job());
  at(Line::other_stranger) = stranger("two", {Right::read});
  at(Line::caretaker) = grant_of("team", "caretaker", "*", rights_of_job());
  at(Line::impostor) = grant_of("other", "impostor", "*", {Right::admin});
  nobody_ = grant_of("other", "nobody", "nowhere", {});
}

Registry::Grant Registry::of(std::uint64_t client) const {
  if (!is_used_) return nullptr;
  if (client == 0) return grants_[static_cast<std::size_t>(Line::impostor)];
  const auto found = lines_.find(client);
  const Line line = found == lines_.end() ? Line::caretaker : found->second;
  const Grant& grant = grants_[static_cast<std::size_t>(line)];
  return grant != nullptr ? grant : nobody_;
}

core::Regrant Registry::revoke(Line line, Instant until) {
  revoked_until_[line] = until;
  return core::Regrant{{{std::exchange(at(line), nullptr), nullptr}}};
}

void Registry::restore(Line line) {
  const char* const name = line == Line::worker ? "worker" : "other_worker";
  at(line) = grant_of("team", name, "*", rights_of_job());
}

bool Registry::has(std::uint64_t client, Line line) const {
  const auto found = lines_.find(client);
  return found != lines_.end() && found->second == line;
}

std::optional<Instant> Registry::revoked_until(std::uint64_t client) const {
  for (const auto& [line, until] : revoked_until_) {
    if (has(client, line)) return until;
  }
  return {};
}

core::Regrant Registry::change(Random& random) {
  const auto changed = [this](Line line, Grant newer) {
    const Grant older = std::exchange(at(line), std::move(newer));
    return core::Regrant{{{older, at(line)}}};
  };
  switch (random.below(5)) {
    case 0:
      if (is_revoked(Line::worker)) return {};
      return changed(Line::worker, std::make_shared<const auth::Grant>(*at(Line::worker)));
    case 1: {
      Rights rights = some_rights(random) & Rights{Right::read, Right::write, Right::observe};
      rights.add(Right::read);
      return changed(Line::observer, grant_of("team", "observer", "*", rights));
    }
    case 2: {
      const bool is_there = at(Line::other_stranger) != nullptr;
      return changed(Line::other_stranger,
                     is_there ? nullptr : stranger("two", some_rights(random)));
    }
    case 3: return changed(Line::other_stranger, stranger("two", some_rights(random)));
    default: return changed(Line::one_stranger, stranger("one", some_rights(random)));
  }
}

}  // namespace muster::sim
