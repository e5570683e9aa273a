// An inference server that embeds Muster: it hosts the store for its workers, forms a subgroup of
// them at runtime when a request asks for one, and shuts down in order.
//
//     embed_server 3        starts three workers and takes requests from its standard input, one a
//                           line: `1 3` is for workers 1 and 3; the end of input or SIGTERM ends
//                           it, a second signal ends it at once
//
// The server has one thread of its own, its main loop. It calls Muster's callback forms only, and
// their handlers run on that loop: no locks, and the loop never waits. So many requests are under
// way at once, the others wait in line; each worker does its parts in their order. A worker is the
// simple kind of program that blocks until it is told what to do. A worker that dies is named and
// ends the others; elastic.cpp shows how a group goes on without it.

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "embed_server/main_loop.h"
#include "embed_server/worker_processes.h"
#include "in_one_process.h"
#include "muster/codec_cereal.h"
#include "muster/codec_raw.h"

using namespace std::chrono_literals;
using example::MainLoop;
using example::require;
using muster::CerealCodec;
using muster::RawCodec;
using muster::Result;
using muster::StatelessProcessGroup;

namespace {

/// What the server tells a worker: to take part in a group. Without a name: to end.
struct Order {
  std::string group;
  int rank = 0;
  int world_size = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(group, rank, world_size);
  }
};

/// Rank 0 of the group "workers". What it has is destroyed from the last to the first: the groups,
/// the store that they are made on, the server that the store is connected to.
class InferenceServer {
 public:
  explicit InferenceServer(MainLoop& loop) : server_(start_server()), store_(connect(loop)) {}

  const std::string& address() const { return server_.addresses().front(); }

  /// Forms the group of all workers; `then` is told whether that was possible.
  void form(int worker_count, std::function<void(bool)> then) {
    muster::GroupOptions options;
    options.timeout = 30s;
    options.on_loss = [](const muster::Error& error) { std::cerr << error.message() << '\n'; };
    StatelessProcessGroup::create_async(
        store_, "workers", 0, worker_count + 1, options,
        [this, then = std::move(then)](Result<StatelessProcessGroup> group) {
          if (!group) std::cerr << group.error().message() << '\n';  // says who has not come
          if (group) workers_.emplace(*std::move(group));
          then(workers_.has_value());
        });
  }

  bool is_formed() const { return workers_.has_value(); }

  /// Whether there is room in the line.
  bool wants_requests() const { return is_formed() && waiting_.size() < waiting_max; }

  void serve(const std::string& line) {
    waiting_.push_back(line);
    begin_waiting();
  }

  /// No more requests come: when the last one is answered the workers are dismissed; then `then`.
  void finish(std::function<void()> then) {
    on_finished_ = std::move(then);
    begin_waiting();
  }

  /// What is left is closed in order; how many sessions of others the server still had.
  std::uint64_t close() {
    workers_.reset();
    store_.close();
    return server_.stop("the inference server ends", 5s);
  }

 private:
  static constexpr std::size_t waiting_max = 1000;

  static muster::Server start_server() {
    muster::ServerOptions options;
    options.hosting_rank = 0;  // errors at the workers say so when this process dies
    options.label = "inference server";
    return require(muster::Server::start(std::move(options)));
  }

  /// To the server in this very process.
  muster::Store connect(MainLoop& loop) {
    muster::StoreOptions options;
    options.label = "inference server";
    options.executor = loop.executor();
    return require(muster::Store::connect(address(), std::move(options)));
  }

  /// A session may have 1,024 calls at a time at the server; a request takes one for each worker
  /// and one for its group.
  int under_way_max() const { return std::max(1, 512 / workers_->world_size()); }

  void begin_waiting() {
    while (!waiting_.empty() && under_way_count_ < under_way_max()) {
      const std::string line = std::move(waiting_.front());
      waiting_.pop_front();
      ++under_way_count_;
      begin(line);
    }
    if (under_way_count_ == 0 && on_finished_) dismiss();
  }

  /// A request: a group of its own for the workers that it names, gone when it is answered. Every
  /// worker gets its orders in the order of the requests, so none waits for one that is elsewhere.
  void begin(const std::string& line) {
    std::istringstream words(line);
    std::set<int> ranks;
    for (int rank; words >> rank;) ranks.insert(rank);
    const std::string name = "request " + std::to_string(++request_count_);
    if (ranks.empty() || *ranks.begin() < 1 || *ranks.rbegin() >= workers_->world_size()) {
      std::cout << name << ": there are no such workers" << std::endl;
      --under_way_count_;
      return;
    }
    const int world_size = int(ranks.size()) + 1;
    int next_rank = 1;
    for (const int worker : ranks) tell(worker, {name, next_rank++, world_size});
    muster::GroupOptions options;
    options.timeout = 10s;
    StatelessProcessGroup::create_async(
        store_, name, 0, world_size, options, [this, name](Result<StatelessProcessGroup> group) {
          if (!group) return answer(name, " " + group.error().message());  // says who did not come
          gather(name, groups_.emplace(name, *std::move(group)).first->second);
        });
  }

