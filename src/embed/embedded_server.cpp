#include "embed/embedded_server.h"

#include <unistd.h>

#include "auth/same_user.h"
#include "client/link/credential.h"

namespace muster::embed {
namespace {

/// The other ranks have the same key as this one: who has it may join.
void give_key(ServerOptions& to, const StoreOptions& from) {
  client::KeySource source = client::key_source_of(from);
  if (source.path.empty() && source.text.empty()) return;
  to.credentials_file = std::move(source.path);
  to.credentials = source.text;
  to.server_name = client::server_name_of(from);
  to.allow_unauthenticated = false;  // nobody is
}

}  // namespace

Result<std::shared_ptr<EmbeddedServer>> EmbeddedServer::start(const std::string& address,
                                                              const HostedGroupOptions& options) {
  ServerOptions settings;
  settings.listen = {address};
  settings.listening_socket = options.listening_socket;
  if (address.rfind("unix:", 0) != 0) {
    settings.allow_unauthenticated = options.allow_unauthenticated;
    give_key(settings, options.store);
  } else if (!options.allow_unauthenticated) {
    settings.credentials = auth::credentials_of_user(::geteuid());
  }
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
