// What one who asks for little notices of others who ask for much: many small requests, or large
// values. The others are a thread of their own, which yields to the one whose time is taken: both
// share a core, and the server has the other one.

#include <sys/resource.h>

#include <atomic>
#include <future>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "load.h"
#include "questions.h"
#include "ranks.h"

namespace muster::bench {
namespace {

constexpr int ranks_in_barrier = 64;
constexpr int nice_of_others = 10;
constexpr std::size_t samples_min = 100;
constexpr std::size_t memcached_bytes_max = mebibyte;

struct Others {
  std::string_view what;
  int connections;
  int depth;
  std::size_t value_bytes;
  bool writes;
};

std::vector<Others> others_of(const Run& run) {
  std::vector<Others> all = {{"gets of 64 B, pipelined 16", 8, 16, small_value_bytes, false},
                             {"sets of 64 B, pipelined 16", 8, 16, small_value_bytes, true},
                             {"gets of 1 MiB", 4, 1, mebibyte, false},
                             {"sets of 1 MiB", 4, 1, mebibyte, true}};
  if (run.extent() == Extent::full) {
    all.push_back({"gets of 16 MiB", 4, 1, 16 * mebibyte, false});
    all.push_back({"sets of 16 MiB", 4, 1, 16 * mebibyte, true});
  }
  return all;
}

std::string key_of_other(int peer) { return "other-" + std::to_string(peer); }

/// Keeps the server busy from its making on, until it is stopped.
class Flood {
 public:
  Flood(const Subject& subject, const Others& others)
      : others_(others), value_(others.value_bytes, 'v'), swarm_(subject) {
    swarm_.connect(others_.connections);
    for (int peer = 0; peer < swarm_.size(); ++peer) {  // what is there to be read
      swarm_.dialect(peer).append_set(swarm_.out(peer), key_of_other(peer), value_, 0);
      swarm_.call(peer);
    }
    done_ = std::async(std::launch::async, [this] { return run(); });
  }
  ~Flood() { stops_ = true; }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  /// How many requests were answered in a second.
  double stop() {
    stops_ = true;
    return done_.get();
  }

 private:
  double run() {
    ::setpriority(PRIO_PROCESS, 0, nice_of_others);  // of this thread alone
    const auto began = Clock::now();
    std::size_t answered = 0;
    std::size_t in_flight = 0;
    const auto issue = [&](int peer) {
      Dialect& dialect = swarm_.dialect(peer);
      if (others_.writes) {
        dialect.append_set(swarm_.out(peer), key_of_other(peer), value_, 0);
      } else {
        dialect.append_get(swarm_.out(peer), key_of_other(peer), value_.size());
      }
      ++in_flight;
    };
    for (int peer = 0; peer < swarm_.size(); ++peer) {
      for (int i = 0; i < others_.depth; ++i) issue(peer);
      swarm_.flush(peer);
    }
    swarm_.receive_until([&] { return in_flight == 0; },
                         [&](int peer, std::size_t replies) {
                           in_flight -= replies;
                           answered += replies;
                           for (; replies > 0 && !stops_; --replies) issue(peer);
                         });
    return static_cast<double>(answered) * 1e6 / microseconds_since(began);
  }

  Others others_;
  std::string value_;
  Swarm swarm_;
  std::atomic<bool> stops_{false};
  std::future<double> done_;  // waits when it goes, before what it uses
};

struct Found {
  std::string_view what;
  std::vector<double> took_us;
  double server_share;  ///< of the time, at work, for everybody
  double client_share;  ///< the same of this process, the others' thread included
};

/// Asks again and again, one at a time, and tells how long each took.
template <class Ask>
Found ask_for(const Subject& subject, std::string_view what, std::chrono::milliseconds duration,
              Ask&& ask) {
  Found found{what, {}, subject.processor_us(), own_processor_us()};
  const auto began = Clock::now();
  while (Clock::now() < began + duration ||
         (found.took_us.size() < samples_min && Clock::now() < began + 5 * duration)) {
    found.took_us.push_back(ask());
  }
  const double wall_us = microseconds_since(began);
  found.server_share = (subject.processor_us() - found.server_share) / wall_us;
  found.client_share = (own_processor_us() - found.client_share) / wall_us;
  return found;
}

/// One who asks for little: for a key, or for a barrier with all other ranks.
class Asker {
 public:
  Asker(const Subject& subject, std::chrono::milliseconds duration)
      : subject_(subject), duration_(duration), swarm_(subject) {
    swarm_.connect(1);
    swarm_.dialect(0).append_set(swarm_.out(0), "mine", std::string(small_value_bytes, 'v'), 0);
    swarm_.call(0);
    if (subject.kind() == Kind::echo) floor_.emplace(subject, ranks_in_barrier);
    if (subject.kind() != Kind::muster) return;
    ranks_.emplace(subject);
    ranks_->connect(ranks_in_barrier);
    ranks_->join();
  }

  std::vector<Found> ask() {
    std::vector<Found> found;
    found.push_back(ask_for(subject_, "a get", duration_, [this] {
      const auto began = Clock::now();
      swarm_.dialect(0).append_get(swarm_.out(0), "mine", small_value_bytes);
      swarm_.call(0);
      return microseconds_since(began);
    }));
    if (!floor_ && !ranks_) return found;
    found.push_back(ask_for(subject_, "a barrier of 64 ranks", duration_, [this] {
      return floor_ ? floor_->barrier_us() : ranks_->barrier_us();
    }));
    return found;
  }

 private:
  const Subject& subject_;
  std::chrono::milliseconds duration_;
  Swarm swarm_;
  std::optional<FloorRanks> floor_;
  std::optional<Ranks> ranks_;
};

/// A round with one subject: alone, and then beside each kind of others.
void measure_subject(Run& run, const Subject& subject, Asker& asker) {
  std::map<std::string_view, double> alone_p99_us;
  const auto record = [&](std::vector<Found> all, std::string_view beside, double others_per_s) {
    for (auto& [what, took_us, server_share, client_share] : all) {
      const double p99_us = quantile(took_us, 0.99);
      alone_p99_us.emplace(what, p99_us);
      Json values = {{"p50_us", quantile(took_us, 0.5)},
                     {"p99_us", p99_us},
                     {"p99_grows_by", p99_us / alone_p99_us[what]},
                     {"server_share_of_wall", server_share},
                     {"client_share_of_wall", client_share}};
      if (others_per_s > 0) values["others_per_s"] = others_per_s;
      run.record("fairness", {{"of", what}, {"beside", beside}}, subject.name(), values);
    }
  };
  subject.settle();
  record(asker.ask(), "nobody", 0);
  for (const Others& others : others_of(run)) {
    const bool is_refused =
        subject.kind() == Kind::memcached && others.value_bytes > memcached_bytes_max;
    if (is_refused || !run.wants({{"beside", others.what}})) continue;
    Flood flood(subject, others);
    std::vector<Found> found = asker.ask();
    record(std::move(found), others.what, flood.stop());
  }
}

}  // namespace

void measure_fairness(Run& run) {
  place_client(Cores::two);
  const auto subjects = run.start(all_kinds);
  const std::chrono::milliseconds duration(run.by_extent(2, 40, 200));
  std::vector<std::unique_ptr<Asker>> askers;
  for (const auto& subject : subjects) {
    askers.push_back(std::make_unique<Asker>(*subject, duration));
  }
  take_turns(run.by_extent(1, 2, 5), subjects.size(),
             [&](std::size_t i) { measure_subject(run, *subjects[i], *askers[i]); });
}

}  // namespace muster::bench
