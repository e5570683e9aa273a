#pragma once

#include <cstdint>
#include <string>

#include "core/groups/groups.h"
#include "core/keys/table.h"
#include "core/memory/payload.h"

namespace muster::core {

/// One namespace: its quota, its keys, its groups. Made with its first session, deleted when no
/// session is left and nothing is in it.
struct NameSpace {
  NameSpace(std::string its_name, EngineServices& services, Quota& server)
      : name(std::move(its_name)),
        quota(services.options().namespace_memory_bytes_max, &server),
        table(services, quota),
        groups(services, quota) {}

  std::string name;
  Quota quota;
  Table table;
  Groups groups;
  std::uint32_t sessions = 0;
  bool watched = false;  ///< the engine looks now and then whether it can be deleted
};

}  // namespace muster::core
