#include "failures/scenario.h"

#include <chrono>
#include <future>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include "failures/failing_calls.h"
#include "muster/process_group.h"
#include "muster/store.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

// A failure may take the time-out, the slack, and what a busy machine adds.
constexpr Duration beyond_timeout = 2s;
constexpr std::uint32_t codec = 7;

/// One rank's part; what it is told goes to the story that all share.
class Player {
 public:
  Player(Story& story, std::mutex& mutex, std::string address, int rank, Duration its_timeout)
      : timeout_(its_timeout),
        bound_(its_timeout + beyond_timeout),
        story_(story),
        mutex_(mutex),
        address_(std::move(address)),
        rank_(rank) {}

  void play() {
    auto store = tried("connect", [&] { return Store::connect(address_, options(), timeout_); });
    if (!store) return;
    use_keys(*store);
    use_callbacks(*store);
    connect_beside();
    use_group(*store);
    begin_again(*store);
    const Exempt own(false);
    store->close();
  }

 private:
  StoreOptions options() const {
    StoreOptions options;
    options.timeout = timeout_;
    options.label = "rank" + std::to_string(rank_);
    return options;
  }

  std::string own(const std::string& name) const { return name + "/" + std::to_string(rank_); }
  std::string others(const std::string& name) const {
    return name + "/" + std::to_string(1 - rank_);
  }

  void wrong(const std::string& what) {
    const std::lock_guard lock(mutex_);
    story_.wrongs.push_back("rank " + std::to_string(rank_) + ": " + what);
  }

  void unheard(const std::string& call) {
    const std::lock_guard lock(mutex_);
    story_.unheard.push_back("rank " + std::to_string(rank_) + ": " + call);
  }

  /// Runs a call of the library: in time, and with an error that says something.
  template <class Do>
  auto tried(const char* name, const Do& run) -> std::invoke_result_t<Do> {
    using Told = std::invoke_result_t<Do>;
    const auto begun = std::chrono::steady_clock::now();
    std::optional<Told> result;
    try {
      const Exempt counts(false);
      result.emplace(run());
    } catch (const std::bad_alloc&) {  // only before the call has begun
      Error error;
      error.code = ErrorCode::resource_exhausted;
      error.detail = "thrown";
      result.emplace(std::move(error));
    }
    const std::lock_guard lock(mutex_);
    ++story_.call_count;
    if (std::chrono::steady_clock::now() - begun > bound_) {
      story_.wrongs.push_back(std::string(name) + " took longer than its time");
    }
    if (result->has_value()) {
      ++story_.success_count;
    } else {
      const Error& error = result->error();
      if (error.detail.empty() && error.ranks.empty()) {
        story_.speechless.push_back(std::string(name) + ": an error that says nothing");
      }
      story_.errors.push_back(error);
    }
    return *std::move(result);
  }

  template <class Do>
  void attempt(const char* name, const Do& run) {
    static_cast<void>(tried(name, run));
  }

  template <class T>
  void expect(const char* name, const Result<T>& result, const T& value) {
    if (result.has_value() && *result != value) wrong(std::string(name) + " gave something else");
  }

