#define DOCTEST_CONFIG_IMPLEMENT
#include <dirent.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "muster/codec_raw.h"
#include "nccl/descriptors.h"
#include "nccl/functions.h"
#include "nccl/ids/bootstrap_socket.h"
#include "nccl/ids/id.h"
#include "support/ranks.h"

// With NVIDIA's own libnccl, where there is one: no GPU is needed to make ids.

namespace muster::test {
namespace {

std::size_t thread_count() {
  std::size_t count = 0;
  DIR* const threads = ::opendir("/proc/self/task");
  while (const dirent* const entry = ::readdir(threads)) count += entry->d_name[0] != '.';
  ::closedir(threads);
  return count;
}

TEST_CASE("NCCL's ids are agreed on, each of its own") {
  const Server server = start_server();
  run_ranks(3, [&](int rank) {
    const Store store = connect(server);
    auto group = join(store, "job", rank, 3);
    const nccl::UniqueId first = must(nccl::unique_id(group, 10s));
    const nccl::UniqueId second = must(nccl::unique_id(group, 10s));
    CHECK(first != second);
    const auto all = must(group.all_gather_obj<RawCodec>(first));
    for (const nccl::UniqueId& id : all) CHECK(id == first);
    must(group.barrier());
  });
}

TEST_CASE("NCCL's listening socket is found and not inherited") {
  const std::size_t inherited = inherited_count();
  const Server server = start_server();
  const Store store = connect(server);
  auto group = join(store, "job", 0, 1);
  const nccl::UniqueId id = must(nccl::unique_id(group, 10s));
  CHECK(nccl_internal::find_bootstrap_socket(id));
  CHECK(inherited_count() == inherited);
}

TEST_CASE("NCCL's thread and socket go when an id is given up") {
  const auto library = must(nccl_internal::load_nccl({}));
  const std::size_t threads = thread_count();
  for (int i = 0; i < 8; ++i) {
    const nccl::UniqueId id = must(nccl_internal::new_id(library));
    REQUIRE(nccl::give_up(id));
    await([&] { return !nccl_internal::find_bootstrap_socket(id); });
  }
  await([&] { return thread_count() == threads; });
}

}  // namespace
}  // namespace muster::test

int main(int argc, char** argv) {
  if (::dlopen("libnccl.so.2", RTLD_NOW) == nullptr) {
    std::printf("skipped: there is no NCCL here: %s\n", ::dlerror());
    return 77;
  }
  // Ids need an interface that is up; loopback always is. Before NCCL looks, and before threads.
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  return doctest::Context(argc, argv).run();
}
