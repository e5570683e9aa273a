#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/protocol/protocol.h"
#include "clock.h"
#include "network.h"
#include "server.h"

namespace muster::sim {

namespace protocol = client::protocol;

/// Who a client is to the server.
struct Identity {
  std::uint64_t number = 0;   ///< of the client
  std::uint64_t process = 0;  ///< whose clients are in one namespace each
  std::string name_space;
  wire::Role role = wire::Role::client;
  bool is_stranger = false;  ///< of another tenant
};

ProcessId id_of(const Identity& identity);

/// The production protocol behind the simplest rim there can be.
class Client {
 public:
  using Done = std::function<void(Result<std::string> reply, protocol::Fate fate)>;

  Client(const Identity& identity, Scheduler& scheduler, Network& network, Server& server,
         Clock clock);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void open();
  /// The receipt of a join or a regroup is concluded after `done`, see `refuse_answer`.
  protocol::CallId call(const wire::RequestBody& body, Duration timeout, Done done,
                        protocol::Receipt receipt = protocol::Receipt::at_once);
  /// One that ends with its answer or the session, and nothing else.
  void call_lasting(const wire::RequestBody& body, Done done);
  /// While `Done` of a take or a pop runs: the call, if its receipt is to be concluded; else 0.
  protocol::CallId held() const { return held_; }
  void conclude(protocol::CallId call, protocol::Verdict verdict);
  void cancel(protocol::CallId call);
  /// In the `done` of a join or a regroup: its caller has no use for the answer.
  void refuse_answer() { is_refused_ = true; }
  void close();
  void reopen();

  /// This process does not run: what comes meanwhile is read when it runs again.
  void stop_for(Duration duration);

  /// This process is gone. Its kernel closes what it had open, or its machine is gone, too.
  enum class Death { of_process, of_machine };
  void die(Death death);

  bool is_dead() const { return is_dead_; }
  bool is_stopped() const { return stopped_until_ > scheduler_.now(); }
  bool established() const { return protocol_.established(); }
  const Error* failure() const { return protocol_.session().failure(); }
  std::size_t pending_count() const { return pending_.size(); }
  std::uint64_t resumed_count() const { return resumed_count_; }
  /// The server's start to which its session belongs; 0: it has none.
  std::uint64_t incarnation() const { return incarnation_; }
  /// Counts its sessions.
  std::uint64_t session_number() const { return session_number_; }
  const wire::ServerLimits& limits() const { return protocol_.session().server().limits; }
  const wire::ServerHello& session() const { return protocol_.session().server(); }

  /// Told of epochs and of the session's end.
  std::function<void(const wire::Event& event)> notified;
  /// Told when the session stands again: what waits is asked anew.
  std::function<void()> resumed;
  /// Told of promises that the protocol breaks.
  std::function<void(const std::string& what)> violated;
  /// Told of each line of its log.
  std::function<void(const std::string& line)> logged;

 private:
  struct Pending {
    Done done;
    Instant latest{};
    bool forms = false;  ///< it is a join or a regroup
  };

  protocol::CallId held_ = 0;

  Instant now() const { return clock_.shows(scheduler_.now()); }
  void apply(const protocol::Input& input);
  void carry_out_all();
  void carry_out(const protocol::Connect& effect);
  void carry_out(const protocol::Disconnect& effect);
  void carry_out(const protocol::Transmit& effect);
  void carry_out(const protocol::Complete& effect);
  void carry_out(const protocol::Notify& effect);
  void carry_out(const protocol::Established& effect);
  void carry_out(const protocol::Log& effect);
  void attempt(std::uint64_t number);
  void connect();
  void received(Network::ConnectionId connection, std::string_view bytes);
  static void drop(Network& network, Network::ConnectionId& connection);
  void drop_set_aside();
  void arm();
  bool is_running() const { return !is_dead_ && !is_stopped() && deferred_.empty(); }
  void when_running(std::function<void()> what);

  std::uint64_t number_;
  Scheduler& scheduler_;
  Network& network_;
  Server& server_;
  Clock clock_;
  protocol::Protocol protocol_;
  Network::ConnectionId connection_ = 0;
  Network::ConnectionId next_ = 0;                ///< that is to take its place
  std::vector<Network::ConnectionId> set_aside_;  ///< silent ones, until the session stands again
  std::uint64_t attempt_ = 0;
  Alarm alarm_;
  bool is_carrying_out_ = false;
  bool is_refused_ = false;  ///< the answer in hand
  Instant stopped_until_{};
  std::deque<std::function<void()>> deferred_;  ///< until this process runs again
  std::map<protocol::CallId, Pending> pending_;
  std::uint64_t resumed_count_ = 0;
  std::uint64_t incarnation_ = 0;
  std::uint64_t session_number_ = 0;
  bool is_dead_ = false;
};

}  // namespace muster::sim
