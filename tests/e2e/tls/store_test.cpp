#include "muster/store.h"

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "credential_file.h"
#include "muster/codec_cereal.h"
#include "support/await.h"
#include "support/ranks.h"
#include "support/server.h"
#include "support/tls_relay.h"

// Stores with a key, through a relay that speaks TLS for a server that speaks none.

namespace muster::test {
namespace {

using namespace std::chrono_literals;

struct Relayed {
  Server server = start_disturbed_server();
  TlsRelay relay{{server.addresses().front(), {auth::key_text(1)}, "cluster"}};
  CredentialFile file{key_line("alice", 1)};

  StoreOptions options() const {
    StoreOptions options;
    options.credential_file = file.path();
    options.server_name = "cluster";
    return options;
  }
  Store connect() const { return must(Store::connect(relay.address(), options(), 20s)); }
  Result<Store> try_to_connect(const StoreOptions& options, Duration timeout = 20s) const {
    return Store::connect(relay.address(), options, timeout);
  }
};

TEST_CASE("a store with a key writes and reads, and ends in order") {
  const Relayed relayed;
  auto store = relayed.connect();
  CHECK(must(store.set("k", "v")));
  CHECK(must(store.get("k")) == "v");
  const std::string large(1 << 20, 'x');
  CHECK(must(store.set("large", large)));
  CHECK(must(store.get("large")) == large);
  CHECK(relayed.relay.established_count() == 1);
  store.close();
  await([&] { return relayed.relay.ended_in_order_count() == 1; });
}

TEST_CASE("ranks with one key form a group") {
  const Relayed relayed;
  run_ranks(3, [&](int rank) {
    auto store = relayed.connect();
    auto group = must(StatelessProcessGroup::create(store, "g", rank, 3, patience()));
    must(group.barrier());
    CHECK(must(group.all_gather_obj(rank)) == std::vector<int>{0, 1, 2});
  });
}

TEST_CASE("an end that is not TLS's own is a lost connection, and the session goes on") {
  Relayed relayed;
  auto store = relayed.connect();
  SetOptions bound;
  bound.bind_to_session = true;
  CHECK(must(store.set("bound", "mine", bound)));
  for (int round = 2; round < 5; ++round) {
    relayed.relay.truncate();
    await([&] { return relayed.relay.established_count() == round; });
    CHECK(must(store.get("bound")) == "mine");
  }
  CHECK(relayed.relay.ended_in_order_count() == 0);
}

TEST_CASE("a store that reconnects takes the newest key of its file") {
  Relayed relayed;
  auto store = relayed.connect();
  SetOptions bound;
  bound.bind_to_session = true;
  CHECK(must(store.set("bound", "mine", bound)));
  relayed.file.write(key_line("alice", 1) + key_line("alice", 2));
  relayed.relay.admit({auth::key_text(2)});
  relayed.relay.truncate();
  await([&] { return relayed.relay.established_count() == 2; });
  CHECK(must(store.get("bound")) == "mine");
}

TEST_CASE("a file that cannot be used any more leaves the key that was read of it") {
  Relayed relayed;
  std::mutex mutex;
  std::vector<std::string> lines;
  StoreOptions options = relayed.options();
  options.logger = [&](LogLevel level, std::string_view line) {
    if (level != LogLevel::warning) return;
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
  };
  auto store = must(relayed.try_to_connect(options));
  relayed.file.write("nonsense\n");
  relayed.relay.truncate();
  await([&] { return relayed.relay.established_count() == 2; });
  CHECK(must(store.set("k", "v")));
  const std::lock_guard lock(mutex);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find(relayed.file.path()) != lines[0].npos);
}

TEST_CASE("a key that the server does not know is refused after a second try") {
  const Relayed relayed;
  const CredentialFile other(key_line("alice", 9));
  StoreOptions options = relayed.options();
  options.credential_file = other.path();
  CHECK(must_fail(relayed.try_to_connect(options, 60s)).code == ErrorCode::permission_denied);
  CHECK(relayed.relay.came_count() == 2);
}

TEST_CASE("a handshake that fails once does not end connect") {
  Relayed relayed;
  relayed.relay.refuse_next();
  auto store = must(relayed.try_to_connect(relayed.options()));
  CHECK(relayed.relay.came_count() == 2);
  CHECK(must(store.set("k", "v")));
}

TEST_CASE("a key for another server name is refused after a second try") {
  const Relayed relayed;
  StoreOptions options = relayed.options();
  options.server_name = "elsewhere";
  CHECK(must_fail(relayed.try_to_connect(options, 60s)).code == ErrorCode::permission_denied);
  CHECK(relayed.relay.came_count() == 2);
}

TEST_CASE("a session whose key is refused ends when the server cannot hold it any more") {
  ServerOptions quick;
  quick.session_timeout = 5s;
  auto server = start_disturbed_server(quick);
  TlsRelay relay({server.addresses().front(), {auth::key_text(1)}, {}});
  const CredentialFile file(key_line("alice", 1));
  StoreOptions options;
  options.credential_file = file.path();
  auto store = must(Store::connect(relay.address(), options, 20s));
  CHECK(must(store.set("k", "v")));
  relay.admit({});
  relay.truncate();
  std::optional<ErrorCode> code;
  await([&] {
    const auto got = store.get("k", 100ms);
    if (!got) code = got.error().code;
    return code == ErrorCode::permission_denied;
  });
}

TEST_CASE("a server without TLS is not spoken to in clear") {
  auto server = start_disturbed_server();
  const CredentialFile file(key_line("alice", 1));
  StoreOptions options;
  options.credential_file = file.path();
  const Error error = must_fail(Store::connect(server.addresses().front(), options, 1s));
  CHECK(error.code == ErrorCode::unavailable);
  CHECK(error.detail.find("no TLS") != error.detail.npos);
}

TEST_CASE("the environment names the credential and the server") {
  const Relayed relayed;
  const StoreOptions none;
  {
    const Variable path("MUSTER_CREDENTIAL_FILE", relayed.file.path());
    const Variable name("MUSTER_SERVER_NAME", "cluster");
    auto store = must(relayed.try_to_connect(none));
    CHECK(must(store.set("k", "by file")));
  }
  {
    const Variable text("MUSTER_CREDENTIAL", key_line("alice", 1));
    const Variable name("MUSTER_SERVER_NAME", "cluster");
    auto store = must(relayed.try_to_connect(none));
    CHECK(must(store.get("k")) == "by file");
  }
  CHECK(relayed.relay.established_count() == 2);
}

TEST_CASE("a Unix socket needs no key, and none is read") {
  ServerOptions at_socket;
  at_socket.listen = {"unix:@muster-test-tls-" + std::to_string(::getpid())};
  auto server = start_server(at_socket);
  StoreOptions options;
  options.credential_file = "/nowhere/key";
  auto store = must(Store::connect(at_socket.listen.front(), options, 20s));
  CHECK(must(store.set("k", "v")));
}

TEST_CASE("a credential that cannot be used is refused before anybody is connected to") {
  const Relayed relayed;
  const auto code_of = [&](const StoreOptions& options) {
    return must_fail(relayed.try_to_connect(options)).code;
  };
  StoreOptions options = relayed.options();
  relayed.file.set_mode(0644);
  CHECK(code_of(options) == ErrorCode::invalid_argument);
  relayed.file.set_mode(0600);
  relayed.file.write("alice short * all\n");
  CHECK(code_of(options) == ErrorCode::invalid_argument);
  relayed.file.write("# nobody\nunix:uid=0 * all as=alice\n");
  CHECK(code_of(options) == ErrorCode::invalid_argument);
  relayed.file.write(key_line("alice", 1) + key_line("bob", 2));
  CHECK(code_of(options) == ErrorCode::invalid_argument);
  options.credential_file = "/nowhere/key";
  CHECK(code_of(options) == ErrorCode::invalid_argument);
  options = {};
  options.certificate_file = "/nowhere/certificate";
  CHECK(code_of(options) == ErrorCode::invalid_argument);
  options.credential_file = relayed.file.path();
  CHECK(code_of(options) == ErrorCode::invalid_argument);
  options = {};
  options.authorities_file = "/nowhere/authorities";
  CHECK(code_of(options) == ErrorCode::invalid_argument);
  CHECK(relayed.relay.came_count() == 0);
}

}  // namespace
}  // namespace muster::test
