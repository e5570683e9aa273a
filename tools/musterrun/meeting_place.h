#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "base/file_handle.h"
#include "launch/options.h"
#include "muster/io_thread.h"
#include "muster/result.h"
#include "muster/server.h"

namespace musterrun {

/// Whether only processes of this host reach that address.
bool is_loopback(const std::string& address);

/// Whether the environment has a key or a certificate, for which the job's server then asks.
bool has_credential();

/// At a socket that leaves no file. The system tells whose process comes.
///
/// errors  unavailable (the system has no random numbers)
muster::Result<void> serve_this_user(muster::ServerOptions& to);

/// The Muster server of a job: one that is elsewhere, or one that this process hosts.
///
/// threads  that of the context; no call blocks
class MeetingPlace {
 public:
  struct Handlers {
    std::function<void(const std::string& text)> on_notice;
    std::function<void(const muster::Error& error)> on_failure;  ///< it has to host, and cannot
  };

  /// options    outlives this
  /// io_thread  is served by the context
  MeetingPlace(asio::io_context& context, const muster::launch::LaunchOptions& options,
               std::shared_ptr<muster::IoThread> io_thread, Handlers handlers);
  ~MeetingPlace();

  /// Starts a server on this host if the job has no rendezvous: it asks for the key of the
  /// environment; without one it is at a Unix socket, and serves this user and root. Else looks the
  /// name of the rendezvous up, every second until `reached`: the name may appear, or move to this
  /// host, after this process has started. If node rank 0 is this launcher's, or no node has a
  /// rank, a server is started as soon as the name is one of this host's and no process listens
  /// there.
  ///
  /// errors  those of Server::start, without a rendezvous
  muster::Result<void> open();
  /// A launcher is connected to it.
  void reached();

  const std::string& address() const;
  /// Whether its server is in this process.
  bool is_hosted() const;
  /// Calls `handler` with the address of this host on the way to the place, from which other hosts
  /// reach this one: now, or after the look-up that runs. Empty: it is not known.
  void with_own_host(std::function<void(const std::string& host)> handler);
  /// Why the place is not reached, as far as this launcher knows; for people.
  std::string missing() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
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
