#include <doctest/doctest.h>

#include "musterrun.h"

// How many ranks musterrun starts and where, by its options and by the environment.

namespace {

using muster::test::dry_run;
using muster::test::exit_usage;
using muster::test::Launched;
using muster::test::LaunchVariables;
using muster::test::musterrun;

/// How many ranks would be started.
int count_of(const std::vector<std::string>& arguments, const LaunchVariables& variables = {}) {
  const std::string output = dry_run(arguments, variables).output;
  int count = 0;
  for (std::size_t at = 0; (at = output.find("local rank ", at)) != output.npos; ++at) ++count;
  return count;
}

TEST_CASE("the number of processes is that of the option, the variable, or the GPUs") {
  CHECK(count_of({"-n", "3", "prog"}) == 3);
  CHECK(count_of({"--nproc=3", "prog"}) == 3);
  CHECK(count_of({"prog"}, {{"LOCAL_WORLD_SIZE", "3"}}) == 3);
  CHECK(count_of({"-n", "2", "prog"}, {{"LOCAL_WORLD_SIZE", "3"}}) == 2);
  CHECK(count_of({"prog"}, {{"CUDA_VISIBLE_DEVICES", "0,1,2"}}) == 3);
  CHECK(count_of({"prog"}, {{"CUDA_VISIBLE_DEVICES", "-1"}}) == 1);
  CHECK(count_of({"-n", "gpu", "prog"}, {{"CUDA_VISIBLE_DEVICES", "0,GPU-8932f937,MIG-1,-1,2"}}) ==
        3);
  CHECK(count_of({"-n", "auto", "prog"}, {{"CUDA_VISIBLE_DEVICES", "1,0"}}) == 2);
  CHECK(count_of({"-n", "cpu", "prog"}) >= 1);
  CHECK(count_of({"-n", "auto", "prog"}) == count_of({"-n", "cpu", "prog"}));
  CHECK(musterrun({"-n", "gpu", "prog"}).exit_code == exit_usage);
}

// L26
TEST_CASE("no processes in the environment are one process") {
  const Launched run = dry_run({"prog"}, {{"LOCAL_WORLD_SIZE", "0"}});
  CHECK(run.exit_code == 0);
  CHECK(run.has("  LOCAL_WORLD_SIZE=1"));
  CHECK(run.has("  WORLD_SIZE=1"));
}

TEST_CASE("each option is a variable, too, and an error names it") {
  CHECK(count_of({"prog"}, {{"MUSTERRUN_NPROC", "2"}, {"PET_NPROC_PER_NODE", "3"}}) == 2);
  CHECK(count_of({"prog"}, {{"PET_NPROC_PER_NODE", "3"}, {"LOCAL_WORLD_SIZE", "4"}}) == 3);
  CHECK(count_of({"-n", "1", "prog"}, {{"MUSTERRUN_NPROC", "2"}}) == 1);
  const LaunchVariables module = {{"PET_MODULE", "1"}};
  CHECK(
      dry_run({"-n", "1", "a.b"}, module).output.starts_with("local rank 0: python3 -u -m a.b\n"));
  CHECK(
      dry_run({"-n", "1", "a.b"}, {{"PET_MODULE", "0"}}).output.starts_with("local rank 0: a.b\n"));
  for (const auto& variable : LaunchVariables{{"MUSTERRUN_NPROC", "0"},
                                              {"PET_NNODES", "x"},
                                              {"PET_RDZV_BACKEND", "etcd"},
                                              {"MUSTERRUN_VERBOSE", "perhaps"},
                                              {"LOCAL_WORLD_SIZE", "x"},
                                              {"WORLD_SIZE", "-1"},
                                              {"BASE_RANK", "x"},
                                              {"NODE_RANK", "1"},
                                              {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "x"}}) {
    const std::string name = variable.first;
    INFO(name);
    const Launched refused = musterrun({"prog"}, {variable});
    CHECK(refused.exit_code == exit_usage);
    CHECK(refused.tells(name));
  }
}

TEST_CASE("the size of the world is inherited where it is not that of this node") {
  const LaunchVariables place = {{"NODE_RANK", "1"},
                                 {"MASTER_ADDR", "host"},
                                 {"MASTER_PORT", "29500"},
                                 {"LOCAL_WORLD_SIZE", "2"},
                                 {"WORLD_SIZE", "4"}};
  const Launched second = dry_run({"prog", "$RANK"}, place);
  CHECK(second.output.find("local rank 1: prog 3\n") != std::string::npos);
  CHECK(second.has("  MASTER_ADDR=host"));
  CHECK(second.has("  MASTER_PORT=29500"));
  CHECK(second.has("  NUM_NODES=2"));
  CHECK(dry_run({"-n", "1", "prog"}, {{"LOCAL_WORLD_SIZE", "2"}, {"WORLD_SIZE", "2"}})
            .has("  WORLD_SIZE=1"));
  // One that --nnodes contradicts is somebody else's.
  LaunchVariables other = place;
  other["WORLD_SIZE"] = "3";
  CHECK(dry_run({"--nnodes", "2", "prog"}, other).has("  WORLD_SIZE=4"));
}

// L9; the others to L17: tests/script/launch.
TEST_CASE("numbers that do not fit are refused as usage") {
  const Launched refused = musterrun({"-n", "2", "--world_size", "1", "prog"});
  CHECK(refused.exit_code == exit_usage);
  CHECK(refused.tells("world_size(1) cannot be less than nproc(2)"));
  CHECK(musterrun({"-n", "2", "--nnodes", "1:2", "prog"}).exit_code == exit_usage);
}

// L27
TEST_CASE("nodes have different numbers of processes") {
  const Launched run =
      dry_run({"-n", "3", "--world_size", "5", "--base_rank", "2", "--node_rank", "1",
               "--master_addr", "host", "--master_port", "29500", "prog", "$RANK"});
  for (const char* line : {"local rank 0: prog 2", "local rank 1: prog 3", "local rank 2: prog 4",
                           "  LOCAL_WORLD_SIZE=3", "  NODE_RANK=1"})
    CHECK(run.has(line));
}

TEST_CASE("a rendezvous gives the ranks, so nobody else does") {
  const LaunchVariables elsewhere = {{"WORLD_SIZE", "8"}, {"NODE_RANK", "7"}};
  const Launched run =
      dry_run({"-n", "1", "--nnodes", "1:4", "--rendezvous", "host:29400", "--job-id", "j", "prog"},
              elsewhere);
  CHECK(run.exit_code == 0);
  CHECK(run.has("  LOCAL_RANK=0"));
  CHECK(run.output.find("  RANK=") == std::string::npos);
  CHECK(musterrun({"--rendezvous", "host:1", "--world-size", "4", "prog"}).exit_code == exit_usage);
  const Launched beyond = musterrun(
      {"--rendezvous", "host:1", "--job-id", "j", "--nnodes", "1:2", "--node-rank", "2", "prog"});
  CHECK(beyond.exit_code == exit_usage);
  CHECK(beyond.tells("node_rank(2) must be less than nnodes(2)"));
  CHECK(musterrun({"--rendezvous", "host:0", "--nnodes", "2", "prog"}).exit_code == exit_usage);
  CHECK(musterrun({"--standalone", "--nnodes", "2", "prog"}).exit_code == exit_usage);
  CHECK(musterrun({"--scale-up", "prog"}).exit_code == exit_usage);
  const Launched fixed = dry_run({"-n", "1", "--nnodes", "2", "--node-rank", "1", "--rdzv-backend",
                                  "static", "--rdzv-endpoint", "[::1]:77", "prog"});
  CHECK(fixed.has("  MASTER_ADDR=::1"));
  CHECK(fixed.has("  MASTER_PORT=77"));
  CHECK(dry_run({"-n", "1", "--rdzv-endpoint", "localhost:0", "prog"}).has("  RANK=0"));
}

// L24
TEST_CASE("arguments are expanded for each rank, unless nobody wants that") {
  const std::vector<std::string> tail = {"prog", "x$RANK", "~", "$NOPE"};
  std::vector<std::string> arguments = {"-n", "2"};
  arguments.insert(arguments.end(), tail.begin(), tail.end());
  const LaunchVariables home = {{"HOME", "/h"}};
  CHECK(dry_run(arguments, home).output.find("local rank 1: prog x1 /h '$NOPE'\n") !=
        std::string::npos);
  arguments.insert(arguments.begin(), "--no-expand");
  CHECK(dry_run(arguments, home).output.find("local rank 1: prog 'x$RANK' '~' '$NOPE'\n") !=
        std::string::npos);
}

}  // namespace
