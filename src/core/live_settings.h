#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/events.h"
#include "core/name_spaces.h"
#include "core/sessions.h"
#include "wire/settings.h"

namespace muster::core {

/// The settings by their names, for operators: what each is, and which change while the server
/// runs. Those of the rim, too: the engine has their values, and an effect says when one changes.
class LiveSettings {
 public:
  LiveSettings(EngineServices& services, NameSpaces& name_spaces, const Sessions& sessions)
      : services_(services), name_spaces_(name_spaces), sessions_(sessions) {}
  LiveSettings(const LiveSettings&) = delete;
  LiveSettings& operator=(const LiveSettings&) = delete;

  // Requests.
  void tell(const RequestContext& context, const wire::GetSettings& request) const;
  void change(const RequestContext& context, const wire::SetSetting& request);

  /// The same for whoever has started the server. What cannot change is told in the log.
  void configure(const Configure& event);

 private:
  struct Known;
  static const Known* find(std::string_view name);
  wire::SettingEntry entry_of(const Known& known) const;
  std::optional<Error> refusal(const Known& known, std::uint64_t value) const;
  void change(const Known& known, std::uint64_t value, const std::string& who,
              const std::string& unit);

  // What else changes with the value of a setting.
  void change_memory(std::uint64_t bytes_max);
  void change_memory_of_name_spaces(std::uint64_t bytes_max);
  void change_log_level(std::uint64_t level);

  EngineServices& services_;
  NameSpaces& name_spaces_;
  const Sessions& sessions_;
};

}  // namespace muster::core
