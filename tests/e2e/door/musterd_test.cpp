#include "e2e/server/musterd.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "muster/store.h"
#include "support/door.h"
#include "support/server.h"

// musterd with credentials.

namespace {

using namespace std::chrono_literals;
using muster::test::CredentialsFile;
using muster::test::evaluator_key;
using muster::test::hello_for;
using muster::test::must;
using muster::test::must_fail;
using muster::test::Musterd;
using muster::test::musterd_options;
using muster::test::Process;
using muster::test::tls_context;
using muster::test::TlsClient;
using muster::test::trainer_key;
namespace wire = muster::wire;

const std::string trainer = "team/trainer " + trainer_key + " * all\n";
const std::string evaluator = "team/evaluator " + evaluator_key + " * all\n";

int exit_code_of(std::vector<std::string> flags) {
  Process musterd(musterd_options(std::move(flags)));
  return musterd.wait().exit_code;
}

TEST_CASE("musterd reads its credentials, again at a hang-up, and tells no key") {
  const CredentialsFile file(trainer);
  Musterd musterd({"--credentials", file.path(), "--log-level", "debug"});
  TlsClient client(musterd.address(), tls_context(trainer_key));
  REQUIRE(client.begin());
  REQUIRE(client.say_hello().value().status == 0);
  CHECK_FALSE(TlsClient(musterd.address(), tls_context(evaluator_key)).begin());
  file.write(trainer + evaluator);
  musterd.send_signal(SIGHUP);
  CHECK(client.call(wire::Set{"key", "value", {}, false, false}) == 0);
  CHECK(TlsClient(musterd.address(), tls_context(evaluator_key)).begin());
  file.write("wrong\n");
  musterd.send_signal(SIGHUP);
  CHECK(client.call(wire::Set{"key", "value", {}, false, false}) == 0);
  musterd.send_signal(SIGTERM);
  const std::string log = musterd.read_errors();
  CHECK(musterd.wait().exit_code == 0);
  CHECK(log.find("added: team/evaluator") != log.npos);
  CHECK(log.find("the credentials stay as they were") != log.npos);
  for (const std::string& key : {trainer_key, evaluator_key}) {
    CHECK(log.find(key.substr(0, 12)) == log.npos);
  }
}

/// Where this is root, another user, to whom the file is given: of root all is root's.
Process::Options as_some_user(std::vector<std::string> flags, const CredentialsFile& file) {
  constexpr uid_t nobody = 65534;
  Process::Options options = musterd_options(std::move(flags));
  if (::geteuid() != 0) return options;
  REQUIRE(::chmod(file.folder().c_str(), 0755) == 0);
  REQUIRE(::chown(file.path().c_str(), nobody, nobody) == 0);
  options.command.insert(
      options.command.begin(),
      {"/usr/bin/setpriv", "--reuid=" + std::to_string(nobody), "--clear-groups"});
  return options;
}

TEST_CASE("its memory is its own, when there are credentials") {
  const CredentialsFile file(trainer);
  const auto owner = [](const Musterd& musterd) {
    struct stat status {};
    const std::string path = "/proc/" + std::to_string(musterd.pid()) + "/mem";
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return status.st_uid;
  };
  const std::vector<std::string> flags = {"--listen", "127.0.0.1:0"};
  Process probe(as_some_user({"--version"}, file));
  if (probe.wait().exit_code != 0) {
    MESSAGE("another user cannot run what was built");
    return;
  }
  const Musterd open(as_some_user(flags, file), 1);
  std::vector<std::string> with_credentials = flags;
  with_credentials.insert(with_credentials.end(), {"--credentials", file.path()});
  const Musterd guarded(as_some_user(with_credentials, file), 1);
  CHECK(owner(open) != 0);
  CHECK(owner(guarded) == 0);
}

/// So many descriptors a process may have if it is to open no further one.
rlim_t none_further(pid_t pid) {
  std::set<rlim_t> open;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    open.insert(std::stoul(each.path().filename().string()));
  }
  rlim_t lowest_free = 0;
  while (open.count(lowest_free) == 1) ++lowest_free;
  return lowest_free;
}

