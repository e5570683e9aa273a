#include "view_json.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "json/bytes.h"
#include "json/documents.h"
#include "json/texts.h"
#include "muster/log.h"

namespace musterd {
namespace {

using muster::GroupCondition;
using muster::GroupView;
using muster::RankCondition;
using muster::RankRange;
using muster::json::text_of;

constexpr std::size_t called_bytes_max = 64;

std::string_view name_of(GroupCondition state) {
  switch (state) {
    case GroupCondition::forming: return "forming";
    case GroupCondition::working: return "working";
    case GroupCondition::waiting: return "waiting";
    case GroupCondition::regrouping: return "regrouping";
    case GroupCondition::failed: return "failed";
  }
  return "unknown";
}

std::string_view name_of(RankCondition state) {
  switch (state) {
    case RankCondition::live: return "live";
    case RankCondition::waiting: return "waiting";
    case RankCondition::missing: return "missing";
    case RankCondition::silent: return "silent";
    case RankCondition::away: return "away";
    case RankCondition::lost: return "lost";
    case RankCondition::left: return "left";
    case RankCondition::absent: return "absent";
  }
  return "unknown";
}

Json ranges_json(const std::vector<RankRange>& ranges) {
  Json json = Json::array();
  for (const RankRange range : ranges) json.push_back({range.first, range.last});
  return json;
}

std::size_t count_of(const std::vector<RankRange>& ranges) {
  std::size_t count = 0;
  for (const RankRange range : ranges)
    count += static_cast<std::size_t>(range.last - range.first) + 1;
  return count;
}

/// "rank 3 (host b7, pid 4711, label pod-3)", "ranks 3, 7-9 (rank 3: host b7, pid 4711)".
std::string ranks_text(const GroupView& group, const std::vector<RankRange>& ranks) {
  constexpr std::size_t named_max = 16;
  std::vector<RankRange> first = ranks;
  if (first.size() > named_max) first.resize(named_max);
  std::string text = text_of(first);
  if (ranks.size() > named_max) text += ", ...";
  if (group.told.empty()) return text;
  const muster::MemberInfo& member = group.told.front();
  const std::string who = text_of(member.process);
  if (count_of(ranks) == 1) return text + " (" + who + ")";
  return text + " (rank " + std::to_string(member.rank) + ": " + who + ")";
}

/// "rank 3 has", "ranks 3, 7-9 have".
std::string have(const GroupView& group, const std::vector<RankRange>& ranks) {
  return ranks_text(group, ranks) + (count_of(ranks) == 1 ? " has" : " have");
}

std::string call_text(const GroupView& group) {
  const std::string call =
      muster::printable(std::string_view(group.call).substr(0, called_bytes_max));
  return group.round == 0 ? call : "round " + std::to_string(group.round) + ", " + call;
}

/// Those in such a state.
std::vector<RankRange> ranks_in(const GroupView& group, RankCondition state) {
  std::vector<RankRange> ranges;
  int next = 0;
  for (const auto& [each, count] : group.ranks) {
    if (each == state) ranges.push_back({next, next + count - 1});
    next += count;
  }
  return ranges;
}

std::string sentence_of_failure(const GroupView& group) {
  const auto lost = ranks_in(group, RankCondition::lost);
  if (!lost.empty())
    return ranks_text(group, lost) + (count_of(lost) == 1 ? " was lost" : " were lost") +
           "; the others have not regrouped";
  if (group.failure) return group.failure->message();
  return "the last round has failed";
}

std::string sentence_of_wait(const GroupView& group) {
  if (group.waits_for.empty()) {
    const auto waiting = ranks_in(group, RankCondition::waiting);
    if (waiting.empty()) return "somebody waits in " + call_text(group);
    return text_of(waiting) + (count_of(waiting) == 1 ? " waits" : " wait") + " in " +
           call_text(group);
  }
  return have(group, group.waits_for) + " not called " + call_text(group);
}

}  // namespace

std::int64_t unix_ms(std::chrono::system_clock::time_point time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::string sentence_of(const GroupView& group) {
  switch (group.state) {
    case GroupCondition::working: return {};
    case GroupCondition::forming:
      return group.waits_for.empty() ? "nobody is there yet"
                                     : have(group, group.waits_for) + " not joined";
    case GroupCondition::regrouping:
      return group.waits_for.empty() ? "all have called regroup"
                                     : have(group, group.waits_for) + " not called regroup";
    case GroupCondition::failed: return sentence_of_failure(group);
    case GroupCondition::waiting: break;
  }
  return sentence_of_wait(group);
}

Json json_of(const GroupView& group) {
  Json json;
  muster::json::add_bytes(json, "namespace", group.name_space);
  muster::json::add_bytes(json, "name", group.name);
  json["epoch"] = group.epoch;
  json["world_size"] = group.world_size;
  json["state"] = name_of(group.state);
  Json ranks = Json::array();
  for (const auto& [state, count] : group.ranks) ranks.push_back({name_of(state), count});
  json["ranks"] = std::move(ranks);
  json["candidates"] = group.candidates;
  json["since"] = unix_ms(group.since);
  const bool is_held_up = group.state == GroupCondition::forming ||
                          group.state == GroupCondition::regrouping ||
                          (group.state == GroupCondition::waiting && !group.waits_for.empty());
  if (is_held_up) json["held_up_since"] = json["since"];
  if (!group.waits_for.empty()) json["waits_for"] = ranges_json(group.waits_for);
  if (!group.waiting.empty()) json["waiting"] = ranges_json(group.waiting);
  if (!group.call.empty()) json["call"] = group.call;
  if (group.round != 0) json["round"] = group.round;
  const std::string why = sentence_of(group);
  if (!why.empty()) json["why"] = why;
  if (group.failure) json["failure"] = muster::json::json_of(*group.failure);
  return json;
}

Json json_of(const muster::WatchedEvent& event, std::chrono::system_clock::time_point now) {
  Json json = muster::json::json_of(event.event);
  const auto age = std::chrono::duration_cast<muster::Duration>(now - event.at);
  json["age_s"] = muster::json::seconds_of(age);
  muster::json::add_bytes(json, "namespace", event.name_space);
  return json;
}

Json json_of(const std::vector<muster::LimitUse>& limits) {
  Json json = Json::array();
  for (const muster::LimitUse& each : limits)
    json.push_back(
        {{"name", each.name}, {"used", each.used}, {"max", each.limit}, {"unit", each.unit}});
  return json;
}

Json json_of(const muster::KeyPrefixes& prefixes) {
  Json list = Json::array();
  for (const muster::KeyPrefix& each : prefixes.prefixes) {
    Json json;
    muster::json::add_bytes(json, "prefix", each.prefix);
    json["count"] = each.keys;
    json["bytes"] = each.value_bytes;
    list.push_back(std::move(json));
  }
  return {{"prefixes", std::move(list)},
          {"others", {{"count", prefixes.other_keys}, {"bytes", prefixes.other_value_bytes}}}};
}

Json json_of_waits(const muster::Overview& overview) {
  Json buckets = Json::array();
  std::uint64_t sum = 0;
  for (const auto& [bound, count] : overview.waits) {
    sum += count;
    Json le_ms;
    if (bound) le_ms = std::chrono::duration_cast<std::chrono::milliseconds>(*bound).count();
    buckets.push_back({{"le_ms", std::move(le_ms)}, {"count", sum}});
  }
  return {{"buckets", std::move(buckets)},
          {"count", sum},
          {"sum_ms",
           std::chrono::duration_cast<std::chrono::milliseconds>(overview.waits_sum).count()}};
}

}  // namespace musterd
