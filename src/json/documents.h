#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "json/fields.h"
#include "muster/error.h"
#include "muster/inspect.h"
#include "muster/operate.h"
#include "muster/process_group_options.h"
#include "muster/setting.h"
#include "muster/store_options.h"
#include "muster/types.h"

// What Muster tells, as documents in JSON: those of `musterctl --json`, of the C library's errors
// and of its `muster_inspect`. docs/c.md lists their fields. A field may be added; none is renamed.

namespace muster::json {

/// All of its fields that say something, the ranks that it tells of in full, the numbers of all at
/// fault, and its message.
Json json_of(const Error& error);

Json json_of(const MemberInfo& member);
Json json_of(const KeyInfo& info);
Json json_of(const SessionInfo& session);
Json json_of(const GroupInfo& group);
Json json_of(const WaiterInfo& waiter);
Json json_of(const NamespaceInfo& info);
Json json_of(const WhoAmI& self);

Json json_of(const SettingInfo& setting);
/// Of a duration the seconds, of a level its name.
Json json_of_value(SettingKind kind, std::uint64_t value);

/// hung_for  as of `hangs`, in json/why.h
Json json_of(const GroupReport& report, Duration hung_for);

Json json_of(const GroupEvent& entry);
/// `events`, and what is not known any more.
Json json_of(const History& history);

/// An object of names and values, of `Store::status`.
Json json_of_status(const std::vector<std::pair<std::string, std::string>>& status);

/// A list of one document for each.
template <class T>
Json list_of(const std::vector<T>& all) {
  Json list = Json::array();
  for (const T& each : all) list.push_back(json_of(each));
  return list;
}

}  // namespace muster::json
