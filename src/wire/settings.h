#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "muster/setting.h"
#include "wire/fields.h"

// The settings of a server: the requests and the reply that tell of them.

MUSTER_BEGIN_NAMESPACE
constexpr std::uint8_t first_number(SettingKind) { return 0; }
constexpr std::uint8_t last_number(SettingKind) { return 3; }
MUSTER_END_NAMESPACE

namespace muster::wire {

/// The value of a setting that is a level of a log, below which nothing is logged; as this: nothing
/// at all.
inline constexpr std::uint64_t silent_level = 4;

struct GetSettings {
  std::string_view name;  ///< empty: all
};
void fields(auto& codec, Is<GetSettings> auto& m) { codec("name", m.name); }

struct SetSetting {
  std::string_view name;
  std::uint64_t value = 0;  ///< as its kind says
};
void fields(auto& codec, Is<SetSetting> auto& m) {
  codec("name", m.name);
  codec("value", m.value);
}

struct SettingEntry {
  std::string_view name;
  SettingKind kind = SettingKind::number;
  std::uint64_t value = 0;
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  std::optional<std::uint64_t> used;  ///< of what it limits
  std::string_view fixed_because;     ///< empty: it changes at run time
};
template <>
inline constexpr std::size_t item_bytes_min<SettingEntry> = 34;
void fields(auto& codec, Is<SettingEntry> auto& m) {
  codec("name", m.name);
  codec("kind", m.kind);
  codec("value", m.value);
  codec("least", m.least);
  codec("most", m.most);
  codec("used", m.used);
  codec("fixed_because", m.fixed_because);
}

struct SettingsReply {
  std::vector<SettingEntry> settings;
};
void fields(auto& codec, Is<SettingsReply> auto& m) { codec("settings", m.settings); }

}  // namespace muster::wire
