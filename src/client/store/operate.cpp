#include "muster/operate.h"

#include <utility>

#include "client/store/store_call.h"

// The calls with which operators change a server.

namespace muster::client {
namespace {

std::vector<SettingInfo> settings_of(const wire::SettingsReply& reply) {
  std::vector<SettingInfo> settings;
  for (const wire::SettingEntry& entry : reply.settings) {
    settings.push_back({std::string(entry.name), entry.kind, entry.value, entry.least, entry.most,
                        entry.used, std::string(entry.fixed_because)});
  }
  return settings;
}

constexpr auto read_settings = [](const wire::SettingsReply& reply, const auto&) {
  return settings_of(reply);
};

constexpr auto read_setting = [](const wire::SettingsReply& reply, const auto&) {
  std::vector<SettingInfo> settings = settings_of(reply);
  return settings.empty() ? SettingInfo{} : std::move(settings.front());
};

using Settings = std::vector<SettingInfo>;

PreparedCall<Settings> settings_call(std::string_view name) {
  return call<Settings>(wire::GetSettings{name}, read_settings);
}

PreparedCall<SettingInfo> set_setting_call(std::string_view name, std::uint64_t value) {
  return call<SettingInfo>(wire::SetSetting{name, value}, read_setting);
}

PreparedCall<std::uint64_t> end_call(std::uint64_t session, const ProcessId& process,
                                     std::string_view reason) {
  return call<std::uint64_t>(wire::EndSession{session, process, reason}, read_count);
}

PreparedCall<std::uint64_t> drain_call(std::optional<Duration> time_max, std::string_view reason) {
  return call<std::uint64_t>(wire::Drain{false, time_max, reason}, read_count);
}

PreparedCall<void> cancel_drain_call() {
  return call<void>(wire::Drain{true, std::nullopt, {}}, read_nothing);
}

}  // namespace
}  // namespace muster::client

MUSTER_BEGIN_NAMESPACE

using client::run;

Result<std::vector<SettingInfo>> inspect_settings(Store& store, std::string_view name,
                                                  Duration timeout) {
  return run(store.impl(), timeout, client::settings_call(name));
}

Call inspect_settings_async(Store& store, std::string_view name, Duration timeout,
                            Handler<std::vector<SettingInfo>> handler) {
  return run(store.impl(), timeout, client::settings_call(name), std::move(handler));
}

Result<SettingInfo> set_setting(Store& store, std::string_view name, std::uint64_t value,
                                Duration timeout) {
  return run(store.impl(), timeout, client::set_setting_call(name, value));
}

Call set_setting_async(Store& store, std::string_view name, std::uint64_t value, Duration timeout,
                       Handler<SettingInfo> handler) {
  return run(store.impl(), timeout, client::set_setting_call(name, value), std::move(handler));
}

Result<std::uint64_t> end_session(Store& store, std::uint64_t session, std::string_view reason,
                                  Duration timeout) {
  return run(store.impl(), timeout, client::end_call(session, {}, reason));
}

Call end_session_async(Store& store, std::uint64_t session, std::string_view reason,
                       Duration timeout, Handler<std::uint64_t> handler) {
  return run(store.impl(), timeout, client::end_call(session, {}, reason), std::move(handler));
}

Result<std::uint64_t> end_sessions_of(Store& store, const ProcessId& process,
                                      std::string_view reason, Duration timeout) {
  return run(store.impl(), timeout, client::end_call(0, process, reason));
}

Call end_sessions_of_async(Store& store, const ProcessId& process, std::string_view reason,
                           Duration timeout, Handler<std::uint64_t> handler) {
  return run(store.impl(), timeout, client::end_call(0, process, reason), std::move(handler));
}

Result<std::uint64_t> drain(Store& store, std::optional<Duration> time_max, std::string_view reason,
                            Duration timeout) {
  return run(store.impl(), timeout, client::drain_call(time_max, reason));
}

Call drain_async(Store& store, std::optional<Duration> time_max, std::string_view reason,
                 Duration timeout, Handler<std::uint64_t> handler) {
  return run(store.impl(), timeout, client::drain_call(time_max, reason), std::move(handler));
}

Result<void> cancel_drain(Store& store, Duration timeout) {
  return run(store.impl(), timeout, client::cancel_drain_call());
}

Call cancel_drain_async(Store& store, Duration timeout, Handler<void> handler) {
  return run(store.impl(), timeout, client::cancel_drain_call(), std::move(handler));
}

MUSTER_END_NAMESPACE
