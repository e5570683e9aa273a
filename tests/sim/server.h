#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clock.h"
#include "core/engine.h"
#include "core/watch/look.h"
#include "guest_model.h"
#include "network.h"
#include "server/tcpstore/guest.h"
#include "witness.h"

namespace muster::sim {

/// The production engine behind the simplest rim there can be.
class Server {
 public:
  using Dialect = server::tcpstore::Dialect;

  Server(Scheduler& scheduler, Network& network, Random& random, core::Options options,
         Clock clock);

  bool is_up() const { return engine_ != nullptr; }
  void accept(Network::ConnectionId connection);

  /// A client of TCPStore's, at a port for that namespace.
  void accept_guest(Network::ConnectionId connection, Dialect fallback,
                    const std::string& name_space);
  /// Somebody of Muster's own protocol comes into a namespace with guests, asks this and goes.
  void visit(const std::string& name_space, const wire::RequestBody& body);
  /// The same, who pops, and stays for so long.
  void visit_to_pop(const std::string& name_space, const std::string& key, Duration stay);

  void die();
  /// Another incarnation, with nothing kept.
  void start();
  /// This process does not run: what comes meanwhile is read when it runs again.
  void stop_for(Duration duration);
  bool is_stopped() const { return stopped_until_ > scheduler_.now(); }

  std::uint64_t incarnation() const { return options_.incarnation; }
  core::Counts counts() const { return engine_->counts(); }
  /// An encoded wire::InspectGroupReply; empty: there is no such group.
  std::string report_of_group(const std::string& name_space, const std::string& group);
  const core::Options& options() const { return options_; }

  /// Who hears of all that is asked and said.
  void set_witness(Witness& witness) { witness_ = &witness; }
  void set_guest_model(GuestModel& model) { guest_model_ = &model; }

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
  class Replies;
  using GuestStep = server::tcpstore::Conversation::Step;
  struct Guest {
    Guest(core::Quota& quota, Dialect fallback, std::string its_name_space);
    server::tcpstore::Guest state;
    std::string name_space;
    std::span<char> room;    ///< where its next bytes are put
    bool is_ending = false;  ///< when the event in hand is over
  };
  struct Peer {
    std::uint64_t client = 0;
    std::string bytes;
    bool has_said_hello = false;
    std::uint64_t under_way_bytes = 0;  ///< that have not come to the client
    std::uint64_t unsent_bytes = 0;     ///< of them, those that its socket does not take; charged
    bool is_postponed = false;          ///< its next frame waits for room
    std::unique_ptr<Guest> guest;       ///< null: it is a client of Muster
    bool is_neighbour = false;          ///< of Muster's own protocol, beside guests
  };

  void set_end(Network::ConnectionId connection);
  void received(Network::ConnectionId connection, std::string_view bytes);
  void read_hello(Network::ConnectionId connection, std::string& bytes);
  std::optional<std::string> take_frame(Network::ConnectionId connection);
  void read_frames(Network::ConnectionId connection);
  void read_frame(Network::ConnectionId connection, const wire::Frame& frame,
                  std::string_view bytes);
  void request(Network::ConnectionId connection, const wire::Request& request,
               std::string_view bytes);
  static bool is_postponed(const std::vector<core::Effect>& effects);
  bool let_heaviest_go(Network::ConnectionId asker);

  // Of clients of TCPStore's: server_guests.cpp.
  Guest* guest_on(Network::ConnectionId connection);
  void welcome_guest(Guest& guest, const core::SendHello& effect);
  void received_of_guest(Network::ConnectionId connection, std::string_view bytes);
  void read_guest(Network::ConnectionId connection);
  bool read_guest_request(Network::ConnectionId connection);
  bool carry_out_request(Network::ConnectionId connection,
                         const server::tcpstore::Request& request);
  bool take_step(Network::ConnectionId connection, GuestStep& step);
  void answer_guest(Guest& guest, const core::SendReply& reply);
  void guest_waits(Network::ConnectionId connection);
  void end_guest(Network::ConnectionId connection);
  bool is_neighbour(Network::ConnectionId connection) const;
  bool answer_neighbour(const core::SendReply& reply);
  void end_neighbour(Network::ConnectionId connection);

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
  void carry_out(const core::ForHost&) {}
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
  GuestModel* guest_model_ = nullptr;
  Instant looks_again_{};               ///< before, after a pause, the clock is not looked at
  const core::Hello* hello_ = nullptr;  ///< in hand
  Instant last_event_{};
  Instant stopped_until_{};
  std::deque<std::function<void()>> deferred_;  ///< until this process runs again
};

}  // namespace muster::sim
