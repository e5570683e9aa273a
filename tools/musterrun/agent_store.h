#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "launch/job_events.h"
#include "launch/options.h"
#include "muster/io_thread.h"
#include "muster/result.h"
#include "muster/server.h"

namespace musterrun {

/// The TCPStore that torch's env:// uses in one attempt, in place of one that rank 0 hosts.
///
/// It is a server of its own beside the job's: who reaches its port may write there, and has
/// nothing then of what launchers and ranks keep. It ends with its attempt, so the next one does
/// not find its keys. And it is where torch looks for it, at rank 0's node, wherever the job's
/// server is.
///
/// threads  that of the I/O thread
class AgentStore {
 public:
  struct Options {
    std::string host;               ///< MASTER_ADDR
    int port = 0;                   ///< MASTER_PORT; 0: any
    bool has_other_nodes = false;   ///< whose ranks come, too
    bool others_may_reach = false;  ///< at an address that is not loopback
    muster::launch::TcpStoreDialect dialect = muster::launch::TcpStoreDialect::first;
    std::shared_ptr<muster::IoThread> io_thread;
    /// What people should hear of it, such as why a connection was ended.
    std::function<void(muster::launch::Importance, const std::string&)> say;
  };

  /// errors  permission_denied (others would reach it, and may not), and those of Server::start
  static muster::Result<AgentStore> open(Options options);

  int port() const { return server_.tcpstore_ports().front(); }
  /// Where musterctl looks into it: at a socket of this user.
  const std::string& address() const { return server_.addresses().front(); }

 private:
  explicit AgentStore(muster::Server server) : server_(std::move(server)) {}
  muster::Server server_;
};

}  // namespace musterrun
