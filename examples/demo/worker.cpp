// One process of the demo: it has one connection and is in several groups at once.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "demo.h"
#include "muster/codec_cereal.h"
#include "muster/process_group.h"
#include "muster/store.h"

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
constexpr int barrier_count = 200;

/// What a server of the job needs to know; any type that cereal can write will do.
struct ModelConfig {
  std::string model;
  std::uint32_t layers = 0;
  std::vector<std::uint64_t> shard_bytes;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(model, layers, shard_bytes);
  }
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

const ModelConfig the_config{"muster-7b", 32, {1u << 20, 2u << 20, 3u << 20}};

/// Ends the process when a promise is not kept.
void require(bool kept, const char* promise) {
  if (kept) return;
  std::printf("NOT AS PROMISED: %s\n", promise);
  std::fflush(stdout);
  std::_Exit(1);
}

template <class T>
T require(Result<T> result) {
  if (!result) {
    std::printf("NOT AS PROMISED: %s\n", result.error().message().c_str());
    std::fflush(stdout);
    std::_Exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void tell_fact(const char* name, std::int64_t value) {
  say(fact_mark + std::string(name) + " " + std::to_string(value));
}

/// Joins the group of these processes, if this one is among them.
std::optional<StatelessProcessGroup> join(const Store& store, const char* name, int process,
                                          const std::vector<int>& processes) {
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    if (processes[rank] != process) continue;
    muster::GroupOptions options;
    options.timeout = patience;
    return require(StatelessProcessGroup::create(store, name, static_cast<int>(rank),
                                                 static_cast<int>(processes.size()),
                                                 std::move(options)));
  }
  return std::nullopt;
}

void exchange_configuration(StatelessProcessGroup& wide, StatelessProcessGroup* tight) {
  const ModelConfig mine = wide.rank() == 0 ? the_config : ModelConfig{};
  require(require(wide.broadcast_obj(mine, 0)) == the_config, "the broadcast is rank 0's object");
  if (wide.rank() == 0) {
    say("wide   broadcast of a configuration object: the same on all " +
        std::to_string(wide.world_size()) + " ranks");
  }
  if (tight == nullptr) return;
  const auto all = require(tight->all_gather_obj(tight->rank() * 11));
  require(all == std::vector<int>{0, 11, 22}, "all_gather gives element i from rank i");
  if (tight->rank() == 0) say("tight  all_gather: 0, 11, 22 on every rank");
}

/// Ranks 0 and 1 send to rank 2 at the same time; each stream arrives whole and in order.
void two_senders(StatelessProcessGroup& tight) {
  constexpr int objects = 5;
  if (tight.rank() < 2) {
    for (int i = 0; i < objects; ++i) require(tight.send_obj(2, tight.rank() * 100 + i));
    return;
  }
  for (int i = 0; i < objects; ++i) {
    for (const int source : {1, 0}) {
      require(require(tight.recv_obj<int>(source, 0, patience)) == source * 100 + i,
              "each sender's objects arrive in order, once");
    }
  }
  say("tight  two senders, one receiver: 5 of 5 from rank 0, 5 of 5 from rank 1");
}

void talk_in_pair(StatelessProcessGroup& pair, const char* name) {
  const int peer = 1 - pair.rank();
  require(pair.send_obj(peer, std::string("hello from ") + std::to_string(pair.rank())));
  const auto greeting = require(pair.recv_obj<std::string>(peer, 0, patience));
  require(greeting == "hello from " + std::to_string(peer), "a pair hears each other");
  if (pair.rank() == 0) say(std::string(name) + " pair exchanged objects both ways");
}

void pass_barriers(StatelessProcessGroup& group, const char* name) {
  const std::int64_t began = now_us();
  for (int i = 0; i < barrier_count; ++i) require(group.barrier(patience));
  const std::int64_t took = now_us() - began;
  if (group.rank() != 0) return;
  say(std::string(name) + std::to_string(barrier_count) + " barriers of " +
      std::to_string(group.world_size()) + " ranks, " + std::to_string(took / barrier_count) +
      " us each");
  tell_fact("barriers", barrier_count);
  tell_fact("barrier_us", took);
}

void list_members(StatelessProcessGroup& group) {
  if (group.rank() != 0) return;
  const auto members = require(group.members());
  require(members.size() == 4, "four members are listed");
  for (const auto& member : members) {
    say("wide   member " + std::to_string(member.rank) + ": host " + member.process.host +
        ", pid " + std::to_string(member.process.pid) + ", label " + member.process.label);
  }
}

/// Waits in a barrier for a rank that is killed meanwhile, and reports what the error says.
void see_the_loss(Store& store, StatelessProcessGroup& group, const char* name) {
  const auto passed = group.barrier(patience);
  const std::int64_t noticed = now_us();
  require(!passed && passed.error().code == ErrorCode::rank_lost, "the barrier ends: rank_lost");
  const Error& error = passed.error();
  require(error.ranks.size() == 1 && error.ranks[0].rank == victim, "the error names the rank");
  const auto killed = require(store.get("demo/killed_us", patience));
  const auto pid = require(store.get("demo/victim_pid", patience));
  require(std::to_string(error.ranks[0].process.pid) == pid, "the error names the pid");
  const std::int64_t took = noticed - std::atoll(killed.c_str());
  say(std::string(name) + "rank " + std::to_string(group.rank()) + " learns after " +
      std::to_string(took / 1000) + " ms: lost rank " + std::to_string(error.ranks[0].rank) +
      " of host " + error.ranks[0].process.host + ", pid " + pid + ", label " +
      error.ranks[0].process.label + ", cause " + std::string(name_of(error.cause)));
  tell_fact("noticed_us", took);
}

StatelessProcessGroup go_on(StatelessProcessGroup& old, const char* name, std::size_t survivors) {
  auto group = require(old.regroup({}, patience));
  require(group.epoch() > old.epoch(), "epochs grow");
  require(group.world_size() == static_cast<int>(survivors), "the survivors are all there");
  const auto all = require(group.all_gather_obj(group.rank()));
  require(all.size() == survivors, "the new epoch works");
  require(group.barrier(patience));
  if (group.rank() == 0) {
    say(std::string(name) + "regrouped: epoch " + std::to_string(old.epoch()) + " -> " +
        std::to_string(group.epoch()) + ", " + std::to_string(survivors) + " ranks go on");
  }
  return group;
}

}  // namespace

