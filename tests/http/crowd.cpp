// Many groups that work, for measurements of what it costs to look at them.
//
//     http_crowd HOST:PORT GROUPS RANKS [RATE]
//
// Forms so many groups of so many ranks each and prints "ready". From then on each passes RATE
// barriers in each second, or one, and groups in which a rank was lost regroup. Each line of the
// standard input ends the session of a rank, in one group after the other; a line "count" tells how
// many barriers all have passed instead. Ends with the standard input.

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/inspect.h"
#include "muster/io_thread.h"
#include "muster/operate.h"
#include "muster/process_group.h"
#include "muster/store.h"

namespace {

using Group = muster::StatelessProcessGroup;
using Time = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct Rank {
  std::optional<muster::Store> store;
  std::mutex mutex;
  std::shared_ptr<Group> group;  ///< null: it has none
  muster::Call call;
  bool waits = true;
  bool is_to_regroup = false;
  bool is_gone = false;
};

std::atomic<int> formed{0};
std::atomic<std::uint64_t> passed{0};  ///< by all ranks

void take(Rank& rank, muster::Result<Group> result) {
  const std::lock_guard lock(rank.mutex);
  rank.waits = false;
  rank.is_to_regroup = false;
  if (!result.has_value()) {
    rank.is_gone = true;
    return;
  }
  rank.group = std::make_shared<Group>(std::move(*result));
  ++formed;
  formed.notify_all();
}

void go_on(Rank& rank) {
  std::shared_ptr<Group> group;
  bool regroups = false;
  {
    const std::lock_guard lock(rank.mutex);
    if (rank.waits || rank.is_gone || rank.group == nullptr) return;
    rank.waits = true;
    group = rank.group;
    regroups = rank.is_to_regroup;
  }
  if (regroups) {
    rank.call = group->regroup_async(
        {}, 60s, [&rank](muster::Result<Group> result) { take(rank, std::move(result)); });
    return;
  }
  rank.call = group->barrier_async(60s, [&rank](const muster::Result<muster::BarrierResult>& done) {
    const std::lock_guard lock(rank.mutex);
    rank.waits = false;
    passed += done.has_value() ? 1 : 0;
    if (done.has_value()) return;
    const muster::ErrorCode code = done.error().code;
    rank.is_to_regroup = code == muster::ErrorCode::rank_lost;
    rank.is_gone = !rank.is_to_regroup;
  });
}

bool has_line(Time::time_point until) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Time::now());
  return ::poll(&input, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0) > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  const auto pause = std::chrono::nanoseconds(1s) / (argc == 5 ? std::stoi(argv[4]) : 1);
  const std::size_t groups_count = std::stoul(argv[2]);
  const std::size_t ranks_count = std::stoul(argv[3]);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const auto io_thread = muster::IoThread::create();
  std::vector<std::deque<Rank>> groups(groups_count);
  muster::StoreOptions options;
  options.io_thread = io_thread;
  options.handlers = muster::HandlerPlace::io_thread;
  for (std::size_t number = 0; number < groups_count; ++number) {
    for (std::size_t index = 0; index < ranks_count; ++index) {
      Rank& rank = groups[number].emplace_back();
      options.label = std::to_string(number) + "/" + std::to_string(index);
      auto store = muster::Store::connect(argv[1], options);
      if (!store) {
        std::cout << store.error().message() << std::endl;
        return 1;
      }
      rank.store.emplace(std::move(*store));
      rank.call = Group::create_async(
          *rank.store, "group-" + std::to_string(number), static_cast<int>(index),
          static_cast<int>(ranks_count), {},
          [&rank](muster::Result<Group> result) { take(rank, std::move(result)); });
    }
  }
  const int all = static_cast<int>(groups_count * ranks_count);
  for (int count = formed; count < all; count = formed) formed.wait(count);
  options.role = muster::Role::supervisor;
  options.handlers = muster::HandlerPlace::handler_thread;
  auto supervisor = muster::Store::connect(argv[1], options);
  std::map<std::string, std::uint64_t> sessions;
  const auto listed = muster::inspect_sessions(*supervisor);
  for (const auto& session : *listed) sessions[session.process.label] = session.id;
  std::cout << "ready" << std::endl;
  std::size_t victim = 0;
  for (auto turn = Time::now();; turn += pause) {
    for (std::size_t number = 0; number < groups_count; ++number) {
      while (has_line(turn + pause * number / groups_count)) {
        std::string line;
        if (!std::getline(std::cin, line)) ::_exit(0);
        if (line == "count") {
          std::cout << passed / ranks_count << std::endl;
          continue;
        }
        const std::string label = std::to_string(victim % groups_count) + "/" +
                                  std::to_string(ranks_count - 1 - victim / groups_count);
        ++victim;
        const auto ended = muster::end_session(*supervisor, sessions[label], "a test");
        if (!ended) std::cerr << ended.error().message() << std::endl;
      }
      for (Rank& rank : groups[number]) go_on(rank);
    }
  }
}
