#include <string>

#include "json/bytes.h"
#include "json/documents.h"
#include "json/fields.h"
#include "json/texts.h"
#include "json/why.h"
#include "muster/inspect.h"

// What has happened to groups.

namespace muster::json {
namespace {

bool is_of_ranks(const GroupEvent& entry) {
  return entry.what == GroupEventKind::rank_lost || entry.what == GroupEventKind::rank_left;
}

/// Of what happened several times.
std::string text_of_count(const GroupEvent& entry) {
  if (entry.count == 1) return {};
  const std::string count = std::to_string(entry.count);
  if (is_of_ranks(entry)) return " (" + count + " ranks)";
  const std::string time = entry.lasted > Duration::zero() ? " in " + text_of(entry.lasted) : "";
  return " (" + count + " times" + time + ")";
}

}  // namespace

Json json_of(const GroupEvent& entry) {
  Json json = {{"serial", entry.serial}, {"what", name_of(entry.what)}};
  add_bytes(json, "group", entry.group);
  json["epoch"] = entry.epoch;
  json["world_size"] = entry.world_size;
  json["age_s"] = seconds_of(entry.age);
  json["lasted_s"] = seconds_of(entry.lasted);
  json["count"] = entry.count;
  if (entry.process) add_process(json, *entry.process);
  if (entry.error) json["error"] = json_of(*entry.error);
  return json;
}

Json json_of(const History& history) {
  return {{"events", list_of(history.events)},
          {"forgotten", history.forgotten},
          {"known_for_s", seconds_of(history.known_for)}};
}

std::string explain(const GroupEvent& entry) {
  std::string text(name_of(entry.what));
  if (entry.what == GroupEventKind::formed || entry.what == GroupEventKind::regrouped) {
    text += ", " + std::to_string(entry.world_size) + (entry.world_size == 1 ? " rank" : " ranks");
  }
  text += text_of_count(entry);
  if (entry.process) text += ", " + text_of(*entry.process);
  if (entry.error) text += ": " + entry.error->message();
  return text;
}

}  // namespace muster::json
