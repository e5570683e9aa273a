#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "credential_file.h"
#include "support/ranks.h"
#include "support/scale.h"

// 1,000 clients by TLS, while the credentials change 200 times.

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

}  // namespace
}  // namespace muster::test
