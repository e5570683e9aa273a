#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "muster/result.h"
#include "net/address/socket_address.h"
#include "net/unique_fd.h"

namespace muster::net {

/// A Unix socket's file: removed at the end if it is still the one that was made.
class SocketFile {
 public:
  SocketFile() = default;
  /// Of a socket that has just been bound to `path`.
  explicit SocketFile(const std::string& path);
  ~SocketFile() { remove(); }
  SocketFile(SocketFile&& other) noexcept;
  SocketFile& operator=(SocketFile&& other) noexcept;

  void remove();

 private:
  UniqueFd folder_;   // it stays the same one, whatever its path leads to later
  std::string name_;  // in it; empty: none
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// Whether those who come are asked who they are, by a server that has credentials.
enum class Identities { asked, none };

/// A socket that listens, before and while it is served.
class Listening {
 public:
  /// Whether those that it accepts have the options that connections need: it had them before it
  /// listened.
  enum class Options { inherited, missing };

  Listening(UniqueFd fd, SocketFile file, Options options);

  Options options() const { return options_; }
  Identities identities() const { return identities_; }
  void set_identities(Identities identities) { identities_ = identities; }
  int fd() const { return fd_.get(); }
  int release_fd() { return fd_.release(); }
  /// As bound, the port filled in.
  const SocketAddress& address() const { return address_; }
  void remove_file() { file_.remove(); }

 private:
  SocketFile file_;  // goes last, after the socket is closed
  UniqueFd fd_;
  SocketAddress address_;
  Options options_;
  Identities identities_ = Identities::asked;
};

struct ListenOptions {
  int backlog = 4096;
  bool allow_unauthenticated = false;
  bool has_credentials = false;
  Duration user_timeout{std::chrono::seconds(15)};  ///< of the connections
  /// What to do about an address that may not be; empty: the usual.
  std::string how_to_allow{};
};

/// Binds and listens at everything that `addresses` name: all addresses of a host name, all of
/// this machine for an empty host. One that begins with "plain:" asks nobody who he is, and is a
/// loopback address. Nothing is bound when one of them may not be.
///
/// Blocks for name look-ups.
///
/// errors  invalid_argument, address_in_use (where), permission_denied, unavailable
Result<std::vector<Listening>> listen_at(const std::vector<std::string>& addresses,
                                         const ListenOptions& options);

/// A duplicate of a socket that somebody else has made and that listens.
///
/// errors  invalid_argument (no listening stream socket), permission_denied
Result<Listening> listen_on(int fd, const ListenOptions& options);

/// Binds a Unix socket and listens. A file that a dead server has left is replaced; one that
/// somebody answers at is not.
///
/// errors  address_in_use, permission_denied, unavailable
Result<Listening> listen_unix(const SocketAddress& address, int backlog);

/// The system's limit on backlogs; 0: unknown.
int backlog_max_of_system();

}  // namespace muster::net
