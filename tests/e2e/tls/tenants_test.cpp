#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "credential_file.h"
#include "muster/codec_cereal.h"
#include "muster/process_group.h"
#include "muster/server.h"
#include "support/ranks.h"

// One group of ranks that have keys of several tenants.

namespace muster::test {
namespace {

using Group = StatelessProcessGroup;

/// A server that knows three tenants, and a store of each.
struct Tenants {
  Tenants() {
    ServerOptions options;
    options.credentials = key_line("trainer", 1) + key_line("server", 2) + key_line("stranger", 3);
    running.emplace(start_disturbed_server(options));
  }
  Store store(const CredentialFile& file) const {
    StoreOptions options;
    options.credential_file = file.path();
    return connect(*running, options);
  }

  const CredentialFile trainer{key_line("trainer", 1)};
  const CredentialFile server{key_line("server", 2)};
  const CredentialFile stranger{key_line("stranger", 3)};
  std::optional<Server> running;
};

GroupOptions shared_with(std::vector<std::string> others) {
  GroupOptions options;
  options.timeout = 20s;
  options.other_tenants = std::move(others);
  return options;
}

TEST_CASE("ranks of two tenants form one group if both name the other, and a third is refused") {
  const Tenants tenants;
  run_ranks(3, [&](int rank) {
    const bool trains = rank == 0;
    Store store = tenants.store(trains ? tenants.trainer : tenants.server);
    const GroupOptions options = shared_with({trains ? "server" : "trainer"});
    auto group = must(Group::create(store, "weights", rank, 3, options));
    CHECK(must(group.all_gather_obj(rank)) == std::vector<int>{0, 1, 2});
    CHECK(must(group.members()).size() == 3);
    if (rank == 2) {
      Store stranger = tenants.store(tenants.stranger);
      const GroupOptions all = shared_with({"trainer", "server"});
      CHECK(must_fail(Group::create(stranger, "weights", 1, 3, all)).code ==
            ErrorCode::permission_denied);
      Store alone = tenants.store(tenants.server);
      CHECK(must_fail(Group::create(alone, "weights", 1, 3, shared_with({}))).code ==
            ErrorCode::group_mismatch);
    }
    must(group.barrier());
  });
}

TEST_CASE("a tenant that nobody can have is refused before the server is asked") {
  const Tenants tenants;
  Store store = tenants.store(tenants.trainer);
  CHECK(must_fail(Group::create(store, "g", 0, 1, shared_with({"a tenant"}))).code ==
        ErrorCode::invalid_argument);
  const std::vector<std::string> many(9, "server");
  CHECK(must_fail(Group::create(store, "g", 0, 1, shared_with(many))).code ==
        ErrorCode::invalid_argument);
}

TEST_CASE("values leave room for clients by TLS, which can remove some") {
  ServerOptions options;
  options.credentials = key_line("trainer", 1) + key_line("server", 2);
  options.memory_bytes_max = 3U << 20;
  options.namespace_memory_bytes_max = 2U << 20;
  const Server server = start_disturbed_server(options);
  const auto store_of = [&](const char* tenant, std::uint8_t key, const char* name_space) {
    const CredentialFile file(key_line(tenant, key));
    StoreOptions of_store;
    of_store.credential_file = file.path();
    of_store.name_space = name_space;
    return connect(server, of_store);
  };
  Store full = store_of("trainer", 1, "full");
  Store other = store_of("trainer", 1, "other");
  int count = 0;
  for (Store* store : {&full, &other}) {
    for (std::size_t bytes = 1U << 20; bytes > 0; bytes /= 16) {
      const std::string value(bytes, 'x');
      while (store->set("key/" + std::to_string(count), value).has_value()) ++count;
    }
  }
  // A namespace that is full, and then a server that is, let clients in.
  for (const char* const name_space : {"full", "other"}) {
    Store again = store_of("trainer", 1, name_space);
    Store of_another = store_of("server", 2, name_space);
    CHECK(must(of_another.list("")).keys.size() > 0);
    CHECK(must(again.remove(name_space == std::string("full") ? "key/0" : "key/none")) ==
          (name_space == std::string("full")));
  }
}

}  // namespace
}  // namespace muster::test
