#include "server_runner.h"

#include <algorithm>
#include <utility>

#include "core_server_options.h"

namespace muster::script {
namespace {

constexpr int turns_max = 10'000;

}  // namespace

/// What the service still closes is told to this.
ServerRunner::~ServerRunner() { service_.reset(); }

std::vector<Line> ServerRunner::run(const Step& step, const std::string& actor) {
  lines_.clear();
  step_began_ = world_.time;
  time_passes_ = false;
  for (const auto& connection : connections_) connection->writes = 0;
  if (step.verb == "+") {
    pass(duration_in(step));
  } else if (step.verb == "pause" || step.verb == "works") {
    stand_still(duration_in(step), step.verb == "works");
  } else {
    Arguments arguments(step.words);
    if (actor.empty()) {
      if (!run_server_step(step, arguments)) throw ScriptError("unknown step: " + step.verb);
    } else {
      run_client_step(step, actor, arguments);
    }
    arguments.finish();
    settle();
  }
  return std::move(lines_);
}

// Steps of nobody in particular.

void ServerRunner::start_server(Arguments& arguments) {
  service_.reset();
  world_.timer = base::far_future;
  world_.is_woken = false;
  world_.is_listening = true;
  server::Settings settings;
  settings.core = server_options(arguments, processes_);
  settings.core.incarnation = ++incarnation_;
  settings.tcpstore = tcpstore_ports(arguments, settings.core);
  settings.is_short_of_memory = [this] { return memory_is_short_; };
  settings.logger = [this](LogLevel level, std::string_view text) {
    constexpr const char* levels[] = {"debug", "info", "warning", "error"};
    if (!shows_logs_) return;
    line(std::string("log ") + levels[static_cast<int>(level)]).further("line", std::string(text));
  };
  heartbeat_ = settings.core.limits.heartbeat;
  shows_logs_ = memory_is_short_ = false;
  for (auto& [name, one] : clients_) one.connection = nullptr;
  service_ = std::make_unique<server::Service>(world_, std::move(settings));
  service_->tick();
}

server::Service& ServerRunner::service() {
  if (!service_) {
    Arguments none({});
    start_server(none);
  }
  return *service_;
}

bool ServerRunner::run_server_step(const Step& step, Arguments& arguments) {
  if (step.verb == "server") {
    start_server(arguments);
  } else if (step.verb == "stop") {
    stop(arguments);
  } else if (step.verb == "logs") {
    shows_logs_ = true;
  } else if (step.verb == "turn_begins" || step.verb == "turn_ends") {
    is_in_turn_ = step.verb == "turn_begins";
  } else if (step.verb == "next_turn") {
    if (!is_in_turn_) throw ScriptError("next_turn: only after turn_begins");
    run_turn();
  } else if (step.verb == "memory_is_short" || step.verb == "memory_is_back") {
    memory_is_short_ = step.verb == "memory_is_short";
  } else {
    return false;
  }
  return true;
}

void ServerRunner::stop(Arguments& arguments) {
  const auto own_sessions =
      static_cast<std::uint64_t>(arguments.number("own_sessions").value_or(0));
  service().stop(
      arguments.bytes("reason").value_or("it is asked to"),
      arguments.duration("timeout").value_or(Duration::zero()), own_sessions,
      [this](std::uint64_t left) { line("stopped").with("left", std::to_string(left)); });
}

void ServerRunner::pass(Duration duration) {
  service();
  time_passes_ = true;
  const base::Instant end = world_.time + duration;
  int standing_still = 0;
  while (world_.time < end) {
    const base::Instant next = next_event(end);
    standing_still = next == world_.time ? standing_still + 1 : 0;
    if (standing_still > 100) throw ScriptError("the service's timer stands still");
    pass_to(next);
  }
}

/// The timer fires when it is over; what has come meanwhile is read later.
void ServerRunner::stand_still(Duration duration, bool works) {
  service();
  if (works) {
    world_.work += duration;
    world_.all_turns.longest = std::max(world_.all_turns.longest, duration);
    ++world_.all_turns.long_count;
  }
  pass_to(world_.time + duration);
}

base::Instant ServerRunner::next_event(base::Instant end) const {
  base::Instant next = std::min({end, world_.timer, next_beat(world_.time, heartbeat_)});
  for (const auto& connection : connections_) {
    next = std::min(next, connection->channel->linger_deadline());
  }
  return std::max(next, world_.time);
}

void ServerRunner::pass_to(base::Instant next) {
  const bool beats = next > world_.time && next == next_beat(world_.time, heartbeat_);
  world_.time = next;
  for (const auto& connection : connections_) {
    if (connection->channel->linger_deadline() <= next) connection->channel->linger_out();
  }
  if (beats) beat_all();
  if (world_.timer <= next) {
    world_.timer = base::far_future;
    service().tick();
  }
  settle();
}

void ServerRunner::beat_all() {
  std::string heartbeat;
  wire::append_ids(heartbeat, wire::FrameType::heartbeat, 0, {});
  for (auto& [name, one] : clients_) {
    const bool has_session = one.connection != nullptr && one.client.hello.session_id != 0;
    if (!has_session || one.client.silent || one.writes_later) continue;
    write(one, heartbeat);
  }
}

/// What the loop does until nothing is left to do at this time.
void ServerRunner::settle() {
  bool any = !is_in_turn_;
  for (int turn = 0; any; ++turn) {
    if (turn == turns_max) throw ScriptError("the service comes to no rest");
    any = run_turn();
  }
}

/// returns  whether there was something to do
bool ServerRunner::run_turn() {
  ++world_.turn_number;
  bool any = false;
  for (std::size_t place = 0; place < connections_.size(); ++place) {
    any = connections_[place]->channel->read() || any;
  }
  if (!world_.is_woken) return any;
  world_.is_woken = false;
  service().continue_turn();
  return true;
}

// What comes of it.

Line& ServerRunner::line(std::string words) {
  Line& line = lines_.emplace_back();
  line.words = std::move(words);
  if (time_passes_) line.at = world_.time - step_began_;
  return line;
}

Line& ServerRunner::line_of(const Connection& connection, const std::string& words) {
  const auto owner = clients_.find(connection.owner);
  const bool is_current = owner != clients_.end() && owner->second.connection == &connection;
  return line(connection.owner + (is_current ? ": " : ".old: ") + words);
}

void ServerRunner::took(Connection& connection, std::string_view bytes) {
  ++connection.writes;
  if (connection.guest != nullptr) return took_as_guest(connection, bytes);
  connection.received += bytes;
  while (connection.has_hello ? read_frame(connection) : read_hello(connection)) {
  }
}

void ServerRunner::took_as_guest(Connection& connection, std::string_view bytes) {
  for (Line& told : connection.guest->takes(bytes)) {
    told.further("write", std::to_string(connection.writes));
    line_of(connection, told.words).fields = std::move(told.fields);
  }
}

bool ServerRunner::read_hello(Connection& connection) {
  if (connection.received.size() < wire::server_hello_bytes) return false;
  const auto hello = wire::decode_server_hello(
      std::string_view(connection.received).substr(0, wire::server_hello_bytes));
  if (!hello) throw ScriptError("a hello cannot be decoded: " + hello.error().message());
  connection.received.erase(0, wire::server_hello_bytes);
  connection.has_hello = true;
  tell(connection, *hello);
  return true;
}

void ServerRunner::tell(Connection& connection, const wire::ServerHello& hello) {
  if (hello.status != 0) {
    line_of(connection, "refused " + std::string(name_of(static_cast<ErrorCode>(hello.status))))
        .further("detail", hello.detail);
    return;
  }
  Client& client = clients_.at(connection.owner).client;
  if (!hello.resumed && !client.keeps_echo) wire::append_echo(connection.echo, hello.token);
  wire::ClientHello& own = client.hello;
  own.incarnation = hello.incarnation;
  own.session_id = hello.session_id;
  own.token = hello.token;
  line_of(connection, hello.resumed ? "resumed" : "welcome")
      .further("session", std::to_string(hello.session_id));
}

bool ServerRunner::read_frame(Connection& connection) {
  const auto frame = wire::cut_frame(connection.received, 0xffffffff);
  if (!frame.has_value()) throw ScriptError("a frame cannot be cut: " + frame.error().message());
  if (!*frame) return false;
  tell(connection, **frame);
  connection.received.erase(0, wire::frame_header_bytes + (*frame)->body.size());
  return true;
}

void ServerRunner::tell(Connection& connection, const wire::Frame& frame) {
  switch (frame.header.type) {
    case wire::FrameType::part:
      connection.parts[frame.header.id] += frame.body;
      ++connection.parts_count;
      return;
    case wire::FrameType::reply: return tell_reply(connection, frame);
    case wire::FrameType::heartbeat_reply:
      if (frame.header.id == 0) return;
      line_of(connection, "heartbeat_reply").with("number", std::to_string(frame.header.id));
      return;
    case wire::FrameType::event: {
      const auto event = wire::decode_event(frame.header.code, frame.body);
      if (!event) throw ScriptError("an event cannot be decoded: " + event.error().message());
      return script::tell(line_of(connection, ""), *event, processes_);
    }
    case wire::FrameType::goodbye: {
      const auto reason = wire::decode_goodbye(frame);
      if (!reason) throw ScriptError("a goodbye cannot be decoded");
      line_of(connection, "goodbye").further("reason", in_quotes(std::string(*reason)));
      return;
    }
    default: throw ScriptError("a server sends no such frames");
  }
}

void ServerRunner::tell_reply(Connection& connection, const wire::Frame& frame) {
  Client& client = clients_.at(connection.owner).client;
  const auto found = client.asked.find(frame.header.id);
  if (found == client.asked.end() || found->second->replies_due == 0) {
    line_of(connection, "a reply that nobody waits for")
        .with("request", std::to_string(frame.header.id));
    return;
  }
  --found->second->replies_due;
  std::string body = std::exchange(connection.parts[frame.header.id], {});
  body += frame.body;
  Line told = reply_line(*found->second, frame.header.code, body, client, processes_);
  told.further("write", std::to_string(connection.writes));
  told.further("parts", std::to_string(std::exchange(connection.parts_count, 0)));
  line(std::move(told.words)).fields = std::move(told.fields);
  client.unacknowledged.push_back(frame.header.id);
}

}  // namespace muster::script
