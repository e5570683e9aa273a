#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/tls/library.h"
#include "subject.h"

namespace muster::bench {

using TlsContext = std::shared_ptr<const net::tls::TlsContext>;

/// How the connections of a server are encrypted: what it is started with beside the rest, and what
/// its clients have. Muster by a key of its own (a PSK); others by a certificate that is made here.
struct Encryption {
  std::vector<std::string> flags;
  TlsContext client;
};
Encryption make_encryption(Kind kind, const Programs& programs, std::uint16_t port);

/// The two ends of one connection, with a key and without a socket. They have shaken hands.
struct Ends {
  std::unique_ptr<net::tls::TlsSession> server;
  std::unique_ptr<net::tls::TlsSession> client;
};
std::vector<Ends> make_ends(int count);

/// What a client says first.
std::string first_flight(const TlsContext& context);
/// Of a client with a key that no server has.
TlsContext make_stranger();

/// TLS of one connection, without its socket.
class Sealed {
 public:
  /// Its first bytes are in `out` then.
  explicit Sealed(const TlsContext& context);

  bool is_open() const { return phase_ == net::tls::Phase::open; }
  /// What came is appended to `clear`; what that asks for, to `out`.
  ///
  /// throws  std::runtime_error: it has failed
  void take(std::string_view came, std::string& clear);
  /// Appends to `out`, and clears it.
  void seal(std::string& clear);

  std::string out;

 private:
  std::unique_ptr<net::tls::TlsSession> session_;
  net::tls::Phase phase_ = net::tls::Phase::handshaking;
  std::string rest_;  ///< that came, and is not a whole record yet
};

}  // namespace muster::bench
