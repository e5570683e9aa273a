#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "muster/codec_cereal.h"
#include "muster/runtime.h"
#include "runtime/job.h"

// How a job begins: who meets where, what is checked, and that nothing is global.

namespace muster::test {
namespace {

std::string detail_of(const Result<void>& result) { return must_fail(result).detail; }

TEST_CASE("before init a process is alone") {
  Runtime runtime{Environment({{"RANK", "3"}, {"WORLD_SIZE", "4"}})};
  CHECK_FALSE(runtime.is_initialized());
  CHECK(runtime.rank() == 0);
  CHECK(runtime.world_size() == 1);
  CHECK(runtime.node_count() == 1);
  CHECK(runtime.places().empty());
  CHECK(runtime.store() == nullptr);
  CHECK(runtime.world().group() == nullptr);
  CHECK(must(runtime.number(JobNumber::rank)).value == 3);
  CHECK(must(runtime.number(JobNumber::rank, EnvironmentRule::group_first)).value == 0);
  CHECK(must_fail(runtime.subgroup(Span<const int>({0}))).code == ErrorCode::not_initialized);
  CHECK(must_fail(runtime.shutdown()).code == ErrorCode::not_initialized);
}

TEST_CASE("a single process has a store and groups, without a server's address") {
  Runtime runtime{Environment()};
  must(runtime.init(patient()));
  CHECK(runtime.world_size() == 1);
  CHECK(must(runtime.store()->set("k", "v")));
  CHECK(must(runtime.store()->get("k")) == "v");
  must(runtime.world().group()->barrier());
  auto alone = must(runtime.subgroup(Span<const int>({0})));
  CHECK(alone.group()->world_size() == 1);
  must(alone.group()->barrier());
  must(runtime.shutdown());
  CHECK_FALSE(runtime.is_initialized());
}

TEST_CASE("two single processes are in one process, and do not see each other") {
  Runtime first{Environment()};
  Runtime second{Environment()};
  must(first.init(patient()));
  must(second.init(patient()));
  CHECK(must(first.store()->set("k", "first")));
  CHECK_FALSE(must(second.store()->exists("k")));
}

TEST_CASE("ranks meet at the server that MUSTER_STORE names, and know where each is") {
  Job job(4);
  job.run([](Runtime& runtime) {
    CHECK(runtime.world_size() == 4);
    CHECK(runtime.local_rank() == runtime.rank());
    CHECK(runtime.local_world_size() == 4);
    CHECK(runtime.node_count() == 1);
    CHECK(runtime.places().size() == 4);
    CHECK(runtime.places()[2].local_rank == 2);
    CHECK(must(runtime.number(JobNumber::rank)).source == "group");
    const int sum = must(runtime.world().group()->all_reduce_obj(runtime.rank(), std::plus<int>()));
    CHECK(sum == 6);
    must(runtime.shutdown());
  });
}

TEST_CASE("O6: a second init with equal options does nothing, with others it says which differ") {
  Job job(2);
  job.run([](Runtime& runtime) {
    must(runtime.init(patient()));
    RuntimeOptions others = patient();
    others.group.name = "another";
    const Error error = must_fail(runtime.init(others));
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(error.detail.find("group.name was 'world', and is 'another'") != std::string::npos);
    others = patient();
    others.communicators = "cpu:gloo";
    CHECK(detail_of(runtime.init(others)).find("communicators was '', and is 'cpu:gloo'") !=
          std::string::npos);
    CHECK(runtime.is_initialized());
  });
}

TEST_CASE("communicators are compared as a set, and each kind needs its maker") {
  Runtime runtime{Environment()};
  RuntimeOptions options = patient();
  options.communicators = "cuda:nccl,cpu:gloo";
  const Error error = must_fail(runtime.init(options));
  CHECK(error.code == ErrorCode::invalid_argument);
  CHECK(error.detail.find("'gloo'") != std::string::npos);
  const CommunicatorMaker none{"none", [](StatelessProcessGroup&, int, Duration) {
                                 Error refused;
                                 refused.code = ErrorCode::unsupported;
                                 return Result<Communicator>(refused);
                               }};
  options.makers = {none};
  options.communicators = "cpu:none";
  CHECK(must_fail(runtime.init(options)).code == ErrorCode::unsupported);
  CHECK_FALSE(runtime.is_initialized());
  options.communicators = "cpu:";
  CHECK(must_fail(runtime.init(options)).code == ErrorCode::invalid_argument);
  options.communicators = "tpu:none";
  CHECK(must_fail(runtime.init(options)).code == ErrorCode::invalid_argument);
  options.communicators = "cpu:none,cpu:none";
  CHECK(must_fail(runtime.init(options)).code == ErrorCode::invalid_argument);
}

TEST_CASE("who was told the same place twice is named on all ranks") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto variables = variables_of(rank, 3, server.addresses().front());
    variables["LOCAL_RANK"] = rank == 0 ? "0" : "1";
    Runtime runtime{Environment(variables)};
    const Error error = must_fail(runtime.init(patient()));
    CHECK(error.code == ErrorCode::mismatch);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 2}});
    CHECK(error.detail.find("local rank 1") != std::string::npos);
    CHECK_FALSE(runtime.is_initialized());
  });
}

