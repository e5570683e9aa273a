#include "core_server_options.h"

namespace muster::script {
namespace {

template <class Number>
void read(Arguments& arguments, std::string_view name, Number& option) {
  if (const auto given = arguments.number(name)) option = static_cast<Number>(*given);
}

void read(Arguments& arguments, std::string_view name, Duration& option) {
  if (const auto given = arguments.duration(name)) option = *given;
}

}  // namespace

core::Options server_options(Arguments& arguments, Processes& processes) {
  core::Options options;
  wire::ServerLimits& limits = options.limits;
  read(arguments, "key_bytes_max", limits.key_bytes_max);
  read(arguments, "value_bytes_max", limits.value_bytes_max);
  read(arguments, "round_bytes_max", limits.round_bytes_max);
  read(arguments, "keys_per_operation_max", limits.keys_per_operation_max);
  read(arguments, "cached_results_max", limits.cached_results_max);
  read(arguments, "cached_result_bytes_max", limits.cached_result_bytes_max);
  read(arguments, "parked_waits_max", limits.parked_waits_max);
  read(arguments, "world_size_max", limits.world_size_max);
  read(arguments, "heartbeat", limits.heartbeat);
  read(arguments, "session_timeout", limits.session_timeout);
  read(arguments, "grace", limits.grace);
  read(arguments, "slack", limits.slack);
  read(arguments, "memory_bytes_max", options.memory_bytes_max);
  read(arguments, "namespace_memory_bytes_max", options.namespace_memory_bytes_max);
  read(arguments, "sessions_max", options.sessions_max);
  read(arguments, "namespaces_max", options.name_spaces.count_max);
  read(arguments, "namespaces_per_unit_max", options.name_spaces.per_unit_max);
  read(arguments, "namespace_idle_lifetime", options.name_spaces.idle_lifetime);
  read(arguments, "groups_per_namespace_max", options.groups_per_namespace_max);
  read(arguments, "open_rounds_max", options.open_rounds_max);
  read(arguments, "history_bytes_max", options.history_bytes_max);
  read(arguments, "list_slots_per_page", options.list_slots_per_page);
  read(arguments, "waits_for_several_max", options.name_spaces.waits_for_several_max);
  read(arguments, "work_per_event_max", options.work_per_event_max);
  read(arguments, "gap_max", options.gap_max);
  read(arguments, "drain_after_gap", options.drain_after_gap);
  read(arguments, "slow_round_log", options.slow_round_log);
  core::ConnectionLimits& connections = options.connections;
  read(arguments, "connections_max", connections.connections_max);
  read(arguments, "hello_connections_max", connections.hello_connections_max);
  read(arguments, "operators_max", connections.operators_max);
  read(arguments, "work_per_connection", connections.turn.work_per_connection);
  read(arguments, "work_per_unit", connections.turn.work_per_unit);
  read(arguments, "work_per_turn", connections.turn.work_per_turn);
  read(arguments, "shared_part", connections.turn.shared_part);
  read(arguments, "shared_turns", connections.turn.shared_turns);
  read(arguments, "writes_per_turn", connections.turn.writes_per_turn);
  read(arguments, "leaving_connections_max", connections.leaving_connections_max);
  read(arguments, "waiting_bytes_max", connections.waiting_bytes_max);
  read(arguments, "hold_bytes", connections.hold_bytes);
  read(arguments, "continue_bytes", connections.continue_bytes);
  read(arguments, "held_bytes_max", connections.held_bytes_max);
  read(arguments, "hosting_rank", options.host.rank);
  if (const auto process = arguments.named("hosting_process")) {
    options.host.process.id = processes.id_of(*process);
    options.host.process.host = "h1";
    options.host.process.pid = 1;
    options.host.tenant = arguments.named("hosting_tenant").value_or("");
  }
  return options;
}

}  // namespace muster::script
