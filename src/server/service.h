#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine.h"
#include "net/connection.h"
#include "net/listener.h"
#include "server/newcomers.h"
#include "server/peer.h"
#include "server/server_log.h"
#include "server/settings.h"
#include "wire/request.h"

namespace muster::server {

/// The rim of the engine: turns bytes, ends of connections and the clock into its events, and its
/// effects into bytes and closed connections. Used on the I/O thread only.
class Service : public std::enable_shared_from_this<Service> {
 public:
  Service(net::Loop& loop, Settings settings);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void start(std::vector<net::Listening> listenings);

  /// Waits until at most `own_sessions` are left, for `timeout` at most, and then for as long as
  /// the clients take to hear `reason`.
  ///
  /// done  runs once, with the number of sessions of others that were left
  void stop(std::string reason, Duration timeout, std::uint64_t own_sessions,
            std::function<void(std::uint64_t left)> done);
  /// The same without any waiting: what the sockets take at once is what the clients hear.
  ///
  /// returns  the number of sessions of others that were left
  std::uint64_t stop_now(const std::string& reason, std::uint64_t own_sessions);

  /// Ends it at once: something was thrown in the midst of its work, which cannot be trusted now.
  void fail(std::string_view why);

 private:
  using ConnectionId = core::ConnectionId;

  // service.cpp: the beginning, the clock, the end.
  void arm_timer();
  void tick();
  void continue_stopping();
  std::uint64_t users() const;
  std::uint64_t tell_all(const std::string& reason, std::uint64_t own_sessions);
  void close_everything();
  void release_everything();

  // service_accept.cpp: newcomers and their hellos.
  void accepted(net::UniqueFd fd, const net::SocketAddress& address);
  void control_accepting();
  void forget_left();
  void received_hello(Peer& peer, std::string_view bytes);
  void complete_hello(Peer& peer, std::string_view rest);
  void close_overdue_newcomers();
  void refuse(Peer& peer, const Error& why);
  std::string refusal(ErrorCode code, const std::string& detail) const;

  // service_frames.cpp: bytes to events.
  void received(ConnectionId id, std::string_view bytes);
  bool cut_frames(ConnectionId id);
  bool is_behind(Peer& peer);
  void hold(Peer& peer, std::uint64_t before_bytes);
  void drained(ConnectionId id);
  void go_on(ConnectionId id);
  void closed(ConnectionId id, net::CloseCause cause, const std::string& detail);
  void handle(ConnectionId id, const wire::Frame& frame, core::ChargedMemory* memory);
  void handle_request(ConnectionId id, const wire::Frame& frame, core::ChargedMemory* memory);
  void handle_unstorable(ConnectionId id, const FrameAssembler::Unstorable& frame);
  void reply_error(ConnectionId id, std::uint64_t request_id, const Error& error);
  void break_off(Peer& peer, const Error& why);

  // service_effects.cpp: effects to bytes.
  void apply(const core::Event& event);
  void tell_of_memory(bool is_short);
  void carry_out(core::SendHello& effect);
  void carry_out(core::SendReply& effect);
  void carry_out(core::SendEvent& effect);
  void carry_out(core::SendHeartbeatReply& effect);
  void carry_out(core::SendGoodbye& effect);
  void carry_out(core::Close& effect);
  void carry_out(core::Log& effect);
  void send(Peer& peer, wire::FrameHeader header, std::string_view body);
  void mark_dirty(Peer& peer);
  void end_turn();
  void flush_dirty();
  void continue_soon(const Peer& peer);
  void continue_some();
  void look_at_unsent(Peer& peer);
  void close_slow_peers();
  void lose(Peer& peer, const std::string& why);
  std::unique_ptr<Peer> take_out(Peer& peer);
  void let_leave(std::unique_ptr<Peer> peer);
  static std::string name_of(const Peer& peer);

  /// How long a connection may take over its last bytes.
  static constexpr Duration leaving_time{std::chrono::seconds(1)};
  /// Who takes nothing of its replies for so long is let go.
  static constexpr Duration stall_time_max{std::chrono::seconds(10)};

  net::Loop& loop_;
  Settings settings_;
  ServerLog log_;
  core::Engine engine_;
  const FrameLimits frame_limits_;
  Newcomers newcomers_;
  Peers peers_;
  std::vector<std::shared_ptr<net::Listener>> listeners_;
  std::vector<std::shared_ptr<net::Connection>> leaving_;  ///< that take their last bytes
  std::vector<ConnectionId> dirty_;                        ///< something was queued in this turn
  std::vector<ConnectionId> continuing_;                   ///< in the loop's next turn
  std::vector<ConnectionId> overfull_;                     ///< to be let go when the turn ends
  std::vector<ConnectionId> slow_;                         ///< something waits for them to take it
  wire::Request request_;  ///< in hand; these three keep their memory
  std::vector<std::uint64_t> request_ids_;
  std::string scratch_;
  base::Instant now_{};  ///< of this turn

  net::Timer timer_;
  base::Instant timer_at_ = base::far_future;  ///< when it fires
  base::Instant last_tick_{};

  struct Stopping;
  std::unique_ptr<Stopping> stopping_;
  bool sessions_may_have_ended_ = false;
  bool closed_ = false;
  bool was_short_ = false;
  bool is_failing_ = false;  ///< what it holds is not released yet
  std::uint64_t failure_number_ = 0;
};

}  // namespace muster::server
