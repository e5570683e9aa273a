#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "musterrun.h"
#include "support/temporary_folder.h"

// The command line of musterrun: which options there are, where they stand, and what is refused.

namespace {

using muster::test::dry_run;
using muster::test::exit_usage;
using muster::test::Launched;
using muster::test::musterrun;

// C6
TEST_CASE("the version is told as the other programs tell it") {
  const Launched version = musterrun({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.output == "musterrun " MUSTER_VERSION "\n");
  CHECK(musterrun({"--help"}).exit_code == 0);
}

TEST_CASE("a script is run by Python and a command as it is") {
  const Launched script = dry_run({"-n", "1", "train.py", "--x"});
  CHECK(script.exit_code == 0);
  CHECK(script.output.starts_with("local rank 0: python3 -u train.py --x\n"));
  CHECK(dry_run({"-n", "1", "-m", "pkg"}).output.starts_with("local rank 0: python3 -u -m pkg\n"));
  for (const char* spelling : {"-c", "--command_mode", "--command-mode", "--no-python"})
    CHECK(
        dry_run({"-n", "1", spelling, "train.py"}).output.starts_with("local rank 0: train.py\n"));
  CHECK(dry_run({"-n", "1", "--run-path", "train"})
            .output.starts_with("local rank 0: python3 -u train\n"));
  CHECK(dry_run({"-n", "1", "train.py"}, {{"PYTHON_EXEC", "/opt/python"}})
            .output.starts_with("local rank 0: /opt/python -u train.py\n"));
}

// L7
TEST_CASE("a module that is a command is refused") {
  CHECK(musterrun({"-m", "-c", "x"}).exit_code == exit_usage);
  CHECK(musterrun({"--module", "--no-python", "x"}).exit_code == exit_usage);
  CHECK(musterrun({"-m", "x"}, {{"PET_NO_PYTHON", "1"}}).exit_code == exit_usage);
}

// L8
TEST_CASE("a wrong name of a file is refused before anything starts") {
  for (const char* option : {"--stdout", "--stderr"}) {
    const Launched refused = musterrun({"-n", "1", option, "out_{rnak}", "true"});
    CHECK(refused.exit_code == exit_usage);
    CHECK(refused.tells("{rnak}"));
    CHECK(refused.tells("{local_world_size}"));
  }
  CHECK(dry_run({"-n", "1", "--stdout", "out_{rank}", "true"}).exit_code == 0);
}

TEST_CASE("a text that is empty is refused, such as that of a variable that is not set") {
  for (const char* option : {"--master-addr", "--local-addr", "--log-dir", "--role"}) {
    const Launched refused = dry_run({"-n", "1", option, "", "true"});
    CHECK(refused.exit_code == exit_usage);
    CHECK(refused.tells(option));
  }
}

TEST_CASE("a job id is no longer than files and keys can be named") {
  CHECK(dry_run({"-n", "1", "--job-id", std::string(200, 'j'), "true"}).exit_code == 0);
  const Launched refused = dry_run({"-n", "1", "--job-id", std::string(201, 'j'), "true"});
  CHECK(refused.exit_code == exit_usage);
  CHECK(refused.tells("201"));
}

// L29
TEST_CASE("what stands behind the program is its own") {
  const Launched run = dry_run({"-n", "1", "prog", "-n", "5", "--bogus", "--", "--help", "-m"});
  CHECK(run.exit_code == 0);
  CHECK(run.output.starts_with("local rank 0: prog -n 5 --bogus -- --help -m\n"));
  CHECK(dry_run({"-n", "1", "--", "-prog", "-x"}).output.starts_with("local rank 0: -prog -x\n"));
}

TEST_CASE("a key in a wrong place is not shown, and makes no file or folder") {
  const std::string key = "ZXhhbXBsZSAxLCBldmVyeWJvZHkga25vd3MgdGhpcy4=";
  const muster::test::TemporaryFolder folder;
  const std::string program = folder.path() + "/" + key;
  std::vector<Launched> all;
  for (const std::string& secret : {key, "job " + key + " * all"}) {
    for (const std::string option :
         {"tee", "redirects", "signals-to-handle", "node-rank", "master-addr", "max-restarts",
          "pid-namespace", "role", "rendezvous"}) {
      all.push_back(musterrun({"--" + option, secret, "-n", "1", "true"}));
    }
    for (const std::string option : {"log-dir", "stdout", "stderr"}) {
      all.push_back(musterrun({"--" + option, folder / secret, "-n", "2", "true"}));
    }
    for (const char* variable :
         {"MUSTERRUN_TEE", "PET_TEE", "MUSTERRUN_REDIRECTS", "PET_SIGNALS_TO_HANDLE"}) {
      all.push_back(musterrun({"-n", "1", "true"}, {{variable, secret}}));
    }
    all.push_back(musterrun({"-n", "1", secret}));
    all.push_back(musterrun({"-n", "1", "-m", secret}));
  }
  all.push_back(musterrun({"-n", "1", "true"}, {{"MUSTERRUN_LOG_DIR", folder / key + "/logs"}}));
  CHECK(std::filesystem::is_empty(folder.path()));
  std::ofstream(program) << "no program";
  all.push_back(musterrun({"--tee", program, "-n", "1", "true"}));
  all.push_back(musterrun({"--tee", "0:1," + key, "-n", "1", "true"}));
  for (const Launched& refused : all) {
    CAPTURE(refused.errors);
    CHECK(refused.exit_code == exit_usage);
    CHECK_FALSE(refused.tells(key.substr(0, 24)));
    CHECK(refused.tells("because it is now known"));
  }
  const Launched not_started = musterrun({"-n", "1", program});
  CHECK(not_started.exit_code == 126);
  CHECK_FALSE(not_started.tells(key.substr(0, 24)));
}

TEST_CASE("an option that nobody knows is not the program") {
  const Launched refused = musterrun({"--max-restart", "3", "prog"});
  CHECK(refused.exit_code == exit_usage);
  CHECK(refused.tells("\"--max-restart\""));
  CHECK(refused.tells("--max-restarts"));
  CHECK(musterrun({"-x", "prog"}).exit_code == exit_usage);
  CHECK(musterrun({"--bogus"}).exit_code == exit_usage);
  CHECK(musterrun({}).exit_code == exit_usage);
  CHECK(musterrun({""}).exit_code == exit_usage);
}

TEST_CASE("an option is written with dashes or underscores and with or without equals") {
  for (const std::vector<std::string>& spelling : {std::vector<std::string>{"--max-restarts", "3"},
                                                   {"--max_restarts", "3"},
                                                   {"--max-restarts=3"},
                                                   {"--max_restarts=3"},
                                                   {"--max-restarts=1", "--max_restarts=3"}}) {
    std::vector<std::string> arguments = {"-n", "1"};
    arguments.insert(arguments.end(), spelling.begin(), spelling.end());
    arguments.emplace_back("prog");
    CHECK(dry_run(arguments).has("  TORCHELASTIC_MAX_RESTARTS=3"));
  }
  CHECK(musterrun({"--role=", "prog"}).exit_code == exit_usage);
  CHECK(musterrun({"--role"}).exit_code == exit_usage);
}

TEST_CASE("wrong values are refused with what was typed") {
  for (const auto& given : std::vector<std::pair<std::string, std::string>>{
           {"-n", "0"},
           {"-n", "-1"},
           {"-n", "two"},
           {"-n", "xpu"},
           {"--nnodes", "0"},
           {"--nnodes", "3:2"},
           {"--node-rank", "-1"},
           {"--base_rank", "x"},
           {"--world_size", "0"},
           {"--master_port", "65536"},
           {"--rendezvous", ":1"},
           {"--rendezvous", "host:x"},
           {"--rendezvous", "fe80::1:29400"},
           {"--rdzv-conf", "join_timeout"},
           {"--rdzv-conf", "join_timeout=x"},
           {"--max-restarts", "-1"},
           {"--join-timeout", "soon"},
           {"--shutdown-timeout", "-1s"},
           {"--exit-grace", "x"},
           {"--compat", "mpirun"},
           {"-r", "4"},
           {"-t", "0:1,x:2"},
           {"--local-ranks-filter", "0,"},
           {"--signals-to-handle", "SIGKILL"},
           {"--monitor-interval", "x"},
           {"--start-method", "thread"},
       }) {
    const std::string option = given.first;
    const std::string value = given.second;
    INFO(option, " ", value);
    const Launched refused = musterrun({option, value, "prog"});
    CHECK(refused.exit_code == exit_usage);
    CHECK(refused.output.empty());
    CHECK(refused.tells(option + ": "));
  }
}

TEST_CASE("every option of torchrun is taken, or refused with a reason") {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--nnodes", "1"},
           {"--nnodes=1:1"},
           {"--nproc-per-node", "1"},
           {"--nproc_per_node=1"},
           {"--rdzv-backend", "static"},
           {"--rdzv_backend", "c10d", "--rdzv_endpoint", "host:29400", "--rdzv_id", "7"},
           {"--rdzv-endpoint", "host", "--rdzv-id", "7"},
           {"--rdzv-conf", "join_timeout=60,timeout=900,is_host=1"},
           {"--standalone"},
           {"--max-restarts", "3"},
           {"--monitor-interval", "0.1"},
           {"--start-method", "spawn"},
           {"--event-log-handler", "null"},
           {"--role", "trainer"},
           {"-m"},
           {"--no-python"},
           {"--run-path"},
           {"--log-dir", "logs"},
           {"-r", "3"},
           {"--redirects", "0:1"},
           {"-t", "3"},
           {"--tee", "0:1,1:2"},
           {"--local-ranks-filter", "0,1"},
           {"--node-rank", "0"},
           {"--master-addr", "127.0.0.1", "--master-port", "29500"},
           {"--local-addr", "10.0.0.1"},
           {"--logs-specs", "default"},
           {"--signals-to-handle", "SIGTERM,SIGUSR1"},
           {"--duplicate-stdout-filters", "loss"},
           {"--duplicate-stderr-filters", "loss"},
       }) {
    INFO(arguments.front());
    for (const std::string compat : {"composer", "torchrun"}) {
      std::vector<std::string> all = arguments;
      all.insert(all.end(), {"--compat", compat, "prog"});
      const Launched run = dry_run(all);
      INFO(run.errors);
      CHECK(run.exit_code == 0);
    }
  }
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--rdzv-backend", "etcd"},
           {"--rdzv-backend", "etcd-v2"},
           {"--rdzv-backend", "zeus"},
           {"--logs-specs", "mine"},
           {"--numa-binding", "node"},
           {"--virtual-local-rank"},
       }) {
    INFO(arguments.front());
    std::vector<std::string> all = arguments;
    all.emplace_back("prog");
    CHECK(dry_run(all).exit_code == exit_usage);
  }
}

