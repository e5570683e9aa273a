#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "credential_file.h"
#include "muster/store.h"
#include "support/await.h"
#include "support/byte_path.h"
#include "support/ranks.h"
#include "support/raw_client.h"
#include "support/scale.h"
#include "support/server.h"
#include "wire/hello.h"

// Somebody is on the path between a store with a key and its server: he cuts, answers himself,
// leads elsewhere, says again what was said.

namespace muster::test {
namespace {

using From = BytePath::From;
using Passed = BytePath::Passed;

constexpr const char* label = "a label that nobody on the path reads";

struct Guarded {
  explicit Guarded(const std::string& name = "cluster") {
    options.credentials_file = file.path();
    options.server_name = name;
    options.grace = 10s;
    options.logger = [this](LogLevel, std::string_view line) {
      if (line.find("admitted as identity") != line.npos) ++admitted_count;
    };
    server.emplace(start_disturbed_server(options));
  }
  const std::string& address() const { return server->addresses().front(); }
  void restart() {
    options.listen = {address()};
    server.reset();
    server.emplace(start_disturbed_server(options));
  }

  CredentialFile file{key_line("alice", 1)};
  std::atomic<int> admitted_count{0};
  ServerOptions options;
  std::optional<Server> server;
};

StoreOptions with_key(const Guarded& guarded) {
  StoreOptions options;
  options.credential_file = guarded.file.path();
  options.server_name = "cluster";
  options.label = label;
  options.timeout = 20s;
  return options;
}

/// What passed a path, from each side.
class Recording {
 public:
  void add(From from, std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    (from == From::client ? from_client_ : from_server_).append(bytes);
  }
  std::string from_client() const {
    const std::lock_guard lock(mutex_);
    return from_client_;
  }
  std::string from_server() const {
    const std::lock_guard lock(mutex_);
    return from_server_;
  }

 private:
  mutable std::mutex mutex_;
  std::string from_client_;
  std::string from_server_;
};

/// One connection that begins a session and sets a key.
void record(Recording& recording, const Guarded& guarded) {
  const BytePath path(guarded.address(), [&](From from, std::string_view bytes, std::size_t) {
    recording.add(from, bytes);
    return passed_on(from, bytes);
  });
  auto store = must(Store::connect(path.address(), with_key(guarded), 20s));
  CHECK(must(store.add("sum", 1)) == 1);
  store.close();
}

/// Where the next connection ends; the others pass.
struct Cut {
  From from = From::client;
  std::size_t bytes = 0;
  std::atomic<bool> is_due{false};

