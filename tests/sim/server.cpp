#include "server.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "support/decoded.h"

namespace muster::sim {
namespace {

/// What a socket takes before its client does.
constexpr std::uint64_t socket_bytes = 4096;

}  // namespace

Server::Server(Scheduler& scheduler, Network& network, Random& random, core::Options options,
               Clock clock)
    : scheduler_(scheduler),
      network_(network),
      random_(random),
      options_(std::move(options)),
      clock_(clock),
      alarm_(scheduler, [this] {
        when_running([this] {
          if (!is_up() || !alarm_.is_due()) return;
          apply(core::Advance{});
          continue_postponed();
        });
      }) {
  network_.taken = [this](Network::ConnectionId connection, std::size_t bytes) {
    when_running([this, connection, bytes] { taken(connection, bytes); });
  };
  start();
}

void Server::start() {
  ++options_.incarnation;
  engine_ = std::make_unique<core::Engine>(options_);
  last_event_ = clock_.shows(scheduler_.now());
  if (witness_ != nullptr) witness_->started();
  if (guest_model_ != nullptr) guest_model_->started();
  looks_again_ = {};
  arm();
}

std::string Server::report_of_group(const std::string& name_space, const std::string& group) {
  core::Looked looked;
  engine_->inspector().go_on({core::Look::Subject::group, name_space, group}, looked);
  return looked.pages.empty() ? std::string() : looked.pages.front();
}

void Server::die() {
  peers_.clear();
  engine_.reset();
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

void Server::regrant(core::Regrant event) {
  when_running([this, event = std::move(event)] {
    if (!is_up()) return;
    witness_->regranted(event);
    apply(event);
    witness_->check_rights();
  });
}

void Server::accept(Network::ConnectionId connection) {
  peers_[connection].client = network_.client_of(connection);
  set_end(connection);
}

void Server::set_end(Network::ConnectionId connection) {
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
  auto found = peers_.extract(connection);
  if (found.empty()) return;
  engine_->memory().replies.release(found.mapped().unsent_bytes);
  if (found.mapped().guest != nullptr)
    guest_model_->gone(connection, clock_.shows(scheduler_.now()));
  // One that has said no hello is no session's yet.
  if (lost_connection && found.mapped().has_said_hello) lost_connection(found.mapped().client);
  witness_->closed(connection);
  observe_time();
  handle(core::Disconnected{connection, core::DisconnectCause::closed});
  found = {};  // what it holds goes last
  finish_event();
  continue_postponed();
}

void Server::received(Network::ConnectionId connection, std::string_view bytes) {
  const auto found = peers_.find(connection);
  if (found == peers_.end()) return;
  if (found->second.guest != nullptr) return received_of_guest(connection, bytes);
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
  core::Hello event{
      connection, *hello, {}, hello->process.host, grant_of(peers_.at(connection).client)};
  for (std::uint8_t& byte : event.fresh_token.bytes) {
    byte = static_cast<std::uint8_t>(random_.next());
  }
  hello_ = &event;
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
  const auto is_postponed = [&] {
    const auto found = peers_.find(connection);
    return found != peers_.end() && found->second.is_postponed;
  };
  while (!is_postponed()) {
    const auto bytes = take_frame(connection);
    if (!bytes) return;
    read_frame(connection, **wire::cut_frame(*bytes, options_.limits.request_bytes_max()), *bytes);
  }
}

/// Other effects may stand before it: what the request acknowledges counts already, and may end a
/// wait of another session.
bool Server::is_postponed(const std::vector<core::Effect>& effects) {
  return std::any_of(effects.begin(), effects.end(), [](const core::Effect& effect) {
    return std::holds_alternative<core::Postpone>(effect);
  });
}

/// A request for whose reply there is no room waits with all that is behind it, and those go who
/// take least, all at once: the simulation's clients wait for nobody.
void Server::request(Network::ConnectionId connection, const wire::Request& request,
                     std::string_view bytes) {
  core::Requested event{connection, &request};
  for (;;) {
    const auto peer = peers_.find(connection);
    if (peer == peers_.end()) return;
    observe_time();
    event.unsent.of_peer_bytes = peer->second.unsent_bytes;
    const std::vector<core::Effect>& effects = engine_->apply(event, last_event_);
    const bool waits = is_postponed(effects);
    if (waits) {
      witness_->acknowledged(connection, request.acknowledged);
    } else {
      // The request may have waited: then nothing has arrived just now.
      if (heard) heard(peer->second.client);
      witness_->heard(connection);
      witness_->asked(connection, request);
    }
    carry_out_all(effects);
    finish_event();
    if (!waits) return;
    if (let_heaviest_go(connection)) continue;
    const auto waiting = peers_.find(connection);
    if (waiting == peers_.end()) return;
    waiting->second.is_postponed = true;
    waiting->second.bytes.insert(0, bytes);
    return;
  }
}

/// returns  whether there was one for whom more waits than for the one that asks
bool Server::let_heaviest_go(Network::ConnectionId asker) {
  auto heaviest = peers_.end();
  for (auto each = peers_.begin(); each != peers_.end(); ++each) {
    if (heaviest == peers_.end() || each->second.unsent_bytes > heaviest->second.unsent_bytes) {
      heaviest = each;
    }
  }
  const bool is_other = heaviest->second.unsent_bytes > 0 && heaviest->first != asker;
  if (!is_other) return false;
  const Network::ConnectionId connection = heaviest->first;
  if (lets_go && heaviest->second.guest == nullptr) lets_go(heaviest->second.client);
  network_.close(connection, Side::server);
  lost(connection);
  return true;
}

void Server::taken(Network::ConnectionId connection, std::size_t bytes) {
  const auto found = peers_.find(connection);
  if (found == peers_.end()) return;
  found->second.under_way_bytes -= std::min<std::uint64_t>(found->second.under_way_bytes, bytes);
  charge(found->second);
  continue_postponed();
}

void Server::continue_postponed() {
  std::vector<Network::ConnectionId> waiting;
  for (auto& [id, peer] : peers_) {
    if (std::exchange(peer.is_postponed, false)) waiting.push_back(id);
  }
  for (const Network::ConnectionId id : waiting) {
    guest_on(id) != nullptr ? read_guest(id) : read_frames(id);
  }
}

void Server::charge(Peer& peer) {
  core::Quota& replies = engine_->memory().replies;
  replies.release(peer.unsent_bytes);
  peer.unsent_bytes = peer.under_way_bytes - std::min(peer.under_way_bytes, socket_bytes);
  replies.charge_always(peer.unsent_bytes);
}

void Server::transmit(Network::ConnectionId connection, std::string_view bytes) {
  const std::size_t sent = network_.send(connection, Side::server, bytes);
  const auto found = peers_.find(connection);
  if (found == peers_.end()) return;
  found->second.under_way_bytes += sent;
  charge(found->second);
}

void Server::read_frame(Network::ConnectionId connection, const wire::Frame& frame,
                        std::string_view bytes) {
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
    const auto decoded = test::decoded_request(frame);
    if (!decoded) throw std::logic_error("the protocol sent a request that cannot be read");
    return request(connection, *decoded, bytes);
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

void Server::observe_time() {
  const Instant now = clock_.shows(scheduler_.now());
  const Duration late = now - std::exchange(last_event_, now);
  guest_model_->time_is(now);
  // To handle an event takes no time here, so whenever it is late the process did not run.
  if (late <= options_.gap_max) return;
  looks_again_ = now + options_.drain_after_gap;
  handle(core::Late{late, late});
}

void Server::apply(const core::Event& event) {
  observe_time();
  handle(event);
  const bool looks = std::holds_alternative<core::Advance>(event) && last_event_ >= looks_again_;
  if (looks) guest_model_->looked_at(last_event_);
  finish_event();
}

void Server::finish_event() {
  while (engine_->has_backlog()) handle(core::Continue{});
  witness_->check(engine_->counts(), guest_model_->counts());
  guest_model_->check();
  arm();
}

void Server::handle(const core::Event& event) { carry_out_all(engine_->apply(event, last_event_)); }

void Server::carry_out_all(const std::vector<core::Effect>& effects) {
  for (const core::Effect& effect : effects) {
    std::visit([this](const auto& each) { carry_out(each); }, effect);
  }
}

void Server::carry_out(const core::SendHello& effect) {
  if (Guest* const guest = guest_on(effect.connection)) return welcome_guest(*guest, effect);
  if (is_neighbour(effect.connection)) return;
  witness_->greeted(effect.connection, hello_->hello, *effect.hello);
  witness_->granted(effect.connection, *hello_);
  std::string bytes;
  wire::append_server_hello(bytes, *effect.hello);
  transmit(effect.connection, bytes);
}

void Server::carry_out(const core::SendReply& effect) {
  if (Guest* const guest = guest_on(effect.connection)) return answer_guest(*guest, effect);
  if (answer_neighbour(effect)) return;
  guest_model_->answers_other(effect.connection);
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
  transmit(effect.connection, bytes);
}

void Server::carry_out(const core::Close& effect) {
  witness_->closes(effect.connection);
  if (const auto found = peers_.extract(effect.connection)) {
    engine_->memory().replies.release(found.mapped().unsent_bytes);
    if (!found.mapped().is_neighbour) guest_model_->closed_by_engine(effect.connection);
    guest_model_->gone(effect.connection, last_event_);
  }
  network_.close(effect.connection, Side::server);
}

void Server::carry_out(const core::Log&) {}

/// Whoever handed the request in keeps it.
void Server::carry_out(const core::Postpone&) {}

void Server::send(Network::ConnectionId connection, wire::FrameHeader header,
                  std::string_view body) {
  std::string bytes;
  wire::append_frame(bytes, header, body);
  transmit(connection, bytes);
}

void Server::arm() {
  const Instant when = clock_.real(engine_->next_deadline());
  // The rim looks at least four times in the gap that means "this process did not run".
  const Instant latest = scheduler_.now() + options_.gap_max / 5;
  alarm_.set(std::min(when, latest));
}

}  // namespace muster::sim
