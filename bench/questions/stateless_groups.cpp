// A barrier and an all_gather as vLLM's stateless group has them, on torch's TCPStore: written
// anew, request for request, its ranks simulated by this thread. And the same of Muster. Beside
// them the barrier that costs TCPStore least: all count, the last one sets a key that all wait for.

#include "dialect_tcpstore.h"
#include "load.h"
#include "questions.h"
#include "ranks.h"

namespace muster::bench {
namespace {

/// One call of the store.
struct Step {
  enum class What { set, set_if_last, get, wait, add, remove, done };
  What what = What::done;
  std::string key;
};

/// What a rank does, step by step.
using Algorithm = std::function<Step(int rank, int step)>;

std::string numbered(std::string_view name, int round, int rank) {
  return std::string(name) + '_' + std::to_string(round) + '_' + std::to_string(rank);
}

/// A name from rank 0; a key of each rank that it has come, which all look for; one that it goes,
/// which rank 0 looks for before it removes both.
Algorithm barrier(int ranks, int round) {
  return [=](int rank, int step) -> Step {
    using What = Step::What;
    if (step == 0) return {rank == 0 ? What::set : What::get, numbered("name", round, 0)};
    if (step == 1) return {What::set, numbered("arrival", round, rank)};
    step -= 2;
    if (step < ranks) return {What::get, numbered("arrival", round, step)};
    if (step == ranks) return {What::set, numbered("departure", round, rank)};
    step -= ranks + 1;
    if (rank > 0) return {};
    if (step < ranks) return {What::get, numbered("departure", round, step)};
    step -= ranks;
    if (step < ranks) return {What::remove, numbered("arrival", round, step)};
    step -= ranks;
    if (step < ranks) return {What::remove, numbered("departure", round, step)};
    return {};
  };
}

/// Each rank in its turn broadcasts its value.
Algorithm all_gather(int ranks, int round) {
  return [=](int rank, int step) -> Step {
    if (step >= ranks) return {};
    const auto what = step == rank ? Step::What::set : Step::What::get;
    return {what, numbered("broadcast", round, step)};
  };
}

Algorithm add_and_wait(int round) {
  return [=](int, int step) -> Step {
    if (step == 0) return {Step::What::add, numbered("count", round, 0)};
    if (step == 1) return {Step::What::set_if_last, numbered("all", round, 0)};
    if (step == 2) return {Step::What::wait, numbered("all", round, 0)};
    return {};
  };
}

class StatelessRanks {
 public:
  StatelessRanks(const Subject& subject, int count) : subject_(subject), swarm_(subject) {
    swarm_.connect(count);
  }

  Json run(const Algorithm& algorithm) {
    progress_.assign(static_cast<std::size_t>(swarm_.size()), {});
    done_ms_.clear();
    requests_ = 0;
    const double server_before_us = subject_.processor_us();
    const double client_before_us = own_processor_us();
    began_ = Clock::now();
    for (int rank = 0; rank < swarm_.size(); ++rank) {
      go_on(algorithm, rank);
      swarm_.flush(rank);
    }
    const auto count = static_cast<std::size_t>(swarm_.size());
    swarm_.receive_until([&] { return done_ms_.size() == count; },
                         [&](int rank, std::size_t) { on_reply(algorithm, rank); });
    const double wall_us = microseconds_since(began_);
    const double client_us = own_processor_us() - client_before_us;
    subject_.settle();
    return {{"wall_ms", wall_us / 1e3},
            {"server_ms", (subject_.processor_us() - server_before_us) / 1e3},
            {"client_ms", client_us / 1e3},
            {"client_share_of_wall", client_us / wall_us},
            {"p50_ms", quantile(done_ms_, 0.5)},
            {"p99_ms", quantile(done_ms_, 0.99)},
            {"requests", requests_}};
  }

 private:
  struct Progress {
    int step = 0;
    bool reads = false;  ///< when the key is there
  };
  TcpStoreDialect& dialect(int rank) {
    return dynamic_cast<TcpStoreDialect&>(swarm_.dialect(rank));
  }

