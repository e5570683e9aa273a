#include "client/link/link_options.h"

namespace muster::client {

namespace {

wire::Role wire_role(Role role) {
  switch (role) {
    case Role::client: break;
    case Role::observer: return wire::Role::observer;
    case Role::supervisor: return wire::Role::supervisor;
  }
  return wire::Role::client;
}

}  // namespace

protocol::Options protocol_options(const std::string& address, const StoreOptions& options,
                                   const ProcessInfo& process, std::uint64_t jitter_seed) {
  protocol::Options settings;
  settings.identity.process = process;
  settings.identity.role = wire_role(options.role);
  settings.identity.name_space = options.name_space;
  settings.identity.idle_lifetime = options.namespace_idle_lifetime;
  settings.identity.run = options.run;
  if (!options.run.empty() && !options.namespace_idle_lifetime) {
    settings.identity.idle_lifetime = Duration::zero();
  }
  settings.where = address;
  if (options.wait_for_server != default_timeout) {
    settings.wait_for_server = options.wait_for_server;
  }
  settings.jitter_seed = jitter_seed;
  return settings;
}

Limits limits_of(const wire::ServerLimits& from) {
  Limits limits;
  limits.key_bytes_max = from.key_bytes_max;
  limits.value_bytes_max = from.value_bytes_max;
  limits.round_bytes_max = from.round_bytes_max;
  limits.keys_per_operation_max = from.keys_per_operation_max;
  limits.world_size_max = from.world_size_max;
  limits.heartbeat = from.heartbeat;
  limits.session_timeout = from.session_timeout;
  limits.grace = from.grace;
  limits.slack = from.slack;
  return limits;
}

}  // namespace muster::client
