#include "server.h"

#include <stdexcept>
#include <utility>

#include "support/decoded.h"

namespace muster::sim {

Server::Server(Scheduler& scheduler, Network& network, Random& random, core::Options options,
               Clock clock)
    : scheduler_(scheduler),
      network_(network),
      random_(random),
      options_(std::move(options)),
      clock_(clock),
      alarm_(scheduler, [this] {
        when_running([this] {
          if (is_up() && alarm_.is_due()) apply(core::Advance{});
        });
      }) {
  start();
}

void Server::start() {
  ++options_.incarnation;
  engine_ = std::make_unique<core::Engine>(options_);
  last_event_ = clock_.shows(scheduler_.now());
  if (witness_ != nullptr) witness_->started();
  arm();
}

void Server::die() {
  engine_.reset();
  peers_.clear();
  deferred_.clear();
  stopped_until_ = {};
  alarm_.unset();
  network_.server_died();
}

void Server::stop_for(Duration duration) {
  stopped_until_ = scheduler_.now() + duration;
  scheduler_.at(stopped_until_, [this] {
    // Whether timers or sockets are looked at first is chance.
    if (is_up() && !is_stopped() && random_.one_in(2)) apply(core::Advance{});
    while (!is_stopped() && !deferred_.empty()) {
      const auto what = std::move(deferred_.front());
      deferred_.pop_front();
      what();
    }
  });
}

void Server::when_running(std::function<void()> what) {
  if (is_running()) return what();
  deferred_.push_back(std::move(what));
}

void Server::accept(Network::ConnectionId connection) {
  peers_[connection].client = network_.client_of(connection);
  network_.set_end(
      connection, Side::server,
      {[this, connection](std::string_view bytes) {
         if (is_running()) return received(connection, bytes);
         deferred_.emplace_back(
             [this, connection, owned = std::string(bytes)] { received(connection, owned); });
       },
       [this, connection] { when_running([this, connection] { lost(connection); }); }});
}

void Server::lost(Network::ConnectionId connection) {
  const auto found = peers_.extract(connection);
  if (found.empty()) return;
  // One that has said no hello is no session's yet.
  if (lost_connection && found.mapped().has_said_hello) lost_connection(found.mapped().client);
  witness_->closed(connection);
  apply(core::Disconnected{connection, core::DisconnectCause::closed});
}

void Server::received(Network::ConnectionId connection, std::string_view bytes) {
  const auto found = peers_.find(connection);
  if (found == peers_.end()) return;
  found->second.bytes.append(bytes);
  // Whose session it is, is known when the hello is there as a whole.
  const bool is_unknown = !found->second.has_said_hello;
  if (is_unknown && found->second.bytes.size() < wire::client_hello_bytes) return;
  if (heard) heard(found->second.client);
  if (is_unknown) {
    found->second.has_said_hello = true;
    read_hello(connection, found->second.bytes);
  } else {
    witness_->heard(connection);
    apply(core::Heard{connection});
  }
  read_frames(connection);
}

void Server::read_hello(Network::ConnectionId connection, std::string& bytes) {
  const auto hello = wire::decode_client_hello(bytes.substr(0, wire::client_hello_bytes));
  if (!hello) throw std::logic_error("the protocol said a hello that cannot be read");
  bytes.erase(0, wire::client_hello_bytes);
  core::Hello event{connection, *hello, {}, hello->process.host};
  for (std::uint8_t& byte : event.fresh_token.bytes) {
    byte = static_cast<std::uint8_t>(random_.next());
  }
  hello_ = &event.hello;
  witness_->hello_comes(event.hello.session_id);
  apply(event);
}

/// The bytes of the next frame that is there as a whole.
std::optional<std::string> Server::take_frame(Network::ConnectionId connection) {
  const auto found = peers_.find(connection);
  if (found == peers_.end()) return std::nullopt;
  std::string& bytes = found->second.bytes;
  const auto frame = wire::cut_frame(bytes, options_.limits.request_bytes_max());
  if (!frame.has_value()) throw std::logic_error("the protocol sent a frame that cannot be cut");
  if (!*frame) return std::nullopt;
  const std::size_t size = wire::frame_header_bytes + (*frame)->body.size();
  if (size == bytes.size()) return std::exchange(bytes, {});
  std::string taken = bytes.substr(0, size);
  bytes.erase(0, size);
  return taken;
}

/// Each frame is taken first: what it leads to may end the peer.
void Server::read_frames(Network::ConnectionId connection) {
  while (const auto bytes = take_frame(connection)) {
    read_frame(connection, **wire::cut_frame(*bytes, options_.limits.request_bytes_max()));
  }
}

void Server::read_frame(Network::ConnectionId connection, const wire::Frame& frame) {
  using wire::FrameType;
  if (frame.header.type == FrameType::goodbye) {
    witness_->said_goodbye(connection);
    return apply(core::Goodbye{connection});
  }
  if (frame.header.type == FrameType::echo) {
    const auto token = wire::decode_echo(frame);
    if (!token) throw std::logic_error("the protocol sent an echo that cannot be read");
    return apply(core::Echo{connection, *token});
  }
  if (frame.header.type == FrameType::request) {
    const auto request = test::decoded_request(frame);
    if (!request) throw std::logic_error("the protocol sent a request that cannot be read");
    witness_->asked(connection, *request);
    return apply(core::Requested{connection, &*request});
  }
  const auto ids = test::decoded_ids(frame);
  if (!ids) throw std::logic_error("the protocol sent ids that cannot be read");
  if (frame.header.type == FrameType::abandon) {
    witness_->abandoned(connection, *ids);
  } else {
    witness_->acknowledged(connection, *ids);
  }
  switch (frame.header.type) {
    case FrameType::acknowledge: return apply(core::Acknowledged{connection, &*ids});
    case FrameType::abandon: return apply(core::Abandoned{connection, &*ids});
    case FrameType::heartbeat: return apply(core::Heartbeat{connection, frame.header.id, &*ids});
    default: throw std::logic_error("a client sends no such frames");
  }
}

void Server::apply(const core::Event& event) {
  const Instant now = clock_.shows(scheduler_.now());
  const Duration late = now - std::exchange(last_event_, now);
  // To handle an event takes no time here, so whenever it is late the process did not run.
  if (late > options_.gap_max) handle(core::Late{late, late});
  handle(event);
  while (engine_->has_backlog()) handle(core::Continue{});
  witness_->check(engine_->counts());
  arm();
}

void Server::handle(const core::Event& event) {
  for (const core::Effect& effect : engine_->apply(event, last_event_)) {
    std::visit([this](const auto& each) { carry_out(each); }, effect);
  }
}

void Server::carry_out(const core::SendHello& effect) {
  witness_->greeted(effect.connection, *hello_, *effect.hello);
  std::string bytes;
  wire::append_server_hello(bytes, *effect.hello);
  network_.send(effect.connection, Side::server, bytes);
}

void Server::carry_out(const core::SendReply& effect) {
  witness_->answered(effect);
  wire::FrameHeader header;
  header.type = wire::FrameType::reply;
  header.code = effect.code;
  header.id = effect.request_id;
  std::string body = effect.head;
  body += effect.value;
  if (effect.tail != nullptr) body += effect.tail->view();
  send(effect.connection, header, body);
}

void Server::carry_out(const core::SendEvent& effect) {
  witness_->told(effect);
  wire::FrameHeader header;
  header.type = wire::FrameType::event;
  header.code = static_cast<std::uint16_t>(effect.kind);
  send(effect.connection, header, *effect.body);
}

void Server::carry_out(const core::SendHeartbeatReply& effect) {
  wire::FrameHeader header;
  header.type = wire::FrameType::heartbeat_reply;
  header.id = effect.number;
  send(effect.connection, header, "");
}

void Server::carry_out(const core::SendGoodbye& effect) {
  std::string bytes;
  wire::append_goodbye(bytes, effect.reason);
  network_.send(effect.connection, Side::server, bytes);
}

void Server::carry_out(const core::Close& effect) {
  witness_->closes(effect.connection);
  peers_.erase(effect.connection);
  network_.close(effect.connection, Side::server);
}

void Server::carry_out(const core::Log&) {}

void Server::carry_out(const core::Postpone&) {
  throw std::logic_error("a request waits for room although no reply does");
}

void Server::send(Network::ConnectionId connection, wire::FrameHeader header,
                  std::string_view body) {
  std::string bytes;
  wire::append_frame(bytes, header, body);
  network_.send(connection, Side::server, bytes);
}

void Server::arm() {
  const Instant when = clock_.real(engine_->next_deadline());
  // The rim looks at least four times in the gap that means "this process did not run".
  const Instant latest = scheduler_.now() + options_.gap_max / 5;
  alarm_.set(std::min(when, latest));
}

}  // namespace muster::sim
