#include "core_runner.h"

#include <algorithm>
#include <utility>

#include "core_server_options.h"

namespace muster::script {
namespace {

/// Heartbeats that clients send by themselves; the answers to them are not shown.
constexpr std::uint64_t own_heartbeat = 0;

/// How often the rim lets the engine look at the time when nothing is due.
constexpr Duration tick = std::chrono::milliseconds(200);

}  // namespace

std::vector<Line> CoreRunner::run(const Step& step, const std::string& actor) {
  lines_.clear();
  step_began_ = now_;
  time_passes_ = false;
  if (step.verb == "+") {
    pass(duration_in(step));
  } else if (step.verb == "pause" || step.verb == "works") {
    const Duration duration = duration_in(step);
    pause(duration, step.verb == "pause" ? duration : Duration::zero());
  } else {
    Arguments arguments(step.words);
    if (actor.empty()) {
      if (!run_server_step(step, arguments)) throw ScriptError("unknown step: " + step.verb);
    } else {
      run_client_step(step, actor, arguments);
    }
    arguments.finish();
  }
  return std::move(lines_);
}

// Steps of nobody in particular.

void CoreRunner::start_server(Arguments& arguments) {
  core::Options options = server_options(arguments, processes_);
  shows_logs_ = false;
  puts_off_ = false;
  if (const auto given = arguments.number("incarnation")) {
    incarnation_ = static_cast<std::uint64_t>(*given);
  } else {
    ++incarnation_;
  }
  options.incarnation = incarnation_;
  heartbeat_ = options.limits.heartbeat;
  engine_ = std::make_unique<core::Engine>(options);
  for (auto& [name, client] : clients_) client.connection = 0;
  apply(core::Advance());
}

/// A line of that name: a new one, or another version of it.
void CoreRunner::set_credential(Arguments& arguments) {
  Grant& grant = grants_[arguments.next("the name of the line")];
  const Grant older = std::exchange(grant, grant_of(arguments));
  if (older != nullptr) apply(core::Regrant{{{older, grant}}});
}

void CoreRunner::revoke(Arguments& arguments) {
  const auto found = grants_.extract(arguments.next("the name of the line"));
  if (found.empty()) throw ScriptError("there is no such credential line");
  apply(core::Regrant{{{found.mapped(), nullptr}}});
}

bool CoreRunner::run_server_step(const Step& step, Arguments& arguments) {
  if (step.verb == "server") {
    start_server(arguments);
  } else if (step.verb == "stop") {
    apply(core::Stop{arguments.bytes("reason").value_or("it is asked to")});
  } else if (step.verb == "stranger") {
    apply(core::Stranger{arguments.bytes("what").value_or("somebody")});
  } else if (step.verb == "credential") {
    set_credential(arguments);
  } else if (step.verb == "revoke") {
    revoke(arguments);
  } else if (step.verb == "puts_off") {
    puts_off_ = true;
  } else if (step.verb == "continue") {
    tell_all(engine().apply(core::Continue{}, now_));
  } else if (step.verb == "logs") {
    shows_logs_ = true;
  } else if (step.verb == "counts") {
    tell_counts(arguments);
  } else if (step.verb == "figures") {
    tell_figures();
  } else {
    return false;
  }
  return true;
}

void CoreRunner::pass(Duration duration) {
  time_passes_ = true;
  const core::Instant end = now_ + duration;
  int standing_still = 0;
  while (now_ < end) {
    core::Instant next = std::min({end, next_beat(now_, tick), next_beat(now_, heartbeat_)});
    next = std::max(now_, std::min(next, engine().next_deadline()));
    standing_still = next == now_ ? standing_still + 1 : 0;
    if (standing_still > 100) throw ScriptError("the engine's next deadline stands still");
    const bool beats = next > now_ && next == next_beat(now_, heartbeat_);
    now_ = next;
    if (beats) beat_all();
    apply(core::Advance());
  }
}

void CoreRunner::pause(Duration duration, Duration gap) {
  now_ += duration;
  apply(core::Late{duration, gap});
  apply(core::Advance());
}

void CoreRunner::tell_counts(Arguments& arguments) {
  const core::Counts counts = engine().counts();
  const bool all = arguments.flag("all");
  const std::pair<const char*, std::uint64_t> named[] = {
      {"sessions", counts.sessions},
      {"connections", counts.connections},
      {"keys", counts.keys},
      {"queues", counts.queues},
      {"objects", counts.objects},
      {"groups", counts.groups},
      {"epochs", counts.epochs},
      {"rounds", counts.rounds},
      {"streams", counts.streams},
      {"waits", counts.waits},
      {"cached_results", counts.cached_results},
      {"timers", counts.timers},
      {"memory_bytes", counts.memory_bytes},
  };
  Line& line = this->line("counts");
  bool any = false;
  for (const auto& [name, value] : named) {
    const bool machinery =
        name == std::string_view("timers") || name == std::string_view("memory_bytes");
    if (value == 0 || (machinery && !all)) {
      line.further(name, std::to_string(value));
    } else {
      line.with(name, std::to_string(value));
      any = true;
    }
  }
  if (!any) line.words += " nothing";
}

// Events in, lines out.

core::Engine& CoreRunner::engine() {
  if (!engine_) {
    Arguments none({});
    start_server(none);
  }
  return *engine_;
}

void CoreRunner::apply_from(const Client& client, const core::Event& event) {
  const core::ConnectionId connection = client.connection;
  if (connection == 0) throw ScriptError(client.name + " has no connection");
  apply(core::Heard{connection});
  if (client.connection == 0) return;  // closed because of what it is
  apply(event);
}

void CoreRunner::apply(const core::Event& event) {
  tell_all(engine().apply(event, now_));
  while (!puts_off_ && engine().has_backlog()) tell_all(engine().apply(core::Continue{}, now_));
}

void CoreRunner::tell_all(std::vector<core::Effect>& all) {
  const auto effects = std::move(all);
  for (const core::Effect& effect : effects) {
    std::visit([this](const auto& one) { tell(one); }, effect);
  }
}

void CoreRunner::beat_all() {
  for (auto& [name, client] : clients_) {
    if (client.connection == 0 || client.silent) continue;
    const std::vector<std::uint64_t> nothing;
    apply_from(client, core::Heartbeat{client.connection, own_heartbeat, &nothing});
  }
}

Line& CoreRunner::line(std::string words) {
  Line& line = lines_.emplace_back();
  line.words = std::move(words);
  if (time_passes_) line.at = now_ - step_began_;
  return line;
}

Client& CoreRunner::client_at(core::ConnectionId connection) {
  const auto owner = owners_.find(connection);
  if (owner == owners_.end()) throw ScriptError("an effect for a connection that never was");
  return clients_.at(owner->second);
}

Line& CoreRunner::line_at(core::ConnectionId connection, std::string words) {
  const Client& client = client_at(connection);
  const bool current = client.connection == connection;
  return line(client.name + (current ? ": " : ".old: ") + std::move(words));
}

void CoreRunner::tell(const core::SendHello& effect) {
  Client& client = client_at(effect.connection);
  const wire::ServerHello& hello = *effect.hello;
  if (hello.status != 0) {
    line_at(effect.connection,
            "refused " + std::string(name_of(static_cast<ErrorCode>(hello.status))))
        .further("incarnation", std::to_string(hello.incarnation));
    return;
  }
  if (client.connection == effect.connection) {
    client.hello.incarnation = hello.incarnation;
    client.hello.session_id = hello.session_id;
    client.hello.token = hello.token;
  }
  line_at(effect.connection, hello.resumed ? "resumed" : "welcome")
      .further("incarnation", std::to_string(hello.incarnation))
      .further("session", std::to_string(hello.session_id))
      .further("hosting_rank", std::to_string(hello.hosting_rank))
      .further("hosting_process", processes_.name_of(hello.hosting_process.id))
      .further("session_timeout", text_of(hello.limits.session_timeout))
      .further("grace", text_of(hello.limits.grace));
}

void CoreRunner::tell(const core::SendReply& effect) {
  Client& client = client_at(effect.connection);
  const auto found = client.asked.find(effect.request_id);
  if (found == client.asked.end() || found->second->replies_due == 0) {
    line_at(effect.connection, "a reply that nobody waits for")
        .with("request", std::to_string(effect.request_id));
    return;
  }
  Asked& asked = *found->second;
  --asked.replies_due;
  std::string body = effect.head;
  body += effect.value;
  if (effect.tail) body += effect.tail->view();
  Line line = reply_line(asked, effect.code, body, client, processes_);
  this->line(std::move(line.words)).fields = std::move(line.fields);
  client.unacknowledged.push_back(effect.request_id);
}

void CoreRunner::tell(const core::SendEvent& effect) {
  const auto event = wire::decode_event(static_cast<std::uint16_t>(effect.kind), *effect.body);
  if (!event) throw ScriptError("an event cannot be decoded: " + event.error().message());
  script::tell(line_at(effect.connection, ""), *event, processes_);
}

void CoreRunner::tell(const core::SendHeartbeatReply& effect) {
  if (effect.number == own_heartbeat) return;
  line_at(effect.connection, "heartbeat_reply").with("number", std::to_string(effect.number));
}

void CoreRunner::tell(const core::SendGoodbye& effect) {
  line_at(effect.connection, "goodbye").further("reason", in_quotes(effect.reason));
}

void CoreRunner::tell(const core::Postpone& effect) {
  line_at(effect.connection, "postponed").with("bytes", std::to_string(effect.bytes));
}

void CoreRunner::tell(const core::ForHost& effect) {
  if (const auto* const drained = std::get_if<core::Drained>(&effect.what)) {
    line("drained").further("reason", in_quotes(drained->reason));
    return;
  }
  if (const auto* const drains = std::get_if<core::Drains>(&effect.what)) {
    line("drains").further("reason", in_quotes(drains->reason));
    return;
  }
  const auto lowest = std::get<core::SetLogLevel>(effect.what).lowest;
  line("log_level").with("lowest", lowest ? std::to_string(static_cast<int>(*lowest)) : "none");
}

void CoreRunner::tell(const core::Close& effect) {
  Line& line = line_at(effect.connection, "closed " + std::string(name_of(effect.reason->code)));
  script::tell(line, *effect.reason, processes_);
  Client& client = client_at(effect.connection);
  if (client.connection != effect.connection) return;
  client.closed_connection = std::exchange(client.connection, 0);
}

void CoreRunner::tell(const core::Log& effect) {
  if (!shows_logs_) return;
  constexpr const char* levels[] = {"debug", "info", "warning", "error"};
  line(std::string("log ") + levels[static_cast<int>(effect.level)])
      .further("line", whole_in_quotes(effect.line));
}

}  // namespace muster::script
