#include "client_runner.h"

#include "wire/reply.h"

namespace muster::script {

std::vector<Line> ClientRunner::run(const Step& step, const std::string& actor) {
  Arguments arguments(step.words);
  step_began_ = now_;
  lines_.clear();
  if (step.verb == "+") {
    pass(duration_of(arguments.next("a time")).value());
  } else if (actor == "server") {
    run_server_step(step.verb, arguments);
  } else if (!actor.empty()) {
    throw ScriptError("nobody is called " + actor);
  } else if (!run_network_step(step.verb, arguments)) {
    run_client_step(step.verb, arguments);
  }
  arguments.finish();
  return std::exchange(lines_, {});
}

void ClientRunner::open(Arguments& arguments) {
  protocol::Options options;
  options.where = "server:29500";
  options.jitter_seed = static_cast<std::uint64_t>(arguments.number("seed").value_or(1));
  if (auto given = arguments.duration("hello_timeout")) options.hello_timeout = *given;
  if (auto given = arguments.duration("unavailable_after")) options.unavailable_after = *given;
  if (auto given = arguments.duration("wait_for_server")) options.wait_for_server = *given;
  if (auto given = arguments.duration("backoff_min")) options.backoff_min = *given;
  if (auto given = arguments.duration("backoff_max")) options.backoff_max = *given;
  protocol_ = std::make_unique<protocol::Protocol>(std::move(options));
  client_.name = "client";
  machine().open(now_);
  tell_effects();
}

void ClientRunner::run_client_step(const std::string& verb, Arguments& arguments) {
  if (verb == "open") return open(arguments);
  if (verb == "logs") {
    shows_logs_ = true;
    return;
  }
  if (verb == "call") return call(arguments);
  if (verb == "counters") return tell_counters();
  if (verb == "group") {
    wire::FormedReply formed;
    formed.epoch = static_cast<std::uint64_t>(arguments.number("epoch").value_or(7));
    formed.world_size = static_cast<std::uint32_t>(arguments.number("of").value_or(3));
    group_ = std::make_unique<protocol::GroupState>(formed);
    client_.groups["g"] = GroupHandle{formed.epoch, 1, 1, {}};
    client_.current_group = "g";
    return;
  }
  if (verb == "cancel") {
    const auto id = static_cast<std::uint64_t>(number_of(arguments.next("a call")));
    machine().cancel(id, now_);
  } else if (verb == "accept" || verb == "refuse") {
    using protocol::Verdict;
    const auto id = static_cast<std::uint64_t>(number_of(arguments.next("a call")));
    machine().conclude(id, verb == "accept" ? Verdict::accepted : Verdict::refused, now_);
  } else if (verb == "close") {
    machine().close(now_);
  } else if (verb == "reopen") {
    machine().open(now_);
  } else if (verb == "failure") {
    const Error* failure = machine().session().failure();
    line(failure == nullptr ? "none" : std::string(muster::name_of(failure->code)));
  } else if (verb == "stopped") {
    now_ += duration_of(arguments.next("a time")).value();
  } else if (verb == "wakes") {
    apply(protocol::Advance{});
  } else {
    throw ScriptError("no such step: " + verb);
  }
  tell_effects();
}

bool ClientRunner::run_network_step(const std::string& verb, Arguments& arguments) {
  const std::string detail = arguments.bytes("detail").value_or("");
  if (verb == "connected") {
    attempts_ = Attempts::in_script;
    apply(protocol::Connected{""});
  } else if (verb == "refused") {
    apply(protocol::ConnectFailed{protocol::ConnectFailure::refused,
                                  detail.empty() ? "refused" : detail});
  } else if (verb == "unreachable") {
    apply(protocol::ConnectFailed{protocol::ConnectFailure::silent,
                                  detail.empty() ? "no route" : detail});
  } else if (verb == "not_resolved") {
    apply(protocol::ConnectFailed{protocol::ConnectFailure::not_resolved,
                                  detail.empty() ? "no such host" : detail});
  } else if (verb == "new_key") {
    apply(protocol::NewKey{});
  } else if (verb == "lost") {
    const bool of_attempt = arguments.flag("attempt");
    apply(protocol::Disconnected{true, detail, of_attempt, arguments.flag("not_admitted")});
  } else {
    return false;
  }
  tell_effects();
  return true;
}

void ClientRunner::run_server_step(const std::string& verb, Arguments& arguments) {
  if (verb == "lives" || verb == "falls_silent") {
    server_lives_ = verb == "lives";
  } else if (verb == "is_down") {
    attempts_ = arguments.flag("shown") ? Attempts::refused_and_shown : Attempts::refused;
  } else if (verb == "is_unreachable") {
    attempts_ = Attempts::hanging;
  } else if (verb == "is_back") {
    attempts_ = Attempts::in_script;
  } else if (verb == "hello") {
    receive(hello_bytes(arguments, processes_, 0), true);
  } else if (verb == "refuses") {
    const auto status = static_cast<std::uint16_t>(code_of(arguments.next("an error's name")));
    receive(hello_bytes(arguments, processes_, status), true);
  } else if (verb == "reply") {
    const auto id = static_cast<std::uint64_t>(number_of(arguments.next("a call")));
    const auto found = asked_.find(id);
    Asked nobody;
    nobody.owned.request.body = wire::Get{};
    receive(reply_bytes(found == asked_.end() ? nobody : *found->second, id, arguments));
  } else if (verb == "error") {
    const auto id = static_cast<std::uint64_t>(number_of(arguments.next("a call")));
    receive(error_bytes(id, arguments));
  } else if (verb == "event") {
    receive(event_bytes(arguments));
  } else if (verb == "heartbeat_reply") {
    const auto number = arguments.next();
    wire::FrameHeader header;
    header.type = wire::FrameType::heartbeat_reply;
    header.id = number ? static_cast<std::uint64_t>(number_of(*number)) : heartbeat_;
    std::string bytes;
    wire::append_frame(bytes, header, "");
    receive(std::move(bytes));
  } else if (verb == "goodbye") {
    std::string bytes;
    wire::append_goodbye(bytes, arguments.bytes("reason").value_or(""));
    receive(std::move(bytes));
  } else if (verb == "bytes") {
    receive(bytes_of(arguments.next("bytes")));
  } else {
    throw ScriptError("the server does no such thing: " + verb);
  }
  tell_effects();
}

/// As a rim does it: nothing happens but at the deadlines that the protocol gives.
void ClientRunner::pass(Duration duration) {
  const protocol::Instant end = now_ + duration;
  time_passes_ = true;
  for (int rounds = 0; machine().next_deadline() <= end; ++rounds) {
    if (rounds > 100000) throw ScriptError("the same deadline comes again and again");
    now_ = std::max(now_, machine().next_deadline());
    apply(protocol::Advance{});
    tell_effects();
  }
  now_ = end;
  time_passes_ = false;
}

void ClientRunner::call(Arguments& arguments) {
  const bool is_lasting = arguments.flag("lasting");
  const bool is_held = arguments.flag("held");
  const std::string verb = arguments.next("a request");
  auto asked = request_of(verb, arguments, client_, processes_);
  if (asked == nullptr) throw ScriptError("no such request: " + verb);
  wire::Request& request = asked->owned.request;
  if (group_ != nullptr) {
    if (const auto refused = number(request.body)) {
      Line& told = line("not called");
      told.with("code", std::string(muster::name_of(refused->code)));
      return;
    }
  }
  const auto receipt = is_held ? protocol::Receipt::by_caller : protocol::Receipt::at_once;
  const auto id = is_lasting ? machine().submit_lasting(request.body, now_)
                             : machine().submit(request.body, request.timeout, now_, 0, receipt);
  asked_.emplace(id, std::move(asked));
  tell_effects();
}

/// Gives the request its number as the handle of its group would.
std::optional<Error> ClientRunner::number(wire::RequestBody& body) {
  Result<std::uint64_t> begun = std::uint64_t{0};
  if (auto* collective = std::get_if<wire::CollectiveCall>(&body)) {
    begun = group_->begin_round();
    if (begun) collective->round = *begun;
  } else if (auto* send = std::get_if<wire::Send>(&body)) {
    begun = group_->begin_send(send->destination, send->tag);
    if (begun) send->sequence = *begun;
  } else if (auto* receive = std::get_if<wire::Receive>(&body)) {
    begun = group_->begin_receive(receive->source, receive->tag);
    if (begun) receive->sequence = *begun;
  } else if (auto* regroup = std::get_if<wire::Regroup>(&body)) {
    begun = group_->begin_regroup();
    if (begun) regroup->attempt = *begun;
  } else if (auto* recover = std::get_if<wire::Recover>(&body)) {
    *recover = group_->doubts();
  }
  if (begun) return std::nullopt;
  return begun.error();
}

void ClientRunner::unnumber(const Asked& asked, const Error* error, protocol::Fate fate) {
  if (group_ == nullptr) return;
  const wire::RequestBody& body = asked.owned.request.body;
  if (std::holds_alternative<wire::CollectiveCall>(body)) {
    group_->end_round(error, fate);
  } else if (const auto* send = std::get_if<wire::Send>(&body)) {
    group_->end_send(send->destination, send->tag, error, fate);
  } else if (const auto* receive = std::get_if<wire::Receive>(&body)) {
    group_->end_receive(receive->source, receive->tag, error);
  } else if (std::holds_alternative<wire::Regroup>(body)) {
    group_->end_regroup(error, fate);
  }
}

void ClientRunner::resolve(const Asked& asked, std::string_view body) {
  const auto* recover = std::get_if<wire::Recover>(&asked.owned.request.body);
  if (recover == nullptr || group_ == nullptr) return;
  const auto reply = wire::decode_body<wire::RecoverReply>(body);
  if (!reply) throw ScriptError("a recover's reply cannot be decoded");
  group_->resolve(*recover, *reply);
}

void ClientRunner::tell_counters() {
  Line& told = line("counters");
  told.with("rounds", std::to_string(group_->rounds()));
  told.with("sent", std::to_string(group_->objects_sent()));
  told.with("received", std::to_string(group_->objects_received()));
  told.with("in_doubt", group_->in_doubt() ? "yes" : "no");
}

void ClientRunner::apply(const protocol::Input& input) { machine().apply(input, now_); }

/// In two parts, since the network cuts where it likes.
void ClientRunner::receive(std::string bytes, bool of_attempt) {
  const std::size_t half = bytes.size() / 2;
  apply(protocol::Received{std::string_view(bytes).substr(0, half), of_attempt});
  apply(protocol::Received{std::string_view(bytes).substr(half), of_attempt});
}

void ClientRunner::tell_effects() {
  if (protocol_ == nullptr) return;  // the script has set the scene only
  for (auto effects = machine().effects().take(); !effects.empty();
       effects = machine().effects().take()) {
    for (const auto& effect : effects) {
      std::visit([this](const auto& each) { tell(each); }, effect);
    }
  }
}

Line& ClientRunner::line(std::string words) {
  Line& made = lines_.emplace_back();
  made.words = std::move(words);
  if (time_passes_) made.at = now_ - step_began_;
  return made;
}

protocol::Protocol& ClientRunner::machine() {
  if (protocol_ == nullptr) throw ScriptError("the script does not begin with `open`");
  return *protocol_;
}

}  // namespace muster::script