  /// Until the rank has to wait for a reply.
  void go_on(const Algorithm& algorithm, int rank) {
    while (!ask(rank, algorithm(rank, progress_[static_cast<std::size_t>(rank)].step))) {
    }
  }

  /// returns  whether there is a reply to wait for, or nothing more to do
  bool ask(int rank, const Step& step) {
    Progress& progress = progress_[static_cast<std::size_t>(rank)];
    std::string& out = swarm_.out(rank);
    TcpStoreDialect& store = dialect(rank);
    if (step.what == Step::What::done) {
      done_ms_.push_back(microseconds_since(began_) / 1e3);
      return true;
    }
    ++progress.step;
    if (step.what == Step::What::set_if_last && store.number() < swarm_.size()) return false;
    ++requests_;
    switch (step.what) {
      case Step::What::get:
        --progress.step;  // not over when the key is there
        progress.reads = true;
        return store.append_wait(out, step.key, small_value_bytes);
      case Step::What::wait: return store.append_wait(out, step.key, small_value_bytes);
      case Step::What::add: return store.append_add(out, step.key);
      case Step::What::remove: return store.append_remove(out, step.key);
      default:
        store.append_bare_set(out, step.key, std::string(small_value_bytes, 'v'));
        return false;
    }
  }

  void on_reply(const Algorithm& algorithm, int rank) {
    Progress& progress = progress_[static_cast<std::size_t>(rank)];
    if (!progress.reads) return go_on(algorithm, rank);
    progress.reads = false;
    const Step step = algorithm(rank, progress.step++);
    ++requests_;
    dialect(rank).append_get(swarm_.out(rank), step.key, small_value_bytes);
  }

  const Subject& subject_;
  Swarm swarm_;
  std::vector<Progress> progress_;
  Clock::time_point began_;
  std::vector<double> done_ms_;  ///< when each rank was
  std::int64_t requests_ = 0;
};

void measure_both(Run& run, const Subject& tcpstore, const Subject& muster, int count) {
  constexpr int many = 512;  // ranks, from which on a round takes many seconds
  if (!run.wants({{"ranks", count}, {"cores", name_of(Cores::two)}})) return;
  StatelessRanks stateless(tcpstore, count);
  Ranks ranks(muster);
  ranks.connect(count);
  ranks.join();
  const auto parameters = [&](std::string_view call) -> Json {
    return {{"call", call}, {"ranks", count}, {"cores", name_of(Cores::two)}};
  };
  static int number = 0;
  const std::string value(small_value_bytes, 'v');
  for (int round = 0; round < run.rounds(); ++round) {
    const bool asks_tcpstore = round == 0 || count <= many;
    if (asks_tcpstore) {
      run.record("stateless_groups", parameters("barrier"), tcpstore.name(),
                 stateless.run(barrier(count, ++number)));
    }
    run.record("stateless_groups", parameters("barrier"), muster.name(),
               ranks.round(wire::Collective::barrier, {}));
    run.record("stateless_groups", parameters("barrier by add and wait"), tcpstore.name(),
               stateless.run(add_and_wait(++number)));
    if (asks_tcpstore) {
      run.record("stateless_groups", parameters("all_gather"), tcpstore.name(),
                 stateless.run(all_gather(count, ++number)));
    }
    run.record("stateless_groups", parameters("all_gather"), muster.name(),
               ranks.round(wire::Collective::all_gather, value));
  }
  ranks.leave();
}

}  // namespace

Json stateless_barrier(const Subject& subject, int ranks, int number) {
  StatelessRanks stateless(subject, ranks);
  return stateless.run(barrier(ranks, number));
}

void measure_stateless_groups(Run& run) {
  if (!run.has(Kind::tcpstore)) return;
  const auto tcpstore = run.start(Kind::tcpstore);
  const auto muster = run.start(Kind::muster);
  place_client(Cores::two);
  const auto counts = run.by_extent<std::vector<int>>({4}, {8, 64}, {8, 64, 256, 1024});
  for (const int count : counts) measure_both(run, *tcpstore, *muster, count);
}

}  // namespace muster::bench
