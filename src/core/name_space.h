#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/groups/groups.h"
#include "core/keys/table.h"
#include "core/memory/chain.h"
#include "core/memory/payload.h"
#include "core/session/accounts.h"
#include "core/session/waiting.h"

namespace muster::core {

/// The processes that use a namespace together, from the first one to the last; see
/// core/name_spaces.cpp.
struct Run {
  std::string name;             ///< empty: no process has named it
  std::uint32_t sessions = 0;   ///< without those of observers
  std::uint32_t connected = 0;  ///< of these
};

/// One namespace: its quota, its keys, its groups. Made with its first session, deleted when no
/// session is left and nothing is in it.
struct NameSpace {
  NameSpace(std::string its_name, Unit* its_maker, EngineServices& services,
            WaitingNames& waiting_names, History& history)
      : name(std::move(its_name)),
        maker(its_maker),
        quota(services.options().namespace_memory_bytes_max, &services.memory().all),
        accounts(quota),
        waiting(waiting_names, name),
        table(services, accounts),
        groups(services, accounts, {history, name}) {}

  /// Whether nobody would miss it.
  bool is_empty() const { return sessions == 0 && table.is_empty() && groups.is_empty(); }

  std::string name;
  Unit* maker;  ///< for which it counts; null: none, as of the default one
  Quota quota;
  Accounts accounts;
  WaitingSessions waiting;
  std::map<std::uint64_t, Session*> sessions_by_id;
  Table table;
  Groups groups;
  std::uint32_t sessions = 0;
  Instant idle_since{};  ///< the end of its last session, if it has none
  /// The longest that a session has asked for, in place of `NameSpaceLimits::idle_lifetime`.
  std::optional<Duration> idle_lifetime;
  Run run;
  ChainLink<NameSpace> among_idle{*this};  ///< it is looked at now and then whether it is over
};

}  // namespace muster::core
