// Keys that expire by themselves: how late they go, whether any goes early, and what others notice
// of it.
//
// How many keys are left is asked again and again. The n-th key was written after the n-th write
// was begun and not after its reply came. So the n-th that was seen to be gone was late by no more
// than from the write's beginning + its time to live until then, which counts the write and the
// question as lateness; and it was early if it was gone before that.

#include <algorithm>
#include <thread>

#include "load.h"
#include "questions.h"

namespace muster::bench {
namespace {

constexpr int writers = 4;
constexpr int under_way_of_writer = 16;  ///< writes of a writer that are under way at a time
constexpr std::chrono::milliseconds ahead{
    20};                                 ///< of the first key's time: from then on it is asked
constexpr int quick_keys_max = 500'000;  ///< with more, a round takes half a minute

struct Written {
  std::vector<Clock::time_point> begun;  ///< of each key, ascending
  std::vector<Clock::time_point> done;
};

/// Writes so many keys as fast as it goes.
Written write_keys(Swarm& swarm, int count, std::chrono::milliseconds time_to_live) {
  Written written;
  const std::string value(small_value_bytes, 'v');
  int issued = 0;
  const auto issue = [&](int peer) {
    if (issued == count) return;
    written.begun.push_back(Clock::now());
    swarm.dialect(peer).append_set(swarm.out(peer), nth_key(issued++), value, time_to_live.count());
  };
  for (int peer = 0; peer < writers; ++peer) {
    for (int i = 0; i < under_way_of_writer; ++i) issue(peer);
    swarm.flush(peer);
  }
  swarm.receive(static_cast<std::size_t>(count), [&](int peer, std::size_t replies) {
    const auto now = Clock::now();
    for (std::size_t i = 0; i < replies; ++i) {
      written.done.push_back(now);
      issue(peer);
    }
  });
  return written;
}

/// Asks how many keys are left until none is.
class Watch {
 public:
  /// Made before the keys are written: what is there then stays.
  Watch(Swarm& swarm, std::chrono::milliseconds time_to_live)
      : swarm_(swarm), time_to_live_(time_to_live), stay_(ask()) {}

  void run(const Subject& subject, const Written& written) {
    // Not from the beginning: the questions cost the server something, too.
    std::this_thread::sleep_until(written.begun.front() + time_to_live_ - ahead);
    const double server_before_us = subject.processor_us();
    const double client_before_us = own_processor_us();
    const auto end = written.done.back() + time_to_live_ + std::chrono::seconds(15);
    while (gone_ < written.done.size() && Clock::now() < end) {
      const std::int64_t left = std::max<std::int64_t>(ask() - stay_, 0);
      note(written, Clock::now(), written.done.size() - static_cast<std::size_t>(left));
    }
    const auto count = static_cast<double>(std::max<std::size_t>(gone_, 1));
    client_us_ = (own_processor_us() - client_before_us) / count;
    subject.settle();
    server_us_ = (subject.processor_us() - server_before_us) / count;
    never_gone_ = written.done.size() - gone_;
  }

  Json found() {
    return {
        {"late_p50_ms", quantile(late_ms_, 0.5)},
        {"late_p99_ms", quantile(late_ms_, 0.99)},
        {"late_max_ms", late_ms_.empty() ? 0 : *std::max_element(late_ms_.begin(), late_ms_.end())},
        {"early_ms", early_ms_},
        {"server_us", server_us_},
        {"client_us", client_us_},
        {"never_gone", never_gone_}};
  }

 private:
  std::int64_t ask() {
    const int peer = swarm_.size() - 1;
    swarm_.dialect(peer).append_count(swarm_.out(peer));
    swarm_.call(peer);
    return swarm_.dialect(peer).number();
  }

  /// At `now` so many are gone.
  void note(const Written& written, Clock::time_point now, std::size_t gone) {
    for (; gone_ < gone; ++gone_) {
      const auto late = now - (written.begun[gone_] + time_to_live_);
      const double late_ms = std::chrono::duration<double, std::milli>(late).count();
      late_ms_.push_back(std::max(late_ms, 0.0));
      early_ms_ = std::max(early_ms_, -late_ms);
    }
  }

