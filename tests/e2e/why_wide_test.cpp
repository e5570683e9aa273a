#include <algorithm>

#include <nlohmann/json.hpp>

#include "musterctl.h"
#include "support/machine.h"
#include "support/ranks.h"
#include "support/scale.h"

// How long `musterctl why` takes while a large group hangs. For the figures, with a build for
// speed: MUSTERCTL=PATH tests/e2e_tests -tc="*answered while*" -s

namespace muster::test {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_of(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// A group of many ranks, all of which but the last are in a barrier.
struct WideHang {
  const int world_size = scaled(1024) < 128 ? 32 : 1024;
  Musterctl musterctl;
  std::vector<Store> stores;
  std::vector<StatelessProcessGroup> groups;
  std::vector<std::promise<Result<BarrierResult>>> passed;

  WideHang() {
    StoreOptions options;
    options.io_thread = IoThread::create("ranks");
    std::vector<std::promise<Result<StatelessProcessGroup>>> joined;
    const auto count = static_cast<std::size_t>(world_size);
    joined.resize(count);
    passed.resize(count);
    for (std::size_t rank = 0; rank < count; ++rank) {
      options.label = "pod-" + std::to_string(rank);
      stores.push_back(connect(musterctl.address(), options));
      StatelessProcessGroup::create_async(
          stores.back(), "wide", static_cast<int>(rank), world_size, patience(),
          [&joined, rank](auto group) { joined[rank].set_value(std::move(group)); });
    }
    for (auto& each : joined) groups.push_back(must(each.get_future().get()));
    for (std::size_t rank = 0; rank + 1 < count; ++rank) {
      groups[rank].barrier_async(
          60s, [this, rank](auto result) { passed[rank].set_value(std::move(result)); });
    }
    await([this] { return missing() == nlohmann::json::array({world_size - 1}); });
  }
  ~WideHang() {
    groups[0].cancel();
    for (std::size_t rank = 0; rank + 1 < passed.size(); ++rank) passed[rank].get_future().wait();
  }

  /// What `musterctl --json why wide` says.
  nlohmann::json explained() {
    return nlohmann::json::parse(musterctl({"--json", "why", "wide"}).output);
  }
  /// The ranks that have not come to the round; null while there is none.
  nlohmann::json missing() {
    const nlohmann::json document = explained();
    return document.contains("round") ? document["round"]["missing"] : nlohmann::json();
  }
};

TEST_CASE("the one rank of many that called something else is told of with its process") {
  allow_descriptors();
  WideHang hang;
  const int last = hang.world_size - 1;
  auto& odd = hang.groups.back();
  CHECK(must_fail(odd.all_gather_bytes("x", 1, 20s)).code == ErrorCode::collective_mismatch);
  const std::string text = hang.musterctl({"why", "wide"}).output;
  CHECK(text.find("all_gather codec=1: called by rank " + std::to_string(last) + "\n") !=
        std::string::npos);
  CHECK(text.find("label pod-" + std::to_string(last) + ")\n    barrier: called by ranks 0-") !=
        std::string::npos);
}

TEST_CASE("why is answered while 1,024 ranks hang, in text and in JSON") {
  allow_descriptors();
  WideHang hang;
  const int last = hang.world_size - 1;
  const nlohmann::json document = hang.explained();
  CHECK(document["round"]["missing"] == nlohmann::json::array({last}));
  CHECK(document["members"].size() == static_cast<std::size_t>(hang.world_size));
  CHECK(document["members"].back()["label"] == "pod-" + std::to_string(last));
  const std::string text = hang.musterctl({"why", "wide"}).output;
  CHECK(text.find("waits for rank " + std::to_string(last) + ":") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') < 30);

  const std::vector<std::vector<std::string>> calls = {
      {"why", "wide"}, {"--json", "why", "wide"}, {"why"}};
  for (const auto& call : calls) {
    std::vector<Clock::duration> times;
    for (int run = 0; run < scaled(200); ++run) {
      const auto begin = Clock::now();
      REQUIRE(hang.musterctl(call).exit_code == 0);
      times.push_back(Clock::now() - begin);
    }
    std::sort(times.begin(), times.end());
    const auto median = times[times.size() / 2];
    const auto p99 = times[times.size() * 99 / 100];
    MESSAGE(hang.world_size, " ranks, musterctl ", joined(call), ", ", times.size(),
            " runs: median ", milliseconds_of(median), " ms, p99 ", milliseconds_of(p99),
            " ms, longest ", milliseconds_of(times.back()), " ms");
    CHECK(milliseconds_of(median) < 1000);  // of 100 ms that are promised: machines are shared
  }
}

}  // namespace
}  // namespace muster::test