TEST_CASE("a client for whom there is no descriptor hears so, by TLS, and comes in later") {
  const CredentialsFile file(trainer);
  const Musterd musterd({"--credentials", file.path()});
  muster::StoreOptions options;
  options.credential_file = file.path();
  const auto first = must(muster::Store::connect(musterd.address(), options));
  rlimit before{};
  REQUIRE(::prlimit(musterd.pid(), RLIMIT_NOFILE, nullptr, &before) == 0);
  const rlimit now{none_further(musterd.pid()), before.rlim_max};
  REQUIRE(::prlimit(musterd.pid(), RLIMIT_NOFILE, &now, nullptr) == 0);
  const auto error = must_fail(muster::Store::connect(musterd.address(), options, 1s));
  CHECK(error.code == muster::ErrorCode::unavailable);
  CHECK_MESSAGE(error.detail.find("no memory or no file descriptor left") != error.detail.npos,
                error.detail);
  REQUIRE(::prlimit(musterd.pid(), RLIMIT_NOFILE, &before, nullptr) == 0);
  must(muster::Store::connect(musterd.address(), options));
}

TEST_CASE("systemd hands credentials over by a name") {
  const CredentialsFile file(trainer);
  Musterd musterd({"--credentials", "credentials"}, {{"CREDENTIALS_DIRECTORY", file.folder()}});
  CHECK(TlsClient(musterd.address(), tls_context(trainer_key)).begin());
}

TEST_CASE("what cannot be meant ends with the code for wrong flags, before anything is served") {
  const CredentialsFile file(trainer);
  CHECK(exit_code_of({"--credentials", file.path(), "--allow-unauthenticated"}) == 2);
  CHECK(exit_code_of({"--server-name", "cluster-1"}) == 2);
  CHECK(exit_code_of({"--credentials", file.path(), "--tls-key", "/nowhere"}) == 2);
  CHECK(exit_code_of({"--credentials", file.folder()}) == 2);
  CHECK(exit_code_of({"--credentials", file.folder() + "/none"}) == 2);
  CHECK(exit_code_of({"--listen", "0.0.0.0:0"}) == 4);
  file.write(trainer, 0644);
  Process open(musterd_options({"--credentials", file.path(), "--listen", "127.0.0.1:0"}));
  const std::string said = open.read_errors();
  CHECK(open.wait().exit_code == 2);
  CHECK(said.find("--credentials: " + file.path() + ": ") != said.npos);
}

TEST_CASE("with credentials it serves others than this machine") {
  const CredentialsFile file(trainer);
  Musterd musterd({"--credentials", file.path(), "--listen", "0.0.0.0:0"});
  const std::string& address = musterd.address();
  const std::string port = address.substr(address.rfind(':'));
  CHECK(TlsClient("127.0.0.1" + port, tls_context(trainer_key)).begin());
}

TEST_CASE("musterd shows no key that stands in a wrong place") {
  const std::string line = "team/trainer " + trainer_key + " * all";
  const CredentialsFile settings("listen = 127.0.0.1:0\n" + line + "\n");
  const CredentialsFile http("http = team/a:" + trainer_key + "@host:29400\n");
  const muster::test::TemporaryFolder folder;
  std::vector<Process::Options> mistakes;
  for (const std::string& secret : {trainer_key, line}) {
    for (const char* flag :
         {"--credentials", "--server-name", "--tls-certificate", "--tls-key", "--config",
          "--listen", "--heartbeat", "--tcpstore", "--http", "--http-cert", "--http-tokens"}) {
      mistakes.push_back(musterd_options({flag, secret}));
    }
    mistakes.push_back(musterd_options({secret}));
    mistakes.push_back(musterd_options({}));
    mistakes.back().environment["MUSTER_CREDENTIALS"] = secret;
    mistakes.push_back(musterd_options({"--port-file", folder.path() + "/" + secret}));
    mistakes.push_back(musterd_options({"--http", "team/a:" + secret + "@host:29400"}));
    mistakes.push_back(musterd_options({}));
    mistakes.back().environment["MUSTER_HTTP"] = secret + ":29400";
    mistakes.push_back(musterd_options({"--credentials", "/nowhere"}));
    mistakes.back().environment["MUSTER_" + secret.substr(0, secret.find('='))] = "x";
  }
  mistakes.push_back(musterd_options({"--config", settings.path()}));
  mistakes.push_back(musterd_options({"--config", http.path()}));
  const std::string named = folder.path() + "/there/" + trainer_key;
  std::filesystem::create_directories(named);
  for (const char* flag : {"--http", "--credentials"})
    mistakes.push_back(musterd_options({flag, named}));
  for (Process::Options& mistake : mistakes) {
    mistake.take_errors = true;
    Process musterd(mistake);
    const std::string errors = musterd.read_errors();
    CAPTURE(mistake.command);
    CAPTURE(errors);
    CHECK(musterd.wait().exit_code != 0);
    CHECK(errors.find(trainer_key.substr(0, 24)) == errors.npos);
    CHECK(errors.find("because it is now known") != errors.npos);
  }
}

}  // namespace