  Swarm& swarm_;
  std::chrono::milliseconds time_to_live_;
  std::int64_t stay_;
  std::size_t gone_ = 0;
  std::size_t never_gone_ = 0;
  std::vector<double> late_ms_;
  double early_ms_ = 0;
  double server_us_ = 0;
  double client_us_ = 0;
};

/// Twice what it takes to write them, and more.
std::chrono::milliseconds time_to_live_of(const Run& run, int count) {
  return std::chrono::milliseconds(
      run.by_extent(100, 4000, count > quick_keys_max ? 12'000 : 4000));
}

void measure_lateness(Run& run, const Subject& subject, int count) {
  const auto time_to_live = time_to_live_of(run, count);
  Swarm swarm(subject);
  swarm.connect(writers + 1);
  Watch watch(swarm, time_to_live);
  watch.run(subject, write_keys(swarm, count, time_to_live));
  run.record("expiry", {{"keys", count}, {"measured", "lateness"}}, subject.name(), watch.found());
}

/// What a reader of other keys notices: the same load before, and while the keys go.
void measure_others(Run& run, const Subject& subject, int count) {
  auto time_to_live = time_to_live_of(run, count);
  Swarm swarm(subject);
  swarm.connect(writers);
  Swarm readers(subject);
  readers.connect(8);
  const std::string value(small_value_bytes, 'v');
  for (int peer = 0; peer < readers.size(); ++peer) {
    readers.dialect(peer).append_set(readers.out(peer), "other-" + std::to_string(peer), value, 0);
    readers.call(peer);
  }
  const auto get = [](Dialect& dialect, int peer, std::string& out) {
    dialect.append_get(out, "other-" + std::to_string(peer), small_value_bytes);
  };
  Written written = write_keys(swarm, count, time_to_live);
  const auto takes = [&] {
    return std::max(written.done.back() - written.begun.front(),
                    Clock::duration(std::chrono::milliseconds(50)));
  };
  // On a slow machine they have to live for longer: written again, they do.
  for (int again = 0; again < 6 && time_to_live < 3 * takes(); ++again) {
    time_to_live *= 2;
    written = write_keys(swarm, count, time_to_live);
  }
  const auto first_goes = written.begun.front() + time_to_live;
  LoadOptions options;
  options.duration = std::chrono::duration_cast<std::chrono::milliseconds>(takes());
  if (Clock::now() + options.duration > first_goes) {
    return run.excuse("expiry", subject.name() + ": writing took longer than the keys live");
  }
  const Json before = load(subject, readers, get, options);
  std::this_thread::sleep_until(first_goes);
  const Json during = load(subject, readers, get, options);
  const double p99_before_us = before["p99_us"];
  const double p99_during_us = during["p99_us"];
  run.record("expiry", {{"keys", count}, {"measured", "others' gets"}}, subject.name(),
             {{"p50_before_us", before["p50_us"]},
              {"p50_during_us", during["p50_us"]},
              {"p99_before_us", p99_before_us},
              {"p99_during_us", p99_during_us},
              {"server_us", during["server_us"]},
              {"client_us", during["client_us"]},
              {"p99_grows_by", p99_during_us / p99_before_us}});
}

}  // namespace

void measure_expiry(Run& run) {
  place_client(Cores::two);
  const auto counts = run.by_extent<std::vector<int>>({1000}, {100'000}, {100'000, 1'000'000});
  for (const int count : counts) {
    if (!run.wants(Json::object({{"keys", count}}))) continue;
    for (int round = 0; round < run.by_extent(1, 1, count > quick_keys_max ? 2 : 5); ++round) {
      // Memcached does not count what has expired; TCPStore has no time to live.
      for (const Kind kind : {Kind::muster, Kind::redis}) {
        if (!run.has(kind)) continue;
        const auto subject = run.start(kind);
        measure_lateness(run, *subject, count);
        measure_others(run, *subject, count);
      }
    }
  }
}

}  // namespace muster::bench