int run_worker(const std::string& server, int process) {
  muster::StoreOptions options;
  options.label = "demo-" + std::to_string(process);
  options.timeout = patience;
  Store store = require(Store::connect(server, std::move(options), patience));

  auto wide = join(store, "wide", process, {0, 1, 2, 3});
  auto tight = join(store, "tight", process, {0, 1, 2});
  auto pair_34 = join(store, "pair-3-4", process, {3, 4});
  auto pair_04 = join(store, "pair-0-4", process, {0, 4});
  if (wide && wide->rank() == 0) say("joined groups over one connection per process");

  if (wide) exchange_configuration(*wide, tight ? &*tight : nullptr);
  if (tight) two_senders(*tight);
  if (pair_34) talk_in_pair(*pair_34, "3-4   ");
  if (pair_04) talk_in_pair(*pair_04, "0-4   ");
  if (wide) pass_barriers(*wide, "wide   ");
  if (tight) pass_barriers(*tight, "tight  ");
  if (wide) list_members(*wide);

  if (process == victim) {
    require(store.wait({"demo/never"}, patience));  // the conductor kills it here
    return 1;
  }
  tell_fact("ready", process);
  if (wide) see_the_loss(store, *wide, "wide   ");
  if (tight) see_the_loss(store, *tight, "tight  ");
  if (wide) wide = go_on(*wide, "wide   ", 3);
  if (tight) tight = go_on(*tight, "tight  ", 2);
  if (pair_34) talk_in_pair(*pair_34, "3-4   ");  // never knew the victim: the same epoch
  for (auto* group : {&wide, &tight, &pair_34, &pair_04}) {
    if (*group) require((*group)->leave());
  }
  store.close();
  tell_fact("done", process);
  return 0;
}

}  // namespace demo
