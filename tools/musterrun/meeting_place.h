#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/file_handle.h"
#include "launch/options.h"
#include "muster/io_thread.h"
#include "muster/result.h"
#include "muster/server.h"

namespace musterrun {

/// Whether only processes of this host reach that address.
bool is_loopback(const std::string& address);

/// Whether the environment has a key, which the job's server then asks for.
bool has_key();

/// At a socket that leaves no file. The system tells whose process comes.
///
/// errors  unavailable (the system has no random numbers)
muster::Result<void> serve_this_user(muster::ServerOptions& to);

/// The Muster server of a job: one that stands elsewhere, or one that this process hosts.
class MeetingPlace {
 public:
  /// Hosts one on this host if the job has no rendezvous, or if that is an address of this host at
  /// which nobody listens. One for this host alone asks for the key of the environment; without one
  /// it is at a Unix socket, and serves this user and root.
  ///
  /// errors  those of Server::start
  static muster::Result<MeetingPlace> open(const muster::launch::LaunchOptions& options,
                                           const std::shared_ptr<muster::IoThread>& io_thread);

  const std::string& address() const { return address_; }
  /// This host as others of the job reach it, which is looked up again until it is known: the
  /// name of the place may appear after this process has begun.
  ///
  /// Blocks for a look-up.
  ///
  /// returns  empty: it is not known
  const std::string& own_host();

 private:
  std::string address_;
  std::string own_host_ = "127.0.0.1";
  std::optional<muster::Server> server_;
};

/// A port that nobody else is given, until a process that may share addresses (SO_REUSEADDR)
/// listens there.
class HeldPort {
 public:
  /// port    0: any
  /// errors  address_in_use, resource_exhausted
  static muster::Result<HeldPort> hold(int port);

  int port() const { return port_; }
  void close() { socket_.close(); }

 private:
  muster::base::FileHandle socket_;
  int port_ = 0;
};

}  // namespace musterrun
