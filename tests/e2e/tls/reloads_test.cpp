#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "credential_file.h"
#include "muster/inspect.h"
#include "support/await.h"
#include "support/ranks.h"
#include "support/scale.h"

// Many clients by TLS, while the credentials change.

namespace muster::test {
namespace {

constexpr int versions_count = 200;
/// Fewer where the tests are scaled down far, as under the sanitizers.
const int stores_count = scaled(1000) < 125 ? 64 : 1000;

/// Both ends of every connection are in this process.
void allow_descriptors() {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  REQUIRE(limit.rlim_cur > static_cast<rlim_t>(2 * stores_count + 64));
}

/// Counts down, and can be waited for.
class Left {
 public:
  explicit Left(int count) : count_(count) {}
  void one_is_done() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) done_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, 120s, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  int count_;
};

/// All stores set a key of their own; meanwhile the credentials change.
///
/// returns  how many have failed
int set_in_all(std::vector<Store>& stores, const std::function<void()>& change) {
  Left left(static_cast<int>(stores.size()));
  std::atomic<int> failed_count{0};
  for (std::size_t index = 0; index < stores.size(); ++index) {
    stores[index].set_async("key" + std::to_string(index), "value", {}, 60s,
                            [&](const Result<bool>& done) {
                              if (!done.has_value()) ++failed_count;
                              left.one_is_done();
                            });
    if (index == stores.size() / 2) change();
  }
  REQUIRE(left.wait());
  return failed_count;
}

TEST_CASE("200 versions of the credentials end nobody but who is removed") {
  allow_descriptors();
  const std::string stays = key_line("team/stays", 1);
  const std::string goes = key_line("team/goes", 2);
  const std::string other = key_line("team/other", 3);
  const CredentialFile known(stays + goes);
  const CredentialFile own(stays);
  const CredentialFile of_one_who_goes(goes);
  ServerOptions server_options;
  server_options.credentials_file = known.path();
  server_options.connections_max = 2048;
  Server server = start_disturbed_server(server_options);
  StoreOptions options;
  options.credential_file = own.path();
  std::vector<Store> stores;
  for (int index = 0; index < stores_count; ++index) stores.push_back(connect(server, options));
  StoreOptions options_of_one_who_goes;
  options_of_one_who_goes.credential_file = of_one_who_goes.path();
  auto gone = connect(server, options_of_one_who_goes);

  known.write(stays);
  must(server.reload_credentials());
  int failed_count = 0;
  for (int version = 1; version < versions_count; ++version) {
    failed_count += set_in_all(stores, [&] {
      known.write(version % 2 == 0 ? stays : stays + other);
      must(server.reload_credentials());
    });
    auto newcomer = Store::connect(server.addresses().front(), options, 60s);
    if (!newcomer || !newcomer->set("newcomer", "value").has_value()) ++failed_count;
    CHECK_FALSE(gone.set("gone", "value").has_value());
  }
  CHECK(failed_count == 0);
  CHECK_FALSE(must(stores.front().exists("gone")));
  CHECK_FALSE(Store::connect(server.addresses().front(), options_of_one_who_goes, 5s).has_value());
}

/// A server with a file of credentials, and stores that have one file together.
struct Exchanging {
  explicit Exchanging(int count) {
    ServerOptions server_options;
    server_options.credentials_file = known.path();
    // What a session waits for by its timeout would not come within the test.
    server_options.session_timeout = 600s;
    server.emplace(start_disturbed_server(server_options));
    StoreOptions options;
    options.credential_file = own.path();
    options.on_session_end = [this](const Error& error) {
      last_end = static_cast<int>(error.code);
      ++ended_count;
    };
    options.logger = [this](LogLevel, std::string_view line) {
      if (line.find("does not know its newest key") != line.npos) ++refused_count;
    };
    for (int index = 0; index < count; ++index) stores.push_back(connect(*server, options));
    for (Store& store : stores) must(store.set("key", "value"));
    operated.emplace(connect(*server, of_operator()));
  }
  StoreOptions of_operator() const {
    StoreOptions options;
    options.credential_file = of_admin.path();
    return options;
  }
  void know(const std::string& lines) {
    known.write(lines + admin);
    must(server->reload_credentials());
  }
  /// How many sessions of the stores stand on each key.
  std::map<std::string, std::size_t> counts_by_key() {
    std::map<std::string, std::size_t> counts;
    for (const SessionInfo& session : must(inspect_sessions(*operated))) ++counts[session.key_id];
    counts.erase(own_key_of_operator());
    return counts;
  }
  std::string own_key_of_operator() {
    if (!operator_key.empty()) return operator_key;
    for (const SessionInfo& session : must(inspect_sessions(*operated))) {
      operator_key = session.key_id;  // the last session is its own
    }
    return operator_key;
  }

