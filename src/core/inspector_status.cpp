#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/inspector.h"
#include "core/session/failure.h"
#include "core/session/reply.h"
#include "wire/operation_table.h"

namespace muster::core {
namespace {

constexpr std::string_view version = MUSTER_VERSION;

/// Names and values in the order in which they are shown.
class Fields {
 public:
  void text(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
  }
  void number(std::string name, std::uint64_t value) {
    text(std::move(name), std::to_string(value));
  }
  void time(std::string name, Duration value) {
    text(std::move(name) + "_us", std::to_string(value.count()));
  }

  wire::StatusReply reply() const {
    wire::StatusReply reply;
    for (const auto& [name, value] : fields_) reply.fields.emplace_back(name, value);
    return reply;
  }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

void add_limits(Fields& fields, const Options& options) {
  const wire::ServerLimits& limits = options.limits;
  fields.number("key_bytes_max", limits.key_bytes_max);
  fields.number("value_bytes_max", limits.value_bytes_max);
  fields.number("round_bytes_max", limits.round_bytes_max);
  fields.number("keys_per_operation_max", limits.keys_per_operation_max);
  fields.number("parked_waits_max", limits.parked_waits_max);
  fields.number("world_size_max", limits.world_size_max);
  fields.time("heartbeat", limits.heartbeat);
  fields.time("session_timeout", limits.session_timeout);
  fields.time("grace", limits.grace);
  fields.time("slack", limits.slack);
  fields.number("memory_bytes_max", options.memory_bytes_max);
  fields.number("namespace_memory_bytes_max", options.namespace_memory_bytes_max);
  fields.number("connections_max", options.connections.connections_max);
  fields.number("hello_connections_max", options.connections.hello_connections_max);
  fields.number("sessions_max", options.sessions_max);
  fields.number("namespaces_max", options.name_spaces.count_max);
  fields.number("namespaces_per_address_max", options.name_spaces.per_unit_max);
  fields.time("namespace_idle_lifetime", options.name_spaces.idle_lifetime);
  fields.number("groups_per_namespace_max", options.groups_per_namespace_max);
  fields.number("open_rounds_max", options.open_rounds_max);
  fields.number("cached_results_max", limits.cached_results_max);
  fields.number("cached_result_bytes_max", limits.cached_result_bytes_max);
  fields.number("list_slots_per_page", options.list_slots_per_page);
  fields.number("waits_for_several_max", options.name_spaces.waits_for_several_max);
  fields.number("work_per_event_max", options.work_per_event_max);
  fields.time("gap_max", options.gap_max);
  fields.time("drain_after_gap", options.drain_after_gap);
  fields.time("slow_round_log", options.slow_round_log);
}

/// Of all namespaces together: they tell of those that are not for everybody.
void add_figures(Fields& fields, const Snapshot& numbers) {
  for (const Figure& figure : figures) fields.number(std::string(figure.name), figure.of(numbers));
}

/// Where operators would find waits that they do not see from their own namespace.
void add_waiting(Fields& fields, WaitingNames& names, const Session& viewer) {
  constexpr std::size_t told_max = 16;
  const WaitingSessions& own = *viewer.requests.waiting;
  std::uint64_t count = names.others_count(own);
  std::vector<std::string_view> told;
  if (viewer.may_see_all()) {
    told = names.others(own, told_max);
  } else {
    told = names.others(own, SIZE_MAX);
    std::erase_if(told, [&](auto name) { return !viewer.may_see_name_space(name); });
    count = told.size();
    told.resize(std::min(told.size(), told_max));
  }
  std::string text;
  for (const std::string_view name : told) text += (text.empty() ? "" : ", ") + quoted_text(name);
  if (count > told_max) text += ", ...";
  fields.number("other_namespaces_waiting_count", count);
  fields.text("other_namespaces_waiting", std::move(text));
}

/// Why guests of the namespace were disconnected: their protocol has no errors.
void add_refused_guests(Fields& fields, const NameSpaces& names, const std::string& name_space,
                        Instant now) {
  constexpr std::size_t told_max = 4;
  std::size_t count = 0;
  std::string text;
  for (auto guest = names.refused_guests().rbegin(); guest != names.refused_guests().rend();
       ++guest) {
    if (guest->name_space != name_space || ++count > told_max) continue;
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(now - guest->when);
    text += (text.empty() ? "" : "; ") + std::to_string(age.count()) + " s ago " + guest->why;
  }
  fields.number("tcpstore_disconnected_count", count);
  fields.text("tcpstore_disconnected", std::move(text));
}

}  // namespace

void Inspector::tell(const RequestContext& context, const wire::Status&) {
  const Options& options = services_.options();
  const Clock& clock = services_.clock();
  Fields fields;
  fields.text("version", std::string(version));
  fields.number("incarnation", options.incarnation);
  fields.time("uptime", clock.now() - clock.start());
  fields.time("paused", clock.paused());
  if (options.host.process.id != ProcessId{} &&
      may_know_host(context.session, options.host.tenant)) {
    fields.text("hosting_process", describe(options.host.process));
    fields.text("hosting_rank", std::to_string(options.host.rank));
  }
  fields.text("namespace", context.session.name_space.name);
  fields.number("namespace_memory_used_bytes", context.session.name_space.quota.used_bytes());
  if (context.session.may_see_all()) add_figures(fields, snapshot());
  add_waiting(fields, name_spaces_.waiting_names(), context.session);
  add_refused_guests(fields, name_spaces_, context.session.name_space.name, clock.now());
  for (std::size_t index = 0; index < wire::operations_count; ++index) {
    if (!context.session.may_see_all()) break;
    const std::string_view name = wire::operation_facts[index].name;
    fields.number("operations_" + std::string(name) + "_count", operation_counts_[index]);
  }
  add_limits(fields, options);
  fields.number("history_bytes_max", name_spaces_.history().bytes_max());
  const wire::StatusReply reply = fields.reply();
  services_.effects().spend(reply.fields.size());
  services_.answer(context, answer_of(reply));
}

/// To who asks, of himself alone.
void Inspector::tell(const RequestContext& context, const wire::WhoAmI&) {
  const Session& session = context.session;
  Fields fields;
  if (session.grant != nullptr) {
    const auth::Grant& grant = *session.grant;
    fields.text("identity", to_string(grant.identity));
    fields.text("tenant", grant.identity.tenant);
    fields.text("namespaces", to_string(grant.namespaces));
    fields.text("credential_rights", to_string(grant.rights));
    if (grant.not_after) fields.text("not_after", to_string(*grant.not_after));
  }
  fields.text("namespace", session.name_space.name);
  fields.text("rights", to_string(session.rights));
  const wire::StatusReply reply = fields.reply();
  services_.effects().spend(reply.fields.size());
  services_.answer(context, answer_of(reply));
}

}  // namespace muster::core
