#include "options.h"

#include <cstddef>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "arguments.h"
#include "errors.h"
#include "handles.h"

namespace muster::c {
namespace {

Role role_of(std::int32_t role) {
  switch (role) {
    case MUSTER_ROLE_CLIENT: return Role::client;
    case MUSTER_ROLE_OBSERVER: return Role::observer;
    case MUSTER_ROLE_SUPERVISOR: return Role::supervisor;
    default: throw Refused{"role: there is none of number " + std::to_string(role)};
  }
}

HostServer host_server_of(std::int32_t who) {
  switch (who) {
    case MUSTER_HOST_AUTOMATIC: return HostServer::automatic;
    case MUSTER_HOST_ALWAYS: return HostServer::always;
    case MUSTER_HOST_NEVER: return HostServer::never;
    default: throw Refused{"host_server: there is none of number " + std::to_string(who)};
  }
}

/// 0: that of C++.
void set_time(Duration& time, std::int64_t microseconds) {
  if (microseconds != 0) time = Duration(microseconds);
}

void run_work(void* argument) {
  auto* const work = static_cast<std::function<void()>*>(argument);
  (*work)();
  delete work;
}

Executor executor_of(muster_executor executor, void* user) {
  if (executor == nullptr) return {};
  return [executor, user](std::function<void()> work) {
    // Handlers run exactly once: without memory here.
    auto* const kept = new (std::nothrow) std::function<void()>(std::move(work));
    if (kept == nullptr) return work();
    executor(user, run_work, kept);
  };
}

Logger logger_of(muster_logger logger, void* user) {
  if (logger == nullptr) return {};
  return [logger, user](LogLevel level, std::string_view line) {
    try {
      logger(user, static_cast<int>(level), std::string(line).c_str());
    } catch (const std::bad_alloc&) {
      logger(user, static_cast<int>(level), "a line is missing here: no memory is left");
    }
  };
}

}  // namespace

std::function<void(const Error& error)> event_of(muster_on_done told, void* user) {
  if (told == nullptr) return {};
  return [told, user](const Error& error) { told(user, error_of(error)); };
}

StoreOptions store_options_of(const muster_store_options* given) {
  const auto from = options_of(given, "options of the store");
  StoreOptions options;
  options.role = role_of(from.role);
  if (from.inline_handlers) options.handlers = HandlerPlace::io_thread;
  options.name_space = text_or_none(from.name_space);
  options.label = text_or_none(from.label);
  options.credential_file = text_or_none(from.credential_file);
  options.certificate_file = text_or_none(from.certificate_file);
  options.certificate_key_file = text_or_none(from.certificate_key_file);
  options.authorities_file = text_or_none(from.authorities_file);
  options.server_name = text_or_none(from.server_name);
  set_time(options.timeout, from.timeout);
  // -1 is C++'s for the default, and 0 for not at all.
  set_time(options.wait_for_server, from.wait_for_server);
  if (from.wait_for_server == -1) options.wait_for_server = Duration{0};
  options.busy_poll = Duration(from.busy_poll);
  if (from.io_thread != nullptr) options.io_thread = from.io_thread->thread;
  options.executor = executor_of(from.executor, from.executor_user);
  options.logger = logger_of(from.logger, from.logger_user);
  options.on_session_end = event_of(from.on_session_end, from.on_session_end_user);
  // -1 is zero of C++, and 0 is none.
  options.namespace_idle_lifetime = time_or_none(from.namespace_idle_lifetime);
  if (from.namespace_idle_lifetime == -1) options.namespace_idle_lifetime = Duration{0};
  options.run = text_or_none(from.run);
  return options;
}

SetOptions set_options_of(const muster_set_options* given) {
  const auto from = options_of(given, "options of set");
  SetOptions options;
  options.ttl = time_or_none(from.ttl);
  options.only_if_absent = from.only_if_absent;
  options.bind_to_session = from.bind_to_session;
  return options;
}

GroupOptions group_options_of(const muster_group_options* given) {
  const auto from = options_of(given, "options of the group");
  GroupOptions options;
  set_time(options.data_expiration, from.data_expiration);
  set_time(options.timeout, from.timeout);
  options.standby = from.standby;
  options.info = bytes_of(from.info, "info");
  if (from.other_tenants_count != 0) needed(from.other_tenants, "other_tenants");
  for (std::size_t index = 0; index < from.other_tenants_count; ++index) {
    options.other_tenants.emplace_back(text_of(from.other_tenants[index], "a tenant"));
  }
  options.on_loss = event_of(from.on_loss, from.user);
  options.on_leave = event_of(from.on_leave, from.user);
  return options;
}

HostedGroupOptions hosted_options_of(const muster_hosted_options* given) {
  const auto from = options_of(given, "options of the hosted group");
  HostedGroupOptions options;
  static_cast<GroupOptions&>(options) = group_options_of(from.group);
  options.name = text_or_none(from.name);
  options.host_server = host_server_of(from.host_server);
  options.allow_unauthenticated = from.allow_unauthenticated;
  options.store = store_options_of(from.store);
  if (from.has_listening_socket) options.listening_socket = from.listening_socket;
  return options;
}

RegroupOptions regroup_options_of(const muster_regroup_options* given) {
  const auto from = options_of(given, "options of regroup");
  RegroupOptions options;
  options.new_size = from.new_size;
  options.everyone = from.everyone;
  options.min_size = from.min_size;
  return options;
}

}  // namespace muster::c
