#include <cstddef>
#include <cstdint>
#include <string_view>

#include "json/bytes.h"
#include "json/documents.h"
#include "json/fields.h"
#include "muster/inspect.h"

// What a server lists: members, keys, sessions, groups, waits, namespaces, and its numbers.

namespace muster::json {
namespace {

std::string_view state_name(MemberState state) {
  switch (state) {
    case MemberState::live: return "live";
    case MemberState::silent: return "silent";
    case MemberState::lost: return "lost";
    case MemberState::left: return "left";
    case MemberState::candidate: return "candidate";
    case MemberState::away: return "away";
  }
  return "unknown";
}

/// Numbers as numbers, as far as every reader of JSON has them exactly.
Json status_json(const std::string& name, const std::string& value) {
  constexpr std::size_t digits_max = 15;
  const bool is_text = name == "version" || name == "incarnation" || name == "namespace";
  const bool is_number = !is_text && !value.empty() && value.size() <= digits_max &&
                         value.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? Json(std::stoull(value)) : Json(value);
}

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

Json json_of(const MemberInfo& member) {
  Json json = {{"rank", member.rank}, {"state", state_name(member.state)}};
  add_process(json, member.process);
  json["silence_s"] = seconds_of(member.silence);
  if (!member.info.empty()) add_bytes(json, "info", member.info);
  if (member.previous_rank >= 0) json["previous_rank"] = member.previous_rank;
  return json;
}

Json json_of(const KeyInfo& info) {
  Json json;
  add_bytes(json, "key", info.key);
  json["value_bytes"] = info.value_bytes;
  json["bound"] = info.bound;
  json["ttl_s"] = info.ttl ? Json(seconds_of(*info.ttl)) : Json();
  return json;
}

Json json_of(const SessionInfo& session) {
  Json json = {{"session", session.id}};
  add_process(json, session.process);
  json["connected"] = session.connected;
  json["silence_s"] = seconds_of(session.silence);
  json["groups"] = session.groups;
  json["waiting"] = session.waiting;
  json["key_id"] = session.key_id.empty() ? Json() : Json(session.key_id);
  return json;
}

Json json_of(const GroupInfo& group) {
  Json json;
  add_bytes(json, "group", group.name);
  json["state"] = group.epoch == 0 ? "forming" : "formed";
  json["epoch"] = group.epoch;
  json["world_size"] = group.world_size;
  json["live"] = group.live;
  json["candidates"] = group.candidates;
  json["round"] = group.round;
  json["round_age_s"] = seconds_of(group.round_age);
  return json;
}

Json json_of(const WaiterInfo& waiter) {
  Json json = {{"session", waiter.session}};
  add_process(json, waiter.process);
  json["operation"] = waiter.operation;
  add_bytes(json, "target", waiter.target);
  json["age_s"] = seconds_of(waiter.age);
  json["left_s"] = seconds_of(waiter.left);
  return json;
}

Json json_of(const NamespaceInfo& info) {
  Json json;
  add_bytes(json, "namespace", info.name);
  json["keys"] = info.keys;
  json["memory_bytes"] = info.memory_bytes;
  json["groups"] = info.groups;
  json["sessions"] = info.sessions;
  json["made_by"] = or_null(info.made_by);
  json["idle_s"] = info.idle ? Json(seconds_of(*info.idle)) : Json();
  return json;
}

Json json_of(const WhoAmI& self) {
  return {{"identity", or_null(self.identity)},
          {"tenant", or_null(self.tenant)},
          {"namespaces", or_null(self.namespaces)},
          {"not_after", or_null(self.not_after)},
          {"credential_rights", or_null(self.credential_rights)},
          {"rights", self.rights}};
}

Json json_of_status(const std::vector<std::pair<std::string, std::string>>& status) {
  Json json = Json::object();
  for (const auto& [name, value] : status) json[name] = status_json(name, value);
  return json;
}

}  // namespace muster::json
