// A host of muster-nccl on a machine without libnccl: it brings the id itself, and is told what a
// communicator lacks. C++17.

#include <muster/nccl.h>
#include <muster/nccl_id.h>
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
  muster::nccl::IdOptions options;
  options.id.emplace().fill('m');
  const auto id = muster::nccl::unique_id(*group, std::chrono::seconds(5), options);
  if (!id) return fail(id.error());
  if (*id != *options.id) return 1;
  muster::nccl::Options lacking;
  lacking.nccl_library = "/nowhere/libnccl.so.2";
  const auto made = muster::nccl::create(*group, 0, lacking);
  if (made || made.error().code != muster::ErrorCode::library_missing) return 1;
  std::printf("%s\n", made.error().message().c_str());
  return 0;
}
