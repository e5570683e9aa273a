// What the protocol does: effects in, lines out.

#include <algorithm>
#include <utility>

#include "client_runner.h"
#include "support/decoded.h"

namespace muster::script {
namespace {

std::string text_of_ids(const std::vector<std::uint64_t>& ids) {
  std::vector<std::string> parts;
  for (const std::uint64_t id : ids) parts.push_back(std::to_string(id));
  return joined(parts, ",");
}

Line hello_line(std::string_view bytes) {
  const auto hello = wire::decode_client_hello(bytes);
  if (!hello) throw ScriptError("a hello cannot be decoded");
  Line line;
  line.words = "transmit hello";
  if (hello->session_id != 0) line.with("session", std::to_string(hello->session_id));
  line.further("incarnation", std::to_string(hello->incarnation));
  return line;
}

/// The words and numbers of a request that say which one it is.
struct Telling {
  Line& line;

  void operator()(const wire::CollectiveCall& body) const {
    line.words += " " + std::string(wire::name_of(body.collective));
    line.with("round", std::to_string(body.round));
  }
  void operator()(const wire::Send& body) const {
    line.words += " send";
    line.with("sequence", std::to_string(body.sequence));
    line.further("to", std::to_string(body.destination));
  }
  void operator()(const wire::Receive& body) const {
    line.words += " receive";
    line.with("sequence", std::to_string(body.sequence));
    line.further("from", std::to_string(body.source));
  }
  void operator()(const wire::Regroup& body) const {
    line.words += " regroup";
    line.with("attempt", std::to_string(body.attempt));
  }
  void operator()(const wire::Recover& body) const {
    line.words += " recover";
    line.with("round", std::to_string(body.round));
    line.further("streams", std::to_string(body.streams.size()));
  }
  template <class Body>
  void operator()(const Body& body) const {
    line.words += " " + std::string(wire::name_of(wire::operation_of(wire::RequestBody(body))));
  }
};

Line request_line(const wire::Frame& frame) {
  const auto request = test::decoded_request(frame);
  if (!request) throw ScriptError("a request cannot be decoded: " + request.error().message());
  Line line;
  line.words = "transmit";
  std::visit(Telling{line}, request->body);
  line.with("id", std::to_string(request->id));
  line.with("timeout", script::text_of(request->timeout));
  if (!request->acknowledged.empty()) line.with("acks", text_of_ids(request->acknowledged));
  return line;
}

/// Whether the frame is the echo of the hellos of scripts.
bool is_echo(const wire::Frame& frame) {
  if (frame.header.type != wire::FrameType::echo) return false;
  const auto token = wire::decode_echo(frame);
  if (!token || *token != script_token()) throw ScriptError("a wrong echo is transmitted");
  return true;
}

/// Cuts the first frame off; nothing while it is not whole.
std::optional<wire::Frame> take_frame(std::string_view& bytes) {
  const auto frame = wire::cut_frame(bytes, 0xffffffff);
  if (!frame.has_value()) throw ScriptError("a frame cannot be cut");
  if (*frame) bytes.remove_prefix(wire::frame_header_bytes + (*frame)->body.size());
  return *frame;
}

Line frame_line(const wire::Frame& frame) {
  using wire::FrameType;
  Line line;
  switch (frame.header.type) {
    case FrameType::request: return request_line(frame);
    case FrameType::goodbye: line.words = "transmit goodbye"; return line;
    case FrameType::acknowledge: line.words = "transmit acknowledge"; break;
    case FrameType::abandon: line.words = "transmit abandon"; break;
    case FrameType::heartbeat: line.words = "transmit heartbeat"; break;
    default: throw ScriptError("a client sends no such frames");
  }
  const auto ids = test::decoded_ids(frame);
  if (!ids) throw ScriptError("ids cannot be decoded");
  if (frame.header.type == FrameType::heartbeat) {
    line.with("number", std::to_string(frame.header.id));
  }
  if (!ids->empty() || frame.header.type != FrameType::heartbeat) {
    line.with(frame.header.type == FrameType::heartbeat ? "acks" : "ids", text_of_ids(*ids));
  }
  return line;
}

}  // namespace

std::optional<Line> take_line(std::string_view& bytes) {
  if (wire::check_magic(bytes)) return hello_line(std::exchange(bytes, {}));
  std::string_view rest = bytes;
  auto frame = take_frame(rest);
  const bool is_first = frame && is_echo(*frame);
  if (is_first) frame = take_frame(rest);
  if (!frame) return std::nullopt;
  bytes = rest;
  Line line = frame_line(*frame);
  line.further("echo", is_first ? "yes" : "no");
  return line;
}

Line completion_line(protocol::CallId call, const Asked& asked, const Result<std::string>& reply,
                     protocol::Fate fate, Client& client, const Processes& processes) {
  Line told;
  told.words = "complete " + std::to_string(call);
  if (reply) {
    const Line read = reply_line(asked, 0, *reply, client, processes);
    told.words += read.words.substr(client.name.size() + 1);
    told.fields = read.fields;
    return told;
  }
  const Error& error = reply.error();
  told.words += " " + std::string(muster::name_of(error.code));
  script::tell(told, error, processes);
  told.further("where", error.where);
  if (fate == protocol::Fate::unsent) told.with("fate", "unsent");
  if (fate == protocol::Fate::in_doubt) told.with("fate", "in_doubt");
  return told;
}

void ClientRunner::tell(const protocol::Connect&) {
  const bool refused = attempts_ == Attempts::refused || attempts_ == Attempts::refused_and_shown;
  if (attempts_ == Attempts::in_script || attempts_ == Attempts::refused_and_shown) {
    line("connect");
  }
  if (refused) {
    apply(protocol::ConnectFailed{protocol::ConnectFailure::refused, "connection refused"});
  }
}

void ClientRunner::tell(const protocol::Disconnect& effect) {
  if (attempts_ != Attempts::hanging) line(effect.is_silent ? "set_aside" : "disconnect");
}

void ClientRunner::tell(const protocol::Transmit& effect) {
  for (std::string_view left = effect.bytes; !left.empty();) {
    auto told = take_line(left);
    if (!told) throw ScriptError("half a frame is transmitted");
    tell_transmitted(*std::move(told));
  }
}

void ClientRunner::tell_transmitted(Line told) {
  if (told.words == "transmit heartbeat") {
    const auto number = static_cast<std::uint64_t>(number_of(told.fields.front().value));
    heartbeat_ = number;
    if (server_lives_) {
      std::string bytes;
      wire::FrameHeader header;
      header.type = wire::FrameType::heartbeat_reply;
      header.id = number;
      wire::append_frame(bytes, header, "");
      apply(protocol::Received{bytes});
      const auto tells_of_replies = [](const auto& field) { return field.name == "acks"; };
      if (std::none_of(told.fields.begin(), told.fields.end(), tells_of_replies)) return;
    }
  }
  line("") = std::move(told);
  if (time_passes_) lines_.back().at = now_ - step_began_;
}

void ClientRunner::tell(const protocol::Complete& effect) {
  const auto found = asked_.find(effect.call);
  if (found == asked_.end()) throw ScriptError("a call is over twice");
  const std::unique_ptr<Asked> asked = std::move(found->second);
  asked_.erase(found);
  unnumber(*asked, effect.reply ? nullptr : &effect.reply.error(), effect.fate);
  if (effect.reply) resolve(*asked, *effect.reply);
  Line& told = line("");
  const auto at = told.at;
  told = completion_line(effect.call, *asked, effect.reply, effect.fate, client_, processes_);
  told.at = at;
}

void ClientRunner::tell(const protocol::Notify& effect) {
  const wire::Event& event = effect.event;
  std::string kind = "epoch_broken";
  if (event.kind == wire::EventKind::rank_left) kind = "rank_left";
  if (event.kind == wire::EventKind::session_ended) kind = "session_ended";
  Line& told = line("notify " + kind + " " + std::string(muster::name_of(event.error.code)));
  if (event.epoch != 0) told.with("epoch", std::to_string(event.epoch));
  script::tell(told, event.error, processes_);
}

void ClientRunner::tell(const protocol::Established& effect) {
  line(effect.resumed ? "resumed" : "established");
}

void ClientRunner::tell(const protocol::Log& effect) {
  if (!shows_logs_ || effect.level == LogLevel::debug) return;
  line("log").with("line", in_quotes(effect.line));
}

}  // namespace muster::script
