// A host of muster-nccl that brings the id itself, so that no libnccl is needed. C++17.

#include <muster/nccl.h>
#include <muster/server.h>

#include <cstdio>

namespace {

int fail(const muster::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main() {
  auto server = muster::Server::start();
  if (!server) return fail(server.error());
  auto store = muster::Store::connect(server->addresses().front());
  if (!store) return fail(store.error());
  auto group = muster::StatelessProcessGroup::create(*store, "job", 0, 1);
  if (!group) return fail(group.error());
  muster::NcclIdOptions options;
  options.id.emplace().fill('m');
  const auto id = muster::nccl_unique_id(*group, std::chrono::seconds(5), options);
  if (!id) return fail(id.error());
  return *id == *options.id ? 0 : 1;
}
