#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clock.h"
#include "core/engine.h"
#include "network.h"
#include "witness.h"

namespace muster::sim {

/// The production engine behind the simplest rim there can be.
class Server {
 public:
  Server(Scheduler& scheduler, Network& network, Random& random, core::Options options,
         Clock clock);

  bool is_up() const { return engine_ != nullptr; }
  void accept(Network::ConnectionId connection);

  void die();
  /// Another incarnation, with nothing kept.
  void start();
  /// This process does not run: what comes meanwhile is read when it runs again.
  void stop_for(Duration duration);
  bool is_stopped() const { return stopped_until_ > scheduler_.now(); }

  std::uint64_t incarnation() const { return options_.incarnation; }
  core::Counts counts() const { return engine_->counts(); }
  const core::Options& options() const { return options_; }

  /// Who hears of all that is asked and said.
  void set_witness(Witness& witness) { witness_ = &witness; }

  /// Others are known from now on.
  void regrant(core::Regrant event);

  /// What is granted to a client that says hello.
  std::function<core::Regrant::Grant(std::uint64_t client)> grant_of;

  // Told of what this process sees of its clients.
  std::function<void(std::uint64_t client)> heard;
  std::function<void(std::uint64_t client)> lost_connection;
  /// It ends the connection of one for whom too much waits.
  std::function<void(std::uint64_t client)> lets_go;

 private:
  struct Peer {
    std::uint64_t client = 0;
    std::string bytes;
    bool has_said_hello = false;
    std::uint64_t under_way_bytes = 0;  ///< that have not come to the client
    std::uint64_t unsent_bytes = 0;     ///< of them, those that its socket does not take; charged
    bool is_postponed = false;          ///< its next frame waits for room
  };

  void received(Network::ConnectionId connection, std::string_view bytes);
  void read_hello(Network::ConnectionId connection, std::string& bytes);
  std::optional<std::string> take_frame(Network::ConnectionId connection);
  void read_frames(Network::ConnectionId connection);
  void read_frame(Network::ConnectionId connection, const wire::Frame& frame,
                  std::string_view bytes);
  void request(Network::ConnectionId connection, const wire::Request& request,
               std::string_view bytes);
  bool let_heaviest_go(Network::ConnectionId asker);
  void taken(Network::ConnectionId connection, std::size_t bytes);
  void continue_postponed();
  void charge(Peer& peer);
  void transmit(Network::ConnectionId connection, std::string_view bytes);
  void carry_out_all(const std::vector<core::Effect>& effects);
  void observe_time();
  void apply(const core::Event& event);
  void finish_event();
  void handle(const core::Event& event);
  void carry_out(const core::SendHello& effect);
  void carry_out(const core::SendReply& effect);
  void carry_out(const core::SendEvent& effect);
  void carry_out(const core::SendHeartbeatReply& effect);
  void carry_out(const core::SendGoodbye& effect);
  void carry_out(const core::Close& effect);
  void carry_out(const core::Log& effect);
  void carry_out(const core::Postpone& effect);
  void send(Network::ConnectionId connection, wire::FrameHeader header, std::string_view body);
  void arm();
  void lost(Network::ConnectionId connection);
  bool is_running() const { return !is_stopped() && deferred_.empty(); }
  void when_running(std::function<void()> what);

  Scheduler& scheduler_;
  Network& network_;
  Random& random_;
  core::Options options_;
  Clock clock_;
  std::unique_ptr<core::Engine> engine_;
  std::map<Network::ConnectionId, Peer> peers_;
  Alarm alarm_;
  Witness* witness_ = nullptr;
  const core::Hello* hello_ = nullptr;  ///< in hand
  Instant last_event_{};
  Instant stopped_until_{};
  std::deque<std::function<void()>> deferred_;  ///< until this process runs again
};

}  // namespace muster::sim
