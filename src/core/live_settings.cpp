#include "core/live_settings.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/session/failure.h"
#include "core/session/reply.h"

// A setting is a row of the table below. What changes at run time is read from the options whenever
// it matters, or has a function that carries the change to where its value was copied. A limit
// below what is used takes nothing away: what it limits is refused until less is used.

namespace muster::core {
namespace {

constexpr std::string_view clients_are_told = "clients are told it when they connect";
constexpr std::string_view is_for_frames = "clients are told it, and frames are read by it";
constexpr std::string_view made_at_start = "as many places are made at the start";
constexpr std::string_view read_at_start = "it is read at the start";

constexpr std::uint64_t microseconds_of(Duration duration) {
  return static_cast<std::uint64_t>(duration.count());
}
constexpr std::uint64_t a_year_us = microseconds_of(std::chrono::hours(24 * 365));

std::uint64_t level_of(const Options& options) {
  return options.rim.log_level ? static_cast<std::uint64_t>(*options.rim.log_level)
                               : wire::silent_level;
}

std::string text_of_setting(SettingKind kind, std::uint64_t value) {
  constexpr std::array<const char*, 5> levels = {"debug", "info", "warning", "error", "silent"};
  switch (kind) {
    case SettingKind::duration: return in_seconds(Duration(static_cast<Duration::rep>(value)));
    case SettingKind::level: return levels[std::min<std::uint64_t>(value, wire::silent_level)];
    case SettingKind::number:
    case SettingKind::bytes: break;
  }
  return std::to_string(value);
}

/// As flags of musterd have it; options of a program have other signs between words.
bool is_name(std::string_view name, std::string_view given) {
  return std::equal(name.begin(), name.end(), given.begin(), given.end(), [](char one, char other) {
    return one == other || (one == '-' && other == '_');
  });
}

}  // namespace

struct LiveSettings::Known {
  std::string_view name;
  SettingKind kind;
  std::uint64_t (*value_of)(const Options& options);
  std::string_view fixed_because;  ///< empty: it changes
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  void (*store)(Options& options, std::uint64_t value) = nullptr;
  void (LiveSettings::*follow)(std::uint64_t value) = nullptr;  ///< in place of `store`