  Passed operator()(From sender, std::string_view bytes_of_it, std::size_t first) {
    if (!is_due || sender != from || first + bytes_of_it.size() < bytes) {
      return passed_on(sender, bytes_of_it);
    }
    is_due = false;
    Passed passed = passed_on(sender, bytes_of_it.substr(0, bytes - first));
    passed.ends = true;
    return passed;
  }
};

TEST_CASE("a FIN at any byte of a conversation is a lost connection, and no goodbye") {
  const Guarded guarded;
  Recording whole;
  record(whole, guarded);
  Cut cut;
  std::atomic<bool> ends{false};
  const BytePath path(guarded.address(), [&](From from, std::string_view bytes, std::size_t first) {
    Passed passed = cut(from, bytes, first);
    if (ends.exchange(false)) passed.ends = true;
    return passed;
  });
  auto store = must(Store::connect(path.address(), with_key(guarded), 20s));
  SetOptions bound;
  bound.bind_to_session = true;
  CHECK(must(store.set("bound", "mine", bound)));
  const std::size_t cuts_count = scaled(std::size_t{100});
  std::int64_t sum = must(store.get("sum")) == "1" ? 1 : 0;
  for (const From from : {From::client, From::server}) {
    const std::size_t bytes =
        (from == From::client ? whole.from_client() : whole.from_server()).size();
    const std::size_t stride = std::max<std::size_t>(1, bytes / cuts_count);
    for (std::size_t at = 1; at < bytes; at += stride) {
      CAPTURE(at);
      cut.from = from;
      cut.bytes = at;
      const int before = path.connections_count();
      // This one is lost, the next one is cut where it is due, and what was asked for is done once.
      ends = true;
      cut.is_due = true;
      CHECK(must(store.add("sum", 1)) == ++sum);
      await([&] { return path.connections_count() > before; });
      CHECK(must(store.get("bound")) == "mine");
    }
  }
  cut.is_due = false;
  CHECK(must(store.get("bound")) == "mine");
}

TEST_CASE("nobody on the path gets a store to speak in clear, or an older TLS") {
  const Guarded guarded;
  const std::string in_clear = [] {
    std::string hello;
    wire::ServerHello welcome;
    welcome.session_id = 1;
    wire::append_server_hello(hello, welcome);
    return hello;
  }();
  const auto older = [](std::string bytes, std::string_view extension) {
    const std::size_t at = bytes.find(extension);
    if (at != bytes.npos) bytes[at + extension.size() - 1] = '\x03';
    return bytes;
  };
  // The versions that a client offers, and the one that a server takes: TLS 1.3.
  const std::string_view offered("\x00\x2b\x00\x03\x02\x03\x04", 7);
  const std::string_view taken("\x00\x2b\x00\x02\x03\x04", 6);
  const std::string alert("\x15\x03\x01\x00\x02\x02\x46", 7);  // protocol_version
  int changed = 0;
  const std::vector<BytePath::Meddle> ways = {
      [&](From from, std::string_view, std::size_t) -> Passed {
        if (from == From::server) return {};
        return {{}, in_clear};
      },
      [&](From from, std::string_view, std::size_t) -> Passed {
        if (from == From::server) return {};
        return {{}, alert};
      },
      [&](From from, std::string_view bytes, std::size_t) -> Passed {
        if (from == From::server) return {{}, std::string(bytes)};
        changed += bytes.find(offered) != bytes.npos ? 1 : 0;
        return {older(std::string(bytes), offered), {}};
      },
      [&](From from, std::string_view bytes, std::size_t) -> Passed {
        if (from == From::client) return {std::string(bytes), {}};
        changed += bytes.find(taken) != bytes.npos ? 1 : 0;
        return {{}, older(std::string(bytes), taken)};
      },
  };
  for (std::size_t way = 0; way < ways.size(); ++way) {
    CAPTURE(way);
    Recording recording;
    const BytePath path(guarded.address(),
                        [&](From from, std::string_view bytes, std::size_t first) {
                          recording.add(from, bytes);
                          return ways[way](from, bytes, first);
                        });
    must_fail(Store::connect(path.address(), with_key(guarded), 500ms));
    const std::string said = recording.from_client();
    CHECK(said.substr(0, 2) == "\x16\x03");
    CHECK(said.find(label) == said.npos);
  }
  CHECK(changed >= 2);
  CHECK(guarded.admitted_count == 0);
}

TEST_CASE("a store that is led to itself, or to another server of its process, begins nothing") {
  const Guarded guarded;
  const BytePath mirror({}, [](From, std::string_view bytes, std::size_t) -> Passed {
    return {{}, std::string(bytes)};
  });
  must_fail(Store::connect(mirror.address(), with_key(guarded), 500ms));
  CHECK(mirror.connections_count() >= 1);
  const Guarded hosted("of this process");
  const BytePath path(hosted.address(), [](From from, std::string_view bytes, std::size_t) {
    return passed_on(from, bytes);
  });
  CHECK(must_fail(Store::connect(path.address(), with_key(hosted), 20s)).code ==
        ErrorCode::permission_denied);
  CHECK(hosted.admitted_count == 0);
}

TEST_CASE("a conversation that is said again has no effect, also at a server that was restarted") {
  Guarded guarded;
  Recording recording;
  record(recording, guarded);
  const std::string said = recording.from_client();
  for (const bool is_restarted : {false, true}) {
    CAPTURE(is_restarted);
    if (is_restarted) guarded.restart();
    const int before = guarded.admitted_count;
    RawClient again(guarded.address());
    again.send(said);
    CHECK(again.is_closed());
    CHECK(guarded.admitted_count == before);
    auto store = must(Store::connect(guarded.address(), with_key(guarded), 20s));
    CHECK(must(store.exists("sum")) != is_restarted);
    if (!is_restarted) CHECK(must(store.get("sum")) == "1");
  }
}

}  // namespace
}  // namespace muster::test
