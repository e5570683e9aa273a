#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "net/address.h"
#include "net/asio.h"
#include "net/connection.h"
#include "net/socket_address.h"

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
class Connector : public std::enable_shared_from_this<Connector> {
 public:
  struct Options {
    Duration attempt_timeout{std::chrono::seconds(2)};  ///< per address
    Duration resolve_timeout{std::chrono::seconds(5)};
    Duration user_timeout{std::chrono::seconds(15)};    ///< of the connections
  };
  using Outcome = std::variant<std::shared_ptr<Connection>, ConnectError>;

  static std::shared_ptr<Connector> create(asio::io_context& context, Address address,
                                           Options options);

  /// Tries the addresses in turn, each once, until one answers: the last good one first; after
  /// a connection that was not marked as good, the next one. `handler` runs once, not from
  /// within this call. One at a time: an earlier one is cancelled.
  ///
  /// When all have failed the kind is `refused` only if every address refused.
  void connect(std::function<void(Outcome outcome)> handler);

  /// No handler runs any more.
  void cancel();

  /// What was connected last spoke as it should.
  void mark_good();

 private:
  Connector(asio::io_context& context, Address address, Options options);

  void begin();
  void resolve();
  void resolved(std::vector<SocketAddress> addresses, std::string detail);
  void try_next();
  void try_address();
  void on_attempt_over(int error);
  void attempt_failed(int error);
  void complete(Outcome outcome);

  struct Attempt;

  asio::io_context& context_;
  Address address_;
  Options options_;
  std::function<void(Outcome)> handler_;
  std::uint64_t generation_ = 0;           ///< of connect and cancel calls
  bool resolving_ = false;
  std::vector<SocketAddress> addresses_;
  std::size_t position_ = 0;               ///< of the address that is or was tried
  std::size_t tried_count_ = 0;
  std::vector<ConnectError> errors_;
  std::shared_ptr<Attempt> attempt_;
};

}  // namespace muster::net
