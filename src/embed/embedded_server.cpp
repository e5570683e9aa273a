#include "embed/embedded_server.h"

namespace muster::embed {

Result<std::shared_ptr<EmbeddedServer>> EmbeddedServer::start(const std::string& address,
                                                              const HostedGroupOptions& options) {
  ServerOptions settings;
  settings.listen = {address};
  settings.listening_socket = options.listening_socket;
  settings.allow_unauthenticated = options.allow_unauthenticated;
  settings.hosting_rank = 0;
  settings.label = options.store.label;
  settings.logger = options.store.logger;
  auto server = Server::start(std::move(settings));
  if (!server) return std::move(server).error();
  return std::make_shared<EmbeddedServer>(*std::move(server));
}

std::uint64_t EmbeddedServer::stop(Duration linger) {
  return server_.stop("the process that hosts the group's server has closed it", linger);
}

}  // namespace muster::embed
