#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "net/address/address.h"
#include "net/address/resolver.h"
#include "net/address/socket_address.h"
#include "net/connection.h"
#include "net/timer.h"
#include "net/watcher.h"

namespace muster::net {

enum class ConnectFailure : std::uint8_t {
  refused,       ///< somebody's kernel says that nobody listens: the server is dead
  silent,        ///< nothing came back in time, no route, or this side could not try
  not_resolved,  ///< the host name has no address
};

struct ConnectError {
  ConnectFailure kind = ConnectFailure::refused;
  std::string detail;  ///< what was tried and what the system said, such as
                       ///< "10.0.0.7:29500: Connection refused"
};

/// Opens connections to one address. Names are resolved on a thread of their own, never on the
/// I/O thread, and anew when all addresses have been tried. Used on the I/O thread only.
class Connector final : public Watcher, public std::enable_shared_from_this<Connector> {
 public:
  struct Options {
    Duration attempt_timeout{std::chrono::seconds(2)};  ///< per address, over all its turns
    Duration resolve_timeout{std::chrono::seconds(5)};
    Duration user_timeout{std::chrono::seconds(15)};  ///< of the connections
  };
  using Outcome = std::variant<std::shared_ptr<Connection>, ConnectError>;

  static std::shared_ptr<Connector> create(Loop& loop, Address address, Options options);

  /// Tries the addresses in turn until one answers: the last good one first; after a connection
  /// that was not marked as good, the next one. One that is silent is left for the next one after
  /// 250 ms, and tried again as long as it has time. `handler` runs once, not from within this
  /// call. One `connect` at a time: an earlier one is cancelled.
  ///
  /// When all have failed the kind is `refused` only if every address refused.
  void connect(std::function<void(Outcome outcome)> handler);

  /// No handler runs any more.
  void cancel();

  /// What the `connect` under way, or one that was cancelled, waits for: "10.0.0.7:29500: no
  /// answer yet", and what addresses that have failed said. Empty without one.
  std::string awaited() const;

  /// What was connected last spoke as it should.
  void mark_good();

 private:
  Connector(Loop& loop, Address address, Options options);

  void on_ready(std::uint32_t events) override;

  void begin();
  void resolve_timed_out();
  void resolved(Resolved found);
  void begin_rounds();
  void begin_round();
  void end_round();
  void try_next();
  void try_again();
  void note_failure(std::size_t address, int error);
  void attempt_failed(int error);
  void connected();
  void complete(Outcome outcome);
  void after(Duration delay, void (Connector::*member)());
  void end_attempt();

  Address address_;
  Options options_;
  std::function<void(Outcome)> handler_;
  Timer timer_;
  bool resolving_ = false;
  std::vector<SocketAddress> addresses_;  ///< empty: to be resolved
  SocketAddress good_;
  std::size_t next_ = 0;  ///< in `addresses_`, where the next `connect` begins
  std::size_t current_ = 0;
  std::vector<std::size_t> silent_;  ///< those that have not failed, in their order
  std::deque<std::size_t> turns_;    ///< those of them that this round has not tried yet
  std::vector<ConnectError> errors_;
  std::string given_up_;  ///< what a cancelled `connect` has waited for

  std::uint64_t attempt_ = 0;  ///< its number: late answers of earlier ones are dropped
  base::Instant turn_end_{};
  Duration patience_{};   ///< with each address in this round
  Duration remaining_{};  ///< of each address's time, for the rounds that follow
};

}  // namespace muster::net
