// One process of the demo: it has one connection and is in several groups at once.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "demo.h"
#include "muster/codec_cereal.h"
#include "muster/process_group.h"
#include "muster/store.h"
#include "weights.h"

namespace demo {

std::int64_t now_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
}

namespace {

using muster::Duration;
using muster::Error;
using muster::ErrorCode;
using muster::Result;
using muster::StatelessProcessGroup;
using muster::Store;

constexpr Duration patience = std::chrono::seconds(10);

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

template <class Value>
void tell(const char* name, const Value& value) {
  if constexpr (std::is_arithmetic_v<Value>) {
    tell(name, std::to_string(value));
  } else {
    say(fact_mark + std::string(name) + " " + value);
  }
}

/// Ends the process when a promise is not kept.
void exit_unless(bool kept, const std::string& promise) {
  if (kept) return;
  say("not as promised: " + promise);
  std::_Exit(1);
}

template <class T>
T or_exit(Result<T> result) {
  if (!result.has_value()) exit_unless(false, result.error().message());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

std::string label_of(int process) { return "demo-" + std::to_string(process); }

/// The rank of a process in a group of the plan; -1: none.
int planned_rank(const std::string& name, int process) {
  for (const GroupPlan& group : plan) {
    if (group.name != name) continue;
    const auto found = std::find(group.processes.begin(), group.processes.end(), process);
    if (found != group.processes.end()) return static_cast<int>(found - group.processes.begin());
  }
  return -1;
}

class Worker {
 public:
  Worker(const std::string& server, int process)
      : process_(process), store_(or_exit(Store::connect(server, options(process), patience))) {}

  void run();
  void run_again();

 private:
  static muster::StoreOptions options(int process);

  void join_all();
  void objects();
  void two_senders();
  void weights();
  void hang();
  void see_the_loss(const char* name);
  void go_on();
  void comeback();
  void nothing_old();
  void be_killed();
  void end();

  void gate(Scene scene);
  void check(bool is_right);
  void take_version(std::uint64_t version);
  void barrier(StatelessProcessGroup& group);
  std::int64_t time_of(int count, const std::function<void(int)>& step);
  StatelessProcessGroup* in(const std::string& name);

  int process_;
  Store store_;
  std::map<std::string, StatelessProcessGroup> groups_;
  std::uint64_t version_ = 0;
  std::int64_t barriers_ = 0;
  std::int64_t checked_ = 0;
};

muster::StoreOptions Worker::options(int process) {
  muster::StoreOptions options;
  options.label = label_of(process);
  options.timeout = patience;
  return options;
}

/// The group of this name, if this process is in it.
StatelessProcessGroup* Worker::in(const std::string& name) {
  const auto found = groups_.find(name);
  return found == groups_.end() ? nullptr : &found->second;
}

/// Waits until all have come so far.
void Worker::gate(Scene scene) {
  tell("at", static_cast<int>(scene));
  or_exit(store_.wait({scene_key(scene)}, patience));
}

/// Counts a value that was received.
void Worker::check(bool is_right) {
  ++checked_;
  if (!is_right) tell("wrong", 1);
}

void Worker::barrier(StatelessProcessGroup& group) {
  or_exit(group.barrier(patience));
  if (group.rank() == 0) ++barriers_;
}

/// Microseconds that so many steps take.
std::int64_t Worker::time_of(int count, const std::function<void(int)>& step) {
  const std::int64_t began = now_us();
  for (int i = 0; i < count; ++i) step(i);
  return now_us() - began;
}

void Worker::join_all() {
  for (const GroupPlan& group : plan) {
    const int rank = planned_rank(group.name, process_);
    if (rank < 0) continue;
    muster::GroupOptions options;
    options.timeout = patience;
    groups_.emplace(group.name, or_exit(StatelessProcessGroup::create(
                                    store_, group.name, rank,
                                    static_cast<int>(group.processes.size()), options)));
  }
}

/// In each group every rank gets what this group's ranks gave, whoever else they talk to.
void Worker::objects() {
  for (auto& [name, group] : groups_) {
    const int root = group.world_size() - 1;
    check(or_exit(group.broadcast_obj(name + " has no other root", muster::Rank{root})) ==
          name + " has no other root");
    const auto all = or_exit(group.all_gather_obj(name + std::to_string(group.rank())));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      check(all[rank] == name + std::to_string(rank));
    }
  }
  if (in("slice-a") != nullptr) two_senders();
}

/// Ranks 0 and 1 send to rank 2 at the same time; each stream arrives whole and in order.
void Worker::two_senders() {
  auto& group = *in("slice-a");
  for (int i = 0; i < objects_per_sender; ++i) {
    if (group.rank() < 2) {
      or_exit(group.send_obj(muster::Rank{2}, group.rank() * 1000 + i));
      continue;
    }
    for (const int source : {1, 0}) {
      const bool is_right = or_exit(group.recv_obj<int>(muster::Rank{source})) == source * 1000 + i;
      check(is_right);
      if (is_right) tell("delivered", source);
    }
  }
}

/// All ranks get the manifest of a version from the trainer and agree that they have it.
void Worker::take_version(std::uint64_t version) {
  auto& group = *in("weights");
  const Manifest right = manifest_of(version);
  const Manifest mine = process_ == trainer ? right : Manifest{};
  check(or_exit(group.broadcast_obj(mine, muster::Rank{0})) == right);
  barrier(group);
  version_ = version;
}

void Worker::weights() {
  auto& group = *in("weights");
  const auto barriers = time_of(barrier_count, [&](int) { barrier(group); });
  const auto by_manifest = time_of(versions_by_manifest, [&](int) { take_version(version_ + 1); });
  // What training libraries do on the incumbent: a message and a barrier for each parameter.
  const auto by_parameter = time_of(versions_by_parameter, [&](int) {
    ++version_;
    for (const Tensor& tensor : manifest_of(version_).tensors) {
      check(or_exit(group.broadcast_obj(process_ == trainer ? tensor : Tensor{},
                                        muster::Rank{0})) == tensor);
      barrier(group);
    }
  });
  if (process_ != trainer) return;
  tell("barrier_us", barriers / barrier_count);
  tell("by_manifest_us", by_manifest / versions_by_manifest);
  tell("by_parameter_us", by_parameter / versions_by_parameter);
}

/// One of them is stopped; the others wait in the barrier until it goes on.
void Worker::hang() { barrier(*in("weights")); }

/// Waits in a barrier for the victim, which is killed meanwhile, and reports what the error says.
void Worker::see_the_loss(const char* name) {
  auto* const group = in(name);
  if (group == nullptr) return;
  const auto passed = group->barrier(patience);
  const std::int64_t noticed_us = now_us();
  exit_unless(!passed && passed.error().code == ErrorCode::rank_lost,
              "the barrier ends: rank_lost");
  const Error& error = passed.error();
  exit_unless(error.ranks.size() == 1, "the error names one rank");
  exit_unless(error.ranks[0].rank == planned_rank(name, victim), "the error names the right one");
  exit_unless(error.ranks[0].process.label == label_of(victim), "the error names the label");
  const auto pid = or_exit(store_.get("demo/victim_pid", patience));
  const auto killed_us = std::stoll(or_exit(store_.get("demo/killed_us", patience)));
  exit_unless(std::to_string(error.ranks[0].process.pid) == pid, "the error names the pid");
  tell("noticed_us", noticed_us - killed_us);
  if (group->rank() == 0) tell("loss", error.message());
}

/// The survivors of the victim's groups form the next epoch and take the next version.
void Worker::go_on() {
  for (const char* const name : {"weights", "slice-a"}) {
    auto* const group = in(name);
    if (group == nullptr) continue;
    auto next = or_exit(group->regroup({}, patience));
    exit_unless(next.epoch() > group->epoch(), "epochs grow");
    exit_unless(next.world_size() == group->world_size() - 1, "the survivors are all there");
    *group = std::move(next);
  }
  // These never knew the victim, and go on in the same epoch.
  for (const char* const name : {"slice-b", "control"}) {
    if (in(name) != nullptr) barrier(*in(name));
  }
  take_version(version_ + 1);
}

/// The groups have all their ranks again: that of the victim is a new process.
void Worker::comeback() {
  for (const char* const name : {"weights", "slice-a"}) {
    auto* const group = in(name);
    if (group == nullptr) continue;
    muster::RegroupOptions with_the_candidate;
    with_the_candidate.new_size = group->world_size() + 1;
    auto next = or_exit(group->regroup(with_the_candidate, patience));
    *group = std::move(next);
  }
  if (process_ == 1)
    or_exit(in("slice-a")->send_obj(muster::Rank{2}, std::string("of the new epoch")));
  take_version(version_ + 1);
}

/// As a process that was killed and takes its place again: by a new rank, the last one.
void Worker::run_again() {
  for (const GroupPlan& group : plan) {
    if (planned_rank(group.name, victim) < 0) continue;
    muster::GroupOptions options;
    options.timeout = patience;
    options.standby = true;
    const int size = static_cast<int>(group.processes.size());
    groups_.emplace(group.name, or_exit(StatelessProcessGroup::create(store_, group.name, size - 1,
                                                                      size, options)));
  }
  nothing_old();
  take_version(std::stoull(or_exit(store_.get("demo/next_version", patience))));
  gate(Scene::end);
  end();
}

/// Process 1 had sent an object to the victim before it died, and sends another one now.
void Worker::nothing_old() {
  const auto received = or_exit(in("slice-a")->recv_numbered_obj<std::string>(muster::Rank{0}));
  check(received.object == "of the new epoch" && received.sequence == 0);
  tell("first_object", received.object);
}

void Worker::be_killed() {
  tell("checked", checked_);
  tell("at", static_cast<int>(Scene::loss));
  or_exit(store_.wait({"demo/never"}, patience));
}

void Worker::end() {
  for (auto& [name, group] : groups_) {
    tell(("epoch_of_" + name).c_str(), group.epoch());
    or_exit(group.leave());
  }
  tell("barriers", barriers_);
  tell("checked", checked_);
  store_.close();
}

void Worker::run() {
  join_all();
  gate(Scene::objects);
  objects();
  gate(Scene::weights);
  weights();
  gate(Scene::hang);
  hang();
  if (process_ == 1)
    or_exit(in("slice-a")->send_obj(muster::Rank{1}, std::string("of the old epoch")));
  if (process_ == victim) be_killed();
  gate(Scene::loss);
  see_the_loss("weights");
  see_the_loss("slice-a");
  go_on();
  if (process_ == trainer) or_exit(store_.set("demo/next_version", std::to_string(version_ + 1)));
  gate(Scene::comeback);
  comeback();
  gate(Scene::end);
  end();
}

}  // namespace

int run_worker(const std::string& server, int process, bool is_back) {
  Worker worker(server, process);
  if (is_back) {
    worker.run_again();
  } else {
    worker.run();
  }
  return 0;
}

}  // namespace demo
