#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/protocol/protocol.h"
#include "network.h"
#include "server.h"

namespace muster::sim {

namespace protocol = client::protocol;

/// The production protocol behind the simplest rim there can be.
class Client {
 public:
  using Done = std::function<void(Result<std::string> reply, protocol::Fate fate)>;

  Client(std::uint64_t number, Scheduler& scheduler, Network& network, Server& server);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void open();
  protocol::CallId call(const wire::RequestBody& body, Duration timeout, Done done);
  void cancel(protocol::CallId call);
  void close();
  void reopen();

  /// This process does not run: what comes meanwhile is read when it runs again.
  void stop_for(Duration duration);

  bool is_stopped() const { return stopped_until_ > scheduler_.now(); }
  bool established() const { return protocol_.established(); }
  const Error* failure() const { return protocol_.failure(); }
  std::size_t pending_count() const { return pending_.size(); }
  const std::vector<std::string>& violations() const { return violations_; }
  std::uint64_t resumed_count() const { return resumed_count_; }

  /// Told of epochs and of the session's end.
  std::function<void(const wire::Event& event)> notified;

 private:
  struct Pending {
    Done done;
    Instant latest{};
  };

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
  void drop_connection();
  void arm();
  void when_running(std::function<void()> what);

  std::uint64_t number_;
  Scheduler& scheduler_;
  Network& network_;
  Server& server_;
  protocol::Protocol protocol_;
  Network::ConnectionId connection_ = 0;
  std::uint64_t attempt_ = 0;
  std::uint64_t alarm_ = 0;
  bool is_carrying_out_ = false;
  Instant stopped_until_{};
  std::deque<std::function<void()>> deferred_;  ///< until this process runs again
  std::map<protocol::CallId, Pending> pending_;
  std::vector<std::string> violations_;
  std::uint64_t resumed_count_ = 0;
};

}  // namespace muster::sim