TEST_CASE("what has no effect is told") {
  CHECK(dry_run({"-n", "1", "--monitor-interval", "1", "prog"}).tells("--monitor-interval"));
  CHECK(dry_run({"-n", "1", "--rdzv-conf", "is_host=1", "prog"}).tells("is_host"));
  CHECK(dry_run({"-n", "1", "prog"}).errors.empty());
  const Launched inherited =
      dry_run({"-n", "1", "prog"}, {{"MASTER_ADDR", "other"}, {"MASTER_PORT", "1"}});
  CHECK(inherited.has("  MASTER_ADDR=127.0.0.1"));
  CHECK(inherited.tells("MASTER_ADDR"));
  CHECK(inherited.tells("MASTER_PORT"));
}

TEST_CASE("whether there is a store for torch is told before ranks start where that is known") {
  const std::string none = "  TORCHELASTIC_USE_AGENT_STORE=False";
  CHECK(dry_run({"-n", "1", "--tcpstore", "off", "prog"}).has(none));
  CHECK(dry_run({"-n", "1", "prog"}, {{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"}}).has(none));
  const auto by_hand = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"-n", "1", "--nnodes", "2", "--node-rank", "0", "--master-addr",
                               "127.0.0.1", "--master-port", "29500"});
    return more;
  };
  CHECK(dry_run(by_hand({"prog"})).has(none));
  CHECK(musterrun(by_hand({"--tcpstore", "on", "prog"})).exit_code == exit_usage);
  CHECK(dry_run({"-n", "1", "prog"}).output.find("USE_AGENT_STORE") == std::string::npos);
  CHECK(musterrun({"-n", "1", "--tcpstore", "perhaps", "prog"}).tells("--tcpstore"));
}

TEST_CASE("with torchrun's options torchrun's defaults hold") {
  for (const char* letter : {"-n", "-c", "-v"}) {
    const Launched refused = musterrun({"--compat", "torchrun", letter, "1", "prog"});
    CHECK(refused.exit_code == exit_usage);
    CHECK(refused.tells(letter));
  }
  const Launched run = dry_run({"--compat=torchrun", "prog", "$RANK"}, {{"LOCAL_WORLD_SIZE", "4"}});
  CHECK(run.output.starts_with("local rank 0: python3 -u prog '$RANK'\n"));
  CHECK(run.has("  WORLD_SIZE=1"));
  CHECK(musterrun({"-n", "1", "prog"}, {{"MUSTERRUN_COMPAT", "torchrun"}}).exit_code == exit_usage);
  const Launched second = dry_run({"--compat", "torchrun", "--nnodes", "2", "--nproc-per-node", "2",
                                   "--node-rank", "1", "--master-addr", "host", "prog"});
  CHECK(second.has("  RANK=3"));
  CHECK(second.has("  MASTER_PORT=29500"));
}

}  // namespace
