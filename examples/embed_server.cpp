// An inference server that embeds Muster: it hosts the store for its workers, forms a subgroup of
// them at runtime when a request asks for one, and shuts down in order.
//
//     embed_server 3        starts three workers and takes requests from its standard input, one a
//                           line: `1 3` is for workers 1 and 3; the end of input or SIGTERM ends it
//
// The server has one thread of its own, its main loop. It calls Muster's callback forms only, and
// their handlers run on that loop: no locks, and no request waits for another. A worker is the
// simple kind of program that blocks until it is told what to do. A worker that dies is named and
// ends the others; elastic.cpp shows how a group goes on without it.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "in_one_process.h"
#include "muster/codec_cereal.h"
#include "muster/codec_raw.h"

using namespace std::chrono_literals;
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

/// Work for the main loop, from any thread. Muster's I/O thread has a share in it, since it may
/// have a handler to pass on when the loop is over; what is queued then never runs.
class Inbox {
 public:
  Inbox() = default;
  ~Inbox() { ::close(wake_); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  void post(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    ::eventfd_write(wake_, 1);
  }

  void run() {
    eventfd_t count = 0;
    ::eventfd_read(wake_, &count);
    std::vector<std::function<void()>> queue;
    {
      const std::lock_guard lock(mutex_);
      queue.swap(queue_);
    }
    for (std::function<void()>& work : queue) work();
  }

  /// Can be read when there is work.
  int wake() const { return wake_; }

 private:
  int wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::mutex mutex_;
  std::vector<std::function<void()>> queue_;
};

/// The loop that an inference server has anyway: its sources of work, on one thread.
class MainLoop {
 public:
  /// Signals first: threads that are started later leave them to this loop.
  MainLoop() {
    sigset_t ending;
    ::sigemptyset(&ending);
    ::sigaddset(&ending, SIGTERM);
    ::sigaddset(&ending, SIGINT);
    ::sigprocmask(SIG_BLOCK, &ending, nullptr);
    signals_ = ::signalfd(-1, &ending, SFD_CLOEXEC);
  }
  ~MainLoop() { ::close(signals_); }
  MainLoop(const MainLoop&) = delete;
  MainLoop& operator=(const MainLoop&) = delete;

  /// Runs handlers here.
  muster::Executor executor() {
    return [inbox = inbox_](std::function<void()> work) { inbox->post(std::move(work)); };
  }