  void use_keys(Store& store) {
    const std::string large(5'000, 'v');
    const std::string mine = own("key");
    const auto is_set = tried("set", [&] { return store.set(mine, large, {}, timeout_); });
    const auto got = tried("get", [&] { return store.get(mine, timeout_); });
    if (is_set.has_value()) expect("get", got, large);
    const auto awaited =
        tried("get of the other's", [&] { return store.get(others("key"), timeout_); });
    expect("get of the other's", awaited, large);
    const auto sum = tried("add", [&] { return store.add(own("sum"), 3, timeout_); });
    expect<std::int64_t>("add", sum, 3);
    const auto appended =
        tried("append", [&] { return store.append(own("text"), "ab", timeout_); });
    expect<std::uint64_t>("append", appended, 2);
    const auto compared = tried("compare_set", [&] {
      return store.compare_set(own("lock"), std::nullopt, "held", {}, timeout_);
    });
    if (compared.has_value() && !compared->applied)
      wrong("compare_set found a key that nobody has set");
    const auto taken = tried("take", [&] { return store.take(own("text"), timeout_); });
    if (appended) expect<std::string>("take", taken, "ab");
    const std::string second = own("second");
    const std::string first = own("first");
    const std::vector<std::pair<std::string_view, std::string_view>> pairs = {{first, "1"},
                                                                              {second, "2"}};
    attempt("multi_set", [&] { return store.multi_set(pairs, {}, timeout_); });
    const std::vector<std::string_view> keys = {second, mine};
    const auto several = tried("multi_get", [&] { return store.multi_get(keys, timeout_); });
    if (several && several->size() != 2) wrong("multi_get gave another number of values");
    attempt("list", [&] { return store.list("", 0, timeout_); });
    attempt("remove", [&] { return store.remove(own("lock"), timeout_); });
  }

  void use_callbacks(Store& store) {
    auto told = std::make_shared<std::promise<void>>();
    auto count = std::make_shared<std::atomic<int>>(0);
    std::future<void> end = told->get_future();
    try {
      Handler<std::string> handler = [told, count](const Result<std::string>&) {
        const Exempt own;
        if (count->fetch_add(1) == 0) told->set_value();
      };
      const Exempt counts(false);
      store.get_async("nobody sets it", 20ms, std::move(handler));
    } catch (const std::bad_alloc&) {
      return;
    }
    if (end.wait_for(bound_) != std::future_status::ready) unheard("get_async");
    if (*count > 1) wrong("a handler ran twice");
  }

  /// A store that connects beside: its handler runs once, whatever happens.
  void connect_beside() {
    auto told = std::make_shared<std::promise<void>>();
    std::future<void> end = told->get_future();
    StoreOptions beside = options();
    try {
      Handler<Store> handler = [told](Result<Store>) {
        const Exempt own;
        told->set_value();
      };
      const Exempt counts(false);
      Store::connect_async(address_, std::move(beside), timeout_, std::move(handler));
    } catch (const std::bad_alloc&) {
      return;
    }
    told.reset();
    try {
      if (end.wait_for(bound_) == std::future_status::ready) return end.get();
    } catch (const std::future_error&) {  // the handler is gone, and did not run
    }
    unheard("connect_async");
  }

  void use_group(Store& store) {
    GroupOptions options;
    options.timeout = timeout_;
    options.on_loss = [](const Error&) {};
    options.on_leave = [](const Error&) {};
    auto group = tried(
        "create", [&] { return StatelessProcessGroup::create(store, "group", rank_, 2, options); });
    if (!group) return;
    use_rounds(*group);
    use_streams(*group);
    auto next = tried("regroup", [&] { return group->regroup({}, timeout_); });
    if (!next) return;
    attempt("barrier", [&] { return next->barrier(timeout_); });
    attempt("leave", [&] { return next->leave(timeout_); });
  }

  void use_rounds(StatelessProcessGroup& group) {
    attempt("barrier", [&] { return group.barrier(timeout_); });
    const std::string value(5'000, 'b');
    const auto broadcast = tried("broadcast", [&] {
      return group.broadcast_bytes(rank_ == 1 ? value : "", codec, Rank{1}, timeout_);
    });
    expect("broadcast", broadcast, value);
    const std::string mine = std::to_string(rank_);
    const auto all =
        tried("all_gather", [&] { return group.all_gather_bytes(mine, codec, timeout_); });
    expect<std::vector<std::string>>("all_gather", all, {"0", "1"});
    if (!all) attempt("recover", [&] { return group.recover(timeout_); });
    const std::vector<std::string> parts = {"for 0", "for 1"};
    const auto part = tried("scatter", [&] {
      return group.scatter_bytes(rank_ == 0 ? parts : std::vector<std::string>(), codec, Rank{0},
                                 timeout_);
    });
    expect<std::string>("scatter", part, "for " + mine);
    attempt("members", [&] { return group.members(timeout_); });
  }

  void use_streams(StatelessProcessGroup& group) {
    const int other = 1 - rank_;
    for (const std::string& object : {own("one"), own("two")}) {
      const auto sent = tried(
          "send", [&] { return group.send_bytes(Rank{other}, codec, object, Tag(), timeout_); });
      if (!sent) break;  // the next would take its place
    }
    for (const std::string& object : {others("one"), others("two")}) {
      const auto received =
          tried("receive", [&] { return group.recv_bytes(Rank{other}, codec, Tag(), timeout_); });
      if (!received) return;  // the next may be the same object
      if (received->bytes != object) wrong("another object was received");
    }
  }

  /// Whatever happened, the store can be used again.
  void begin_again(Store& store) {
    const auto still = tried("set", [&] { return store.set(own("end"), "1", {}, timeout_); });
    if (still.has_value()) return;
    attempt("reopen", [&] { return store.reopen(timeout_); });
    attempt("set", [&] { return store.set(own("end"), "1", {}, timeout_); });
  }

  const Duration timeout_;
  const Duration bound_;
  Story& story_;
  std::mutex& mutex_;
  const std::string address_;
  const int rank_;
};

}  // namespace

Story play(const std::string& address, Duration timeout) {
  Story story;
  std::mutex mutex;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&story, &mutex, &address, rank, timeout] {
      const Exempt own;
      Player(story, mutex, address, rank, timeout).play();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return story;
}

Duration timeout_of(FailurePlan plan) {
  return plan.what == Fails::one_byte ? Duration(20s) : Duration(500ms);
}

bool was_only_late(const Story& story) {
  if (!story.wrongs.empty() || !story.unheard.empty() || !story.speechless.empty()) return false;
  for (const Error& error : story.errors) {
    switch (error.code) {
      case ErrorCode::timed_out:
      case ErrorCode::unavailable:
      case ErrorCode::outcome_unknown:
      case ErrorCode::rank_lost:
      case ErrorCode::rank_left: break;
      default: return false;
    }
  }
  return !story.errors.empty();
}

bool serves(const std::string& address, std::optional<std::uint64_t> incarnation) {
  StoreOptions options;
  options.timeout = 5s;
  auto store = Store::connect(address, options, 5s);
  if (!store || (incarnation && store->incarnation() != *incarnation)) return false;
  if (!store->set("newcomer", "1").has_value()) return false;
  const auto got = store->get("newcomer", Duration{0});
  return got && *got == "1";
}

}  // namespace muster::test
