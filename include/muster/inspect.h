#pragma once

// For operators and their tools: the namespaces, sessions, groups and waits of a server, as
// `musterctl` lists them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/config.h"
#include "muster/inspected.h"
#include "muster/result.h"
#include "muster/store.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// Whom the server takes a store for.
struct WhoAmI {
  /// "TENANT/NAME", or "NAME", which is its own tenant; empty: the server asks nobody who he is.
  std::string identity;
  std::string tenant;      ///< to which its groups belong
  std::string namespaces;  ///< that its credential allows, as the server's file says it
  std::string not_after;   ///< no session begins later (UTC); empty: no end
  /// What its credential grants, in any role: names by commas, as in the server's file.
  std::string credential_rights;
  std::string rights;  ///< what this store may: those that its role has, too
};

// All of these calls but those of all namespaces and of oneself inspect the store's own namespace.
// The server answers them at once.
//
// errors   those of a store
// threads  as blocking calls of a store
// cost     one round trip per page of 4,096 entries, and one for the end

MUSTER_API Result<std::vector<SessionInfo>> inspect_sessions(Store& store,
                                                             Duration timeout = default_timeout);
MUSTER_API Result<std::vector<GroupInfo>> inspect_groups(Store& store,
                                                         Duration timeout = default_timeout);
MUSTER_API Result<std::vector<WaiterInfo>> inspect_waiters(Store& store,
                                                           Duration timeout = default_timeout);

/// errors  also not_found (no such group)
/// cost    one round trip
MUSTER_API Result<GroupReport> inspect_group(Store& store, std::string_view name,
                                             Duration timeout = default_timeout);

/// Lists the objects that groups hold, in streams and in rounds, as keys are listed.
///
/// prefix   beginning of their paths, which are such as "group/tp0/epoch/7/stream/0-1/tag/99/3" or
///          "group/tp0/epoch/7/round/12/rank/0"; empty: all
/// returns  the objects in no order; `ttl`: the time left until the group's data expiration
/// cost     one round trip per page of at most 4,096 objects
MUSTER_API Result<std::vector<KeyInfo>> inspect_objects(Store& store, std::string_view prefix = {},
                                                        Duration timeout = default_timeout);

/// Lists all namespaces of the server, by name. `Store::drop_namespace` removes one.
MUSTER_API Result<std::vector<NamespaceInfo>> inspect_namespaces(
    Store& store, Duration timeout = default_timeout);

/// Tells what has happened to the groups of the store's own namespace, or to one of them, also to
/// those that are over. The server remembers 128 events of a group at most, and 4 MiB in all (less
/// where its memory limit is below 256 MiB); a restart forgets them.
///
/// group    empty: all that the store may see
/// after    only what has a later `serial`
/// errors   those of a store
/// threads  as blocking calls of a store
/// cost     one round trip per page of some 64 KiB, and one for the end
MUSTER_API Result<History> inspect_history(Store& store, std::string_view group = {},
                                           std::uint64_t after = 0,
                                           Duration timeout = default_timeout);

/// Tells whom the server takes this store for, and what it may. Every store may ask.
///
/// cost  one round trip
MUSTER_API Result<WhoAmI> whoami(Store& store, Duration timeout = default_timeout);

MUSTER_END_NAMESPACE
