#include <algorithm>
#include <array>
#include <cstdint>

#include "json/documents.h"
#include "json/fields.h"

// The settings of a server.

namespace muster::json {
namespace {

std::string_view kind_name(SettingKind kind) {
  switch (kind) {
    case SettingKind::number: return "number";
    case SettingKind::bytes: return "bytes";
    case SettingKind::duration: return "duration";
    case SettingKind::level: return "level";
  }
  return "unknown";
}

std::string_view level_name(std::uint64_t level) {
  constexpr std::array<std::string_view, 5> names = {"debug", "info", "warning", "error", "silent"};
  return names[std::min<std::uint64_t>(level, names.size() - 1)];
}

}  // namespace

Json json_of_value(SettingKind kind, std::uint64_t value) {
  if (kind == SettingKind::level) return level_name(value);
  if (kind == SettingKind::duration) {
    return seconds_of(Duration(static_cast<Duration::rep>(value)));
  }
  return value;
}

Json json_of(const SettingInfo& setting) {
  const bool changes = setting.fixed_because.empty();
  Json json = {{"name", setting.name},
               {"kind", kind_name(setting.kind)},
               {"value", json_of_value(setting.kind, setting.value)}};
  if (setting.kind == SettingKind::duration) json["unit"] = "s";
  if (setting.kind == SettingKind::bytes) json["unit"] = "bytes";
  json["changes"] = changes;
  if (changes) {
    json["least"] = json_of_value(setting.kind, setting.least);
    json["most"] = json_of_value(setting.kind, setting.most);
  }
  if (setting.used) json["used"] = *setting.used;
  if (!changes) json["fixed_because"] = setting.fixed_because;
  return json;
}

}  // namespace muster::json
