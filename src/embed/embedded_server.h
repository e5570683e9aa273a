#pragma once

#include <memory>
#include <string>

#include "client/group/group_host.h"
#include "muster/process_group_options.h"
#include "muster/result.h"
#include "muster/server.h"

namespace muster::embed {

/// The server in rank 0 of a group that is made by host and port. It has threads of its own, so
/// that handlers of the application cannot keep it from serving.
class EmbeddedServer final : public client::GroupHost {
 public:
  /// errors  as Server::start
  static Result<std::shared_ptr<EmbeddedServer>> start(const std::string& address,
                                                       const HostedGroupOptions& options);

  explicit EmbeddedServer(Server server) : server_(std::move(server)) {}

  std::uint64_t stop(Duration linger) override;

  /// Stops at once and tells whoever is connected why.
  void give_up(const std::string& reason) { server_.stop(reason); }

  const std::string& address() const { return server_.addresses().front(); }

 private:
  Server server_;
};

}  // namespace muster::embed