TEST_CASE("who was told another size of its node than it has is named") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto variables = variables_of(rank, 3, server.addresses().front());
    if (rank == 2) variables["LOCAL_WORLD_SIZE"] = "2";
    if (rank == 2) variables["LOCAL_RANK"] = "1";
    Runtime runtime{Environment(variables)};
    const Error error = must_fail(runtime.init(patient()));
    CHECK(error.code == ErrorCode::mismatch);
    CHECK(error.rank_ranges == std::vector<RankRange>{{2, 2}});
  });
}

TEST_CASE("V5: nodes are what the launcher has numbered, and may differ in size") {
  auto server = start_server();
  run_ranks(4, [&](int rank) {
    auto variables = variables_of(rank, 4, server.addresses().front());
    variables["NODE_RANK"] = rank == 0 ? "0" : "1";
    variables["NUM_NODES"] = "2";
    variables["LOCAL_RANK"] = std::to_string(rank == 0 ? 0 : rank - 1);
    variables["LOCAL_WORLD_SIZE"] = rank == 0 ? "1" : "3";
    Runtime runtime{Environment(variables)};
    must(runtime.init(patient()));
    CHECK(runtime.node_count() == 2);
    CHECK(runtime.node_rank() == (rank == 0 ? 0 : 1));
    CHECK(runtime.local_world_size() == (rank == 0 ? 1 : 3));
    must(runtime.shutdown());
  });
}

TEST_CASE("V5: ranks that nobody has told of their nodes find them by their hosts") {
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    Runtime runtime{Environment({{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "3"}})};
    RuntimeOptions options = patient();
    options.store = server.addresses().front();
    must(runtime.init(options));
    CHECK(runtime.local_rank() == rank);
    CHECK(runtime.local_world_size() == 3);
    must(runtime.shutdown());
  });
}

TEST_CASE("rank 0 hosts the server where init is told to, on the socket that it was handed") {
  const TcpPort port;
  run_ranks(2, [&](int rank) {
    auto variables = variables_of(rank, 2, "");
    Runtime runtime{Environment(variables)};
    RuntimeOptions options = patient();
    options.host = "127.0.0.1:" + std::to_string(port.number());
    if (rank == 0) options.group.listening_socket = port.duplicate();
    must(runtime.init(options));
    must(runtime.world().group()->barrier());
    must(runtime.shutdown());
  });
}

TEST_CASE("MASTER_ADDR and MASTER_PORT are torch's, unless init is told otherwise") {
  const TcpPort port;
  auto variables = variables_of(0, 2, "");
  variables["MASTER_ADDR"] = "127.0.0.1";
  variables["MASTER_PORT"] = std::to_string(port.number());
  Runtime alone{Environment(variables)};
  const Error error = must_fail(alone.init(patient()));
  CHECK(error.code == ErrorCode::environment);
  CHECK(error.detail.find("MUSTER_STORE") != std::string::npos);

  run_ranks(2, [&](int rank) {
    auto own = variables;
    own["RANK"] = own["LOCAL_RANK"] = std::to_string(rank);
    Runtime runtime{Environment(own)};
    RuntimeOptions options = patient();
    options.host_at_master_address = true;
    if (rank == 0) options.group.listening_socket = port.duplicate();
    must(runtime.init(options));
    must(runtime.shutdown());
  });
}

TEST_CASE("init names the ranks that do not come") {
  auto server = start_server();
  Runtime runtime{Environment(variables_of(1, 3, server.addresses().front()))};
  const Error error = must_fail(runtime.init(patient(1s)));
  CHECK(error.code == ErrorCode::timed_out);
  CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}, {2, 2}});
}

TEST_CASE("one line for each node is logged") {
  auto server = start_server();
  std::mutex mutex;
  std::vector<std::string> lines;
  run_ranks(3, [&](int rank) {
    auto variables = variables_of(rank, 3, server.addresses().front());
    variables["NODE_RANK"] = rank == 2 ? "1" : "0";
    variables["LOCAL_RANK"] = rank == 1 ? "1" : "0";
    variables["LOCAL_WORLD_SIZE"] = rank == 2 ? "1" : "2";
    variables["BEAKER_NODE_HOSTNAME"] = rank == 2 ? "host-b" : "host-a";
    Runtime runtime{Environment(variables)};
    RuntimeOptions options = patient();
    options.group.store.logger = [&](LogLevel level, std::string_view line) {
      const std::lock_guard lock(mutex);
      if (level == LogLevel::info && line.substr(0, 5) == "node ") lines.emplace_back(line);
    };
    must(runtime.init(options));
    must(runtime.shutdown());
  });
  std::sort(lines.begin(), lines.end());
  CHECK(lines == std::vector<std::string>{"node 0 of 2 (host-a) has ranks 0, 1 of 3",
                                          "node 1 of 2 (host-b) has ranks 2 of 3"});
}

}  // namespace
}  // namespace muster::test
