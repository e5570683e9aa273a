#include <string>

#include <doctest/doctest.h>

#include "credential_file.h"
#include "muster/inspect.h"
#include "muster/server.h"
#include "support/ranks.h"

// What a store is told of itself, by a server that knows who comes.

namespace muster::test {
namespace {

TEST_CASE("a store is told whom the server takes it for, and what it may") {
  const std::string line = "team/alice " + auth::key_text(1) +
                           " train-* read,write,supervise not-after=2099-01-31T00:00:00Z\n";
  ServerOptions of_server;
  of_server.credentials = line;
  of_server.server_name = "cluster";
  auto server = start_disturbed_server(of_server);
  const CredentialFile file(line);
  StoreOptions options;
  options.credential_file = file.path();
  options.server_name = "cluster";
  options.name_space = "train-1";
  auto store = connect(server, options);
  CHECK(must(store.set("k", "v")));
  const WhoAmI self = must(whoami(store));
  CHECK(self.identity == "team/alice");
  CHECK(self.tenant == "team");
  CHECK(self.namespaces == "train-*");
  CHECK(self.credential_rights == "read,write,supervise");
  CHECK(self.rights == "read,write");
  CHECK(self.not_after == "2099-01-31T00:00:00Z");
  options.name_space = "secret";
  CHECK(must_fail(Store::connect(server.addresses().front(), options, 20s)).code ==
        ErrorCode::permission_denied);
}

TEST_CASE("where nobody is asked who he is, a store has no identity") {
  auto server = start_server();
  auto store = connect(server);
  const WhoAmI self = must(whoami(store));
  CHECK(self.identity.empty());
  CHECK(self.tenant.empty());
  CHECK(self.credential_rights.empty());
  CHECK(self.rights == "read,write,join,observe");
}

}  // namespace
}  // namespace muster::test
