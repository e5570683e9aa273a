#include <algorithm>
#include <cstring>

#include "base/monotonic_now.h"
#include "base/random.h"
#include "core/session/failure.h"
#include "server/service.h"

// A newcomer's life: accepted -> its hello is collected in a buffer of fixed size -> the engine
// answers it -> it is a peer whose frames are handled. There may be so many newcomers; while there
// are, no more are accepted, and others wait in the kernel's backlog where they cost nothing.

namespace muster::server {
namespace {

constexpr std::size_t leaving_max = 256;  // while so many take their last bytes, nobody is accepted

}  // namespace

void Service::accepted(net::UniqueFd fd, const net::SocketAddress& address) {
  now_ = base::monotonic_now();
  // To the system a peer that takes nothing is as one that is gone: it would end the connection
  // before `close_slow_peers` can say why.
  const Duration gone_after = stall_time_max + std::chrono::seconds(5);
  auto connection =
      net::Connection::create(loop_, std::move(fd), address,
                              std::max(engine_.options().limits.session_timeout, gone_after));
  if (peers_.count() >= settings_.connections_max) {
    const std::string detail = "the server is full: connections_max is reached";
    log_.bounded_line(LogLevel::warning, connection->peer() + ": refused: " + detail, now_);
    connection->send(refusal(ErrorCode::busy, detail));
    connection->close_after_flush(leaving_time);
    leaving_.push_back(std::move(connection));
    return control_accepting();
  }
  if (log_.is_on()) log_.line(LogLevel::debug, connection->peer() + ": accepted");
  const ConnectionId id = peers_.next_id();
  Peer& peer =
      peers_.add(std::make_unique<Peer>(id, std::move(connection), engine_.quota(), frame_limits_));
  newcomers_.add(peer, address, now_);
  peer.connection->start(
      {[this, id](std::string_view bytes) { received(id, bytes); },
       [this, id](net::CloseCause cause, const std::string& detail) { closed(id, cause, detail); },
       [this, id] { drained(id); }});
  control_accepting();
  arm_timer();
}

void Service::control_accepting() {
  if (leaving_.size() >= leaving_max) forget_left();
  const bool is_full = newcomers_.is_full() || leaving_.size() >= leaving_max;
  for (const auto& listener : listeners_) {
    const bool counts_hosts = !listener->address().is_local_only();
    if (is_full || (counts_hosts && newcomers_.has_full_host())) {
      listener->pause();
    } else {
      listener->resume();
    }
  }
}

void Service::forget_left() {
  std::erase_if(leaving_, [](const auto& connection) { return !connection->is_lingering(); });
}

void Service::received_hello(Peer& peer, std::string_view bytes) {
  HelloStage& stage = *peer.hello;
  const std::size_t count = std::min(bytes.size(), stage.bytes.size() - stage.count);
  std::memcpy(stage.bytes.data() + stage.count, bytes.data(), count);
  stage.count += count;
  if (const auto known = wire::check_magic({stage.bytes.data(), stage.count}); !known) {
    return refuse(peer, known.error());
  }
  if (stage.count == stage.bytes.size()) complete_hello(peer, bytes.substr(count));
}

void Service::complete_hello(Peer& peer, std::string_view rest) {
  const ConnectionId id = peer.id;
  const auto hello = wire::decode_client_hello({peer.hello->bytes.data(), peer.hello->count});
  if (!hello) return refuse(peer, hello.error());
  newcomers_.remove(peer);
  control_accepting();
  if (log_.is_on()) peer.process = core::describe(hello->process);
  core::Hello event;
  event.connection = id;
  event.hello = *hello;
  base::fill_random(event.fresh_token.bytes.data(), event.fresh_token.bytes.size());
  apply(event);
  Peer* const welcome = peers_.find(id);
  if (welcome == nullptr || rest.empty()) return;
  welcome->frames.give(rest);
  cut_frames(id);
}

void Service::close_overdue_newcomers() {
  while (const auto id = newcomers_.take_overdue(now_)) {
    Peer* const peer = peers_.find(*id);
    if (peer == nullptr || !peer->hello) continue;
    Error error;
    error.code = ErrorCode::timed_out;
    error.detail = "no whole hello came within 2 s";
    refuse(*peer, error);
  }
}

void Service::refuse(Peer& peer, const Error& why) {
  log_.bounded_line(LogLevel::debug, name_of(peer) + ": refused: " + why.detail, now_);
  peer.connection->send(refusal(why.code, why.detail));
  let_leave(take_out(peer));
  control_accepting();
}

std::string Service::refusal(ErrorCode code, const std::string& detail) const {
  wire::ServerHello hello;
  hello.status = static_cast<std::uint16_t>(code);
  hello.incarnation = engine_.options().incarnation;
  hello.detail = detail;
  std::string bytes;
  wire::append_server_hello(bytes, hello);
  return bytes;
}

}  // namespace muster::server