  const std::string admin = key_line("job/operator", 200);
  const CredentialFile of_admin{key_line("job/operator", 200)};
  const CredentialFile known{key_line("job", 1) + key_line("job/operator", 200)};
  const CredentialFile own{key_line("job", 1)};
  std::atomic<int> ended_count{0};
  std::atomic<int> last_end{0};
  std::atomic<int> refused_count{0};
  std::optional<Server> server;
  std::vector<Store> stores;
  std::optional<Store> operated;
  std::string operator_key;
};

/// Whether all stand on one key, which is another one than `before`.
bool have_moved(Exchanging& job, const std::string& before) {
  const auto counts = job.counts_by_key();
  return counts.size() == 1 && counts.begin()->first != before;
}

TEST_CASE("keys are exchanged several times as documented, and no session of many ends") {
  allow_descriptors();
  constexpr int exchanges_count = 4;
  Exchanging job(50);
  std::atomic<int> failed_count{0};
  std::jthread caller([&](const std::stop_token& stop) {
    for (std::size_t call = 0; !stop.stop_requested(); ++call) {
      Store& store = job.stores[call % job.stores.size()];
      if (!store.add("calls", 1, 60s).has_value()) ++failed_count;
    }
  });
  for (int exchange = 1; exchange <= exchanges_count; ++exchange) {
    const std::string before = job.counts_by_key().begin()->first;
    const std::string older = key_line("job", static_cast<std::uint8_t>(exchange));
    const std::string newer = key_line("job", static_cast<std::uint8_t>(exchange + 1));
    const bool clients_are_first = exchange % 2 == 0;
    if (clients_are_first) {  // in the wrong order, which costs nothing
      const int refused_before = job.refused_count;
      job.own.write(newer);
      CHECK(holds_soon([&] { return job.refused_count > refused_before; }));
    }
    job.know(older + newer);
    if (!clients_are_first) job.own.write(older + newer);
    CHECK(holds_soon([&] { return have_moved(job, before); }));
    job.know(newer);
  }
  caller.request_stop();
  caller.join();
  CHECK(failed_count == 0);
  for (Store& store : job.stores) CHECK(must(store.get("key")) == "value");
  CHECK(job.ended_count == 0);
}

TEST_CASE("a removed key ends its sessions at once, though its identity has another line") {
  Exchanging job(3);
  job.know(key_line("job", 1) + key_line("job", 2));
  StoreOptions options;
  const CredentialFile newer(key_line("job", 2));
  options.credential_file = newer.path();
  Store stays = connect(*job.server, options);
  job.know(key_line("job", 2));
  CHECK(holds_soon([&] { return job.ended_count == 3; }));
  CHECK(job.last_end == static_cast<int>(ErrorCode::permission_denied));
  for (Store& store : job.stores) {
    CHECK(must_fail(store.get("key")).code == ErrorCode::permission_denied);
  }
  CHECK(must(stays.set("key", "value")));
}

TEST_CASE("a store that begins while the server does not know its newest key uses the one before") {
  Exchanging job(1);
  const CredentialFile both(key_line("job", 1) + key_line("job", 2));
  StoreOptions options;
  options.credential_file = both.path();
  Store store = connect(*job.server, options);
  CHECK(must(store.set("key", "value")));
  CHECK(job.counts_by_key().size() == 1);
  job.know(key_line("job", 1) + key_line("job", 2));
  CHECK(holds_soon([&] { return job.counts_by_key().size() == 2; }));
}

}  // namespace
}  // namespace muster::test