  static const std::array<Known, 23> all;
};

#define MUSTER_SETTING_NUMBER(MEMBER) \
  [](const Options& options) { return static_cast<std::uint64_t>(options.MEMBER); }
#define MUSTER_SETTING_TIME(MEMBER) \
  [](const Options& options) { return microseconds_of(options.MEMBER); }
#define MUSTER_SETTING_STORE(MEMBER)                               \
  [](Options& options, std::uint64_t value) {                      \
    options.MEMBER = static_cast<decltype(options.MEMBER)>(value); \
  }

const std::array<LiveSettings::Known, 23> LiveSettings::Known::all = {{
    {"memory-bytes-max",
     SettingKind::bytes,
     MUSTER_SETTING_NUMBER(memory_bytes_max),
     {},
     1U << 20,
     std::uint64_t{1} << 50,
     nullptr,
     &LiveSettings::change_memory},
    {"namespace-memory-bytes-max",
     SettingKind::bytes,
     MUSTER_SETTING_NUMBER(namespace_memory_bytes_max),
     {},
     1,
     std::uint64_t{1} << 50,
     nullptr,
     &LiveSettings::change_memory_of_name_spaces},
    {"connections-max",
     SettingKind::number,
     MUSTER_SETTING_NUMBER(sessions_max),
     {},
     1,
     1U << 20,
     MUSTER_SETTING_STORE(sessions_max)},
    {"parked-waits-max",
     SettingKind::number,
     MUSTER_SETTING_NUMBER(limits.parked_waits_max),
     {},
     1,
     1U << 20,
     MUSTER_SETTING_STORE(limits.parked_waits_max)},
    {"groups-per-namespace-max",
     SettingKind::number,
     MUSTER_SETTING_NUMBER(groups_per_namespace_max),
     {},
     1,
     1U << 24,
     MUSTER_SETTING_STORE(groups_per_namespace_max)},
    {"namespaces-per-address-max",
     SettingKind::number,
     MUSTER_SETTING_NUMBER(name_spaces.per_unit_max),
     {},
     1,
     1U << 20,
     MUSTER_SETTING_STORE(name_spaces.per_unit_max)},
    {"namespace-idle-lifetime",
     SettingKind::duration,
     MUSTER_SETTING_TIME(name_spaces.idle_lifetime),
     {},
     0,
     a_year_us,
     MUSTER_SETTING_STORE(name_spaces.idle_lifetime)},
    {"slow-round-log",
     SettingKind::duration,
     MUSTER_SETTING_TIME(slow_round_log),
     {},
     100'000,
     3'600'000'000,
     MUSTER_SETTING_STORE(slow_round_log)},
    {"log-level",
     SettingKind::level,
     level_of,
     {},
     0,
     wire::silent_level,
     nullptr,
     &LiveSettings::change_log_level},
    {"heartbeat", SettingKind::duration, MUSTER_SETTING_TIME(limits.heartbeat), clients_are_told},
    {"session-timeout", SettingKind::duration, MUSTER_SETTING_TIME(limits.session_timeout),
     clients_are_told},
    {"grace", SettingKind::duration, MUSTER_SETTING_TIME(limits.grace), clients_are_told},
    {"slack", SettingKind::duration, MUSTER_SETTING_TIME(limits.slack), clients_are_told},
    {"key-bytes-max", SettingKind::bytes, MUSTER_SETTING_NUMBER(limits.key_bytes_max),
     is_for_frames},
    {"value-bytes-max", SettingKind::bytes, MUSTER_SETTING_NUMBER(limits.value_bytes_max),
     is_for_frames},
    {"round-bytes-max", SettingKind::bytes, MUSTER_SETTING_NUMBER(limits.round_bytes_max),
     is_for_frames},
    {"keys-per-operation-max", SettingKind::number,
     MUSTER_SETTING_NUMBER(limits.keys_per_operation_max), is_for_frames},
    {"world-size-max", SettingKind::number, MUSTER_SETTING_NUMBER(limits.world_size_max),
     clients_are_told},
    {"hello-connections-max", SettingKind::number,
     MUSTER_SETTING_NUMBER(connections.hello_connections_max), made_at_start},
    {"busy-poll", SettingKind::duration, MUSTER_SETTING_TIME(rim.busy_poll), read_at_start},
    {"listen-backlog", SettingKind::number, MUSTER_SETTING_NUMBER(rim.listen_backlog),
     read_at_start},
    {"tcpstore-idle-lifetime", SettingKind::duration,
     MUSTER_SETTING_TIME(rim.tcpstore_idle_lifetime), read_at_start},
    {"tcpstore-memory-bytes-max", SettingKind::bytes,
     MUSTER_SETTING_NUMBER(rim.tcpstore_memory_bytes_max), read_at_start},
}};

#undef MUSTER_SETTING_NUMBER
#undef MUSTER_SETTING_TIME
#undef MUSTER_SETTING_STORE

const LiveSettings::Known* LiveSettings::find(std::string_view name) {
  for (const Known& known : Known::all) {
    if (is_name(known.name, name)) return &known;
  }
  return nullptr;
}

wire::SettingEntry LiveSettings::entry_of(const Known& known) const {
  const Options& options = services_.options();
  wire::SettingEntry entry;
  entry.name = known.name;
  entry.kind = known.kind;
  entry.value = known.value_of(options);
  entry.fixed_because = known.fixed_because;
  const bool is_fixed = !known.fixed_because.empty();
  entry.least = is_fixed ? entry.value : known.least;
  entry.most = is_fixed ? entry.value : known.most;
  if (is_name(known.name, "connections-max")) {
    entry.most = options.connections.connections_max;
    Counts counts;
    sessions_.add_counts(counts);
    entry.used = counts.sessions;
  }
  if (is_name(known.name, "memory-bytes-max")) entry.used = services_.memory().all.used_bytes();
  if (is_name(known.name, "namespace-memory-bytes-max")) entry.most = options.memory_bytes_max;
  return entry;
}

std::optional<Error> LiveSettings::refusal(const Known& known, std::uint64_t value) const {
  const std::string name(known.name);
  if (!known.fixed_because.empty()) {
    return failure(ErrorCode::invalid_argument, name + " changes with a restart only (" +
                                                    std::string(known.fixed_because) +
                                                    "); start the server with another value");
  }
  const wire::SettingEntry entry = entry_of(known);
  if (value >= entry.least && value <= entry.most) return std::nullopt;
  std::string why = name + ": " + text_of_setting(known.kind, value) + " is not within " +
                    text_of_setting(known.kind, entry.least) + " to " +
                    text_of_setting(known.kind, entry.most);
  if (value <= known.most && value > entry.most) {
    why += is_name(known.name, "connections-max")
               ? ", with which the server was started; start it with a higher one"
               : ", which is memory-bytes-max; raise that first";
  }
  return failure(ErrorCode::invalid_argument, std::move(why));
}

void LiveSettings::tell(const RequestContext& context, const wire::GetSettings& request) const {
  wire::SettingsReply reply;
  if (request.name.empty()) {
    for (const Known& known : Known::all) reply.settings.push_back(entry_of(known));
  } else if (const Known* const known = find(request.name)) {
    reply.settings.push_back(entry_of(*known));
  } else {
    return services_.fail(
        context, failure(ErrorCode::not_found, "there is no setting " + quoted_text(request.name)));
  }
  services_.effects().spend(reply.settings.size());
  services_.answer(context, answer_of(reply));
}

void LiveSettings::change(const RequestContext& context, const wire::SetSetting& request) {
  const Known* const known = find(request.name);
  if (known == nullptr) {
    return services_.fail(
        context, failure(ErrorCode::not_found, "there is no setting " + quoted_text(request.name)));
  }
  if (auto why = refusal(*known, request.value)) return services_.fail(context, *std::move(why));
  const Session& session = context.session;
  change(*known, request.value, who_is(session), session.account.unit.name);
  services_.answer(context, answer_of(wire::SettingsReply{{entry_of(*known)}}));
}

void LiveSettings::configure(const Configure& event) {
  for (const std::string& name : event.names) {
    const Known* const known = find(name);
    if (known == nullptr) continue;
    const std::uint64_t value = known->value_of(*event.options);
    if (value == known->value_of(services_.options())) continue;
    if (auto why = refusal(*known, value)) {
      services_.effects().log(LogLevel::warning, "a setting stays as it was: " + why->detail);
      continue;
    }
    change(*known, value, event.who, {});
  }
}

void LiveSettings::change(const Known& known, std::uint64_t value, const std::string& who,
                          const std::string& unit) {
  const std::uint64_t before = known.value_of(services_.options());
  if (value == before) return;
  // Before a change of the level, which could hide it.
  services_.effects().log(LogLevel::warning,
                          "setting " + std::string(known.name) + " was changed from " +
                              text_of_setting(known.kind, before) + " to " +
                              text_of_setting(known.kind, value) + " by " + who,
                          unit);
  if (known.store != nullptr) {
    known.store(services_.options_, value);
  } else {
    (this->*known.follow)(value);
  }
}

/// A limit of namespaces that is all of it stays so; none is above it.
void LiveSettings::change_memory(std::uint64_t bytes_max) {
  Options& options = services_.options_;
  const bool is_all = options.namespace_memory_bytes_max == options.memory_bytes_max;
  options.memory_bytes_max = bytes_max;
  options.kept_memory_bytes_max = bytes_max / 4;
  services_.memory().all.set_limit(bytes_max, Lowering::with_use);
  services_.memory().freed.set_kept_max(options.kept_memory_bytes_max);
  const std::uint64_t of_name_space = options.namespace_memory_bytes_max;
  change_memory_of_name_spaces(is_all ? bytes_max : std::min(of_name_space, bytes_max));
}

void LiveSettings::change_memory_of_name_spaces(std::uint64_t bytes_max) {
  services_.options_.namespace_memory_bytes_max = bytes_max;
  name_spaces_.change_memory_limit(bytes_max);
}

void LiveSettings::change_log_level(std::uint64_t level) {
  std::optional<LogLevel>& lowest = services_.options_.rim.log_level;
  lowest.reset();
  if (level < wire::silent_level) lowest = static_cast<LogLevel>(level);
  services_.effects().add(ForHost{SetLogLevel{lowest}});
}

}  // namespace muster::core
