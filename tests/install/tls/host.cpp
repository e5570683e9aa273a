// A host that has a key: TLS is there, since the server that speaks none is told from one that
// does. C++17.

#include <muster/server.h>
#include <muster/store.h>

#include <cstdio>
#include <cstdlib>

int main() {
  auto server = muster::Server::start();
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message().c_str());
    return 1;
  }
  ::setenv("MUSTER_CREDENTIAL", "host QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY= * all\n", 1);
  const auto store =
      muster::Store::connect(server->addresses().front(), {}, std::chrono::seconds(1));
  if (store) return 1;
  std::printf("%s\n", store.error().message().c_str());
  return store.error().code == muster::ErrorCode::unavailable ? 0 : 1;
}