  void tell(int worker, const Order& order) {
    const std::string bytes = require(CerealCodec::encode(order));
    workers_->send_bytes_async(muster::Rank{worker}, CerealCodec::id, bytes, muster::Tag(), 10s,
                               [](Result<void> sent) {
                                 if (!sent) std::cerr << sent.error().message() << '\n';
                               });
  }

  /// Here requests would be computed: each worker adds its part.
  void gather(const std::string& name, StatelessProcessGroup& group) {
    group.all_gather_bytes_async("", RawCodec::id, 10s,
                                 [this, name](Result<std::vector<std::string>> parts) {
                                   if (!parts) return answer(name, " " + parts.error().message());
                                   std::string text;
                                   for (const std::string& part : *parts) text += part;
                                   answer(name, text);
                                 });
  }

  void answer(const std::string& name, const std::string& text) {
    std::cout << name << ":" << text << std::endl;
    groups_.erase(name);  // leaves it, and waits for nobody
    --under_way_count_;
    begin_waiting();
  }

  /// The process that hosts the server leaves a barrier last: afterwards nobody needs the server.
  void dismiss() {
    for (int worker = 1; worker < workers_->world_size(); ++worker) tell(worker, {});
    workers_->barrier_async(5s, [this](Result<muster::BarrierResult> passed) {
      if (!passed) std::cerr << passed.error().message() << '\n';  // says which worker is gone
      on_finished_();
    });
  }

  muster::Server server_;
  muster::Store store_;
  std::optional<StatelessProcessGroup> workers_;
  std::map<std::string, StatelessProcessGroup> groups_;  // one for each request under way
  int request_count_ = 0;
  std::deque<std::string> waiting_;  // requests that are not begun
  int under_way_count_ = 0;
  std::function<void()> on_finished_;
};

/// A worker's life: it blocks until it is told what to do.
int work(const char* address, int rank, int world_size) {
  example::end_with_parent();
  muster::StoreOptions store_options;
  store_options.label = "worker " + std::to_string(rank);
  auto store = require(muster::Store::connect(address, std::move(store_options)));
  auto workers = require(StatelessProcessGroup::create(store, "workers", rank, world_size));
  for (;;) {
    const auto order = workers.recv_obj<Order>(muster::Rank{0});
    if (!order && order.error().code == muster::ErrorCode::timed_out) continue;  // quiet times
    if (!order) {
      std::cerr << order.error().message() << '\n';
      return 1;
    }
    if (order->group.empty()) break;
    muster::GroupOptions options;
    options.timeout = 10s;
    auto group =
        StatelessProcessGroup::create(store, order->group, order->rank, order->world_size, options);
    if (!group) continue;  // the server hears it, too, and says why
    const std::string part = " worker " + std::to_string(rank) + " did its part;";
    const auto parts = group->all_gather_obj<RawCodec>(part, 10s);
    if (!parts) std::cerr << parts.error().message() << '\n';
  }
  return workers.barrier(10s) ? 0 : 1;
}

/// How long workers that were dismissed may take to end.
constexpr auto patience = 3s;

int serve(int worker_count) {
  MainLoop loop;  // outlives all whose handlers it runs
  InferenceServer server(loop);
  example::WorkerProcesses workers;
  workers.start(server.address(), worker_count);
  bool in_order = true;
  const auto abort = [&] {
    in_order = false;
    loop.end();
  };
  server.form(worker_count, [&](bool is_formed) {
    if (!is_formed) return abort();
    std::cout << "ready" << std::endl;
  });

  bool is_finished = false;
  const auto reap = [&] {
    workers.reap();
    if (!server.is_formed() && workers.failed_count() > 0) return abort();
    if (is_finished && workers.none_runs()) loop.end();
  };
  MainLoop::Handlers handlers;
  handlers.wants_input = [&] { return server.wants_requests(); };
  handlers.on_line = [&](const std::string& line) { server.serve(line); };
  handlers.on_child = reap;
  handlers.on_abort = abort;
  handlers.on_end = [&] {
    if (!server.is_formed()) return abort();
    server.finish([&] {
      is_finished = true;
      loop.after(patience, [&] { workers.kill(); });
      reap();
    });
  };
  loop.run(handlers);
  if (!in_order) return 1;

  const std::uint64_t sessions_left = server.close();
  std::cout << "ended: " << sessions_left << " sessions left, " << workers.failed_count()
            << " workers failed" << std::endl;
  return sessions_left == 0 && workers.failed_count() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && argv[1] == std::string("--worker")) {
    return work(argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  }
  const int worker_count = argc == 2 ? std::atoi(argv[1]) : 0;
  if (worker_count > 0) return serve(worker_count);
  std::cerr << "usage: embed_server WORKER_COUNT\n";
  return 2;
}