  /// Runs until `end`; `on_line` gets the requests, `on_end` is told once that no more come.
  void run(const std::function<void(const std::string&)>& on_line,
           const std::function<void()>& on_end) {
    pollfd sources[] = {
        {inbox_->wake(), POLLIN, 0}, {signals_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    std::string input;
    while (!ended_) {
      if (::poll(sources, 3, -1) < 0) continue;
      if (sources[0].revents != 0) inbox_->run();
      bool over = sources[1].revents != 0;
      if (sources[2].revents != 0) {
        char bytes[4096];
        const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
        if (count > 0) input.append(bytes, static_cast<std::size_t>(count));
        over = over || count <= 0;
        for (std::size_t end; (end = input.find('\n')) != std::string::npos;) {
          on_line(input.substr(0, end));
          input.erase(0, end + 1);
        }
      }
      if (over) {
        sources[1].fd = sources[2].fd = -1;  // poll leaves them out
        sources[1].revents = sources[2].revents = 0;
        on_end();
      }
    }
  }
  void end() { ended_ = true; }

 private:
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  int signals_ = -1;
  bool ended_ = false;
};

/// Rank 0 of the group "workers". What it has is destroyed from the last to the first: the groups,
/// the store that they are made on, the server that the store is connected to.
class InferenceServer {
 public:
  explicit InferenceServer(MainLoop& loop) : server_(start_server()), store_(connect(loop)) {}

  const std::string& address() const { return server_.addresses().front(); }

  /// Forms the group of all workers. Blocks, as `connect` does: the loop does not run yet.
  void form(int worker_count) {
    muster::GroupOptions options;
    options.timeout = 30s;
    options.on_loss = [](const muster::Error& error) {
      if (error.code == muster::ErrorCode::rank_left) return;  // as all do in the end
      std::cerr << error.message() << '\n';
    };
    workers_.emplace(
        require(StatelessProcessGroup::create(store_, "workers", 0, worker_count + 1, options)));
  }

  /// A request: a group of its own for the workers that it names, gone when it is answered. Every
  /// worker gets its orders in the order of the requests, so none waits for one that is elsewhere.
  void serve(const std::string& line) {
    std::istringstream words(line);
    std::set<int> ranks;
    for (int rank; words >> rank;) ranks.insert(rank);
    const std::string name = "request " + std::to_string(++request_count_);
    ++pending_count_;
    if (ranks.empty() || *ranks.begin() < 1 || *ranks.rbegin() >= workers_->world_size()) {
      return answer(name, " there are no such workers");
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

  /// No more requests come: when the last one is answered the workers are dismissed; then `then`.
  void finish(std::function<void()> then) {
    on_finished_ = std::move(then);
    if (pending_count_ == 0) dismiss();
  }

  /// What is left is closed in order; how many sessions of others the server still had.
  std::uint64_t close() {
    workers_.reset();
    store_.close();
    return server_.stop("the inference server ends", 5s);
  }

 private:
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

  void tell(int worker, const Order& order) {
    const std::string bytes = require(CerealCodec::encode(order));
    workers_->send_bytes_async(worker, CerealCodec::id, bytes, 0, 10s, [](Result<void> sent) {
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
    if (--pending_count_ == 0 && on_finished_) dismiss();
  }

  /// The process that hosts the server leaves a barrier last: afterwards nobody needs the server.
  void dismiss() {
    for (int worker = 1; worker < workers_->world_size(); ++worker) tell(worker, {});
    workers_->barrier_async(10s, [this](Result<muster::BarrierResult> passed) {
      if (!passed) std::cerr << passed.error().message() << '\n';  // says which worker is gone
      on_finished_();
    });
  }

  muster::Server server_;
  muster::Store store_;
  std::optional<StatelessProcessGroup> workers_;
  std::map<std::string, StatelessProcessGroup> groups_;  // one for each request under way
  int request_count_ = 0;
  int pending_count_ = 0;
  std::function<void()> on_finished_;
};

/// A worker's life: it blocks until it is told what to do.
int work(const char* address, int rank, int world_size) {
  muster::StoreOptions store_options;
  store_options.label = "worker " + std::to_string(rank);
  auto store = require(muster::Store::connect(address, std::move(store_options)));
  auto workers = require(StatelessProcessGroup::create(store, "workers", rank, world_size));
  for (;;) {
    const auto order = workers.recv_obj<Order>(0);
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

/// Starts this program again. The worker gets no signal that the server holds back for its loop or
/// that a terminal sends to the server; it inherits none of Muster's descriptors.
pid_t start_worker(const std::string& address, int rank, int world_size) {
  std::vector<std::string> words = {"embed_server", "--worker", address, std::to_string(rank),
                                    std::to_string(world_size)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  posix_spawnattr_t how;
  ::posix_spawnattr_init(&how);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setsigmask(&how, &none);
  pid_t worker = -1;
  const int failed =
      ::posix_spawn(&worker, "/proc/self/exe", nullptr, &how, arguments.data(), environ);
  ::posix_spawnattr_destroy(&how);
  require(failed == 0, "a worker starts");
  return worker;
}

int serve(int worker_count) {
  MainLoop loop;  // outlives all whose handlers it runs
  InferenceServer server(loop);
  std::vector<pid_t> workers;
  for (int rank = 1; rank <= worker_count; ++rank) {
    workers.push_back(start_worker(server.address(), rank, worker_count + 1));
  }
  server.form(worker_count);
  std::cout << "ready" << std::endl;

  loop.run([&server](const std::string& line) { server.serve(line); },
           [&server, &loop] { server.finish([&loop] { loop.end(); }); });

  const std::uint64_t sessions_left = server.close();
  int failed_count = 0;
  for (const pid_t worker : workers) {
    int status = -1;
    ::waitpid(worker, &status, 0);
    if (status != 0) ++failed_count;
  }
  std::cout << "ended: " << sessions_left << " sessions left, " << failed_count << " workers failed"
            << std::endl;
  return sessions_left == 0 && failed_count == 0 ? 0 : 1;
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
