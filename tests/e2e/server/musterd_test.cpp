#include "e2e/server/musterd.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include <doctest/doctest.h>

#include "muster/server.h"
#include "support/await.h"
#include "support/machine.h"
#include "support/raw_client.h"
#include "support/sanitizers.h"

// musterd as operators start, watch and stop it.

namespace {

using namespace std::chrono_literals;
using muster::ErrorCode;
using muster::test::await;
using muster::test::Ending;
using muster::test::has_ipv6;
using muster::test::Musterd;
using muster::test::musterd_options;
using muster::test::Process;
using muster::test::RawClient;
using muster::test::TemporaryFolder;
using muster::test::with_listen;
namespace wire = muster::wire;
namespace fs = std::filesystem;

std::string port_of(const std::string& address) { return address.substr(address.rfind(':') + 1); }

bool is_served(const std::string& address) {
  auto client = RawClient::with_session(address);
  return client.call(wire::Add{"counter", 1}).header.code == 0;
}

TEST_CASE("the port is told on the standard output and in the port file") {
  const TemporaryFolder folder;
  Musterd musterd({"--listen", "127.0.0.1:0", "--port-file", folder / "port"});
  std::string port;
  std::ifstream(folder / "port") >> port;
  CHECK(port == port_of(musterd.address()));
  CHECK(is_served(musterd.address()));
  musterd.send_signal(SIGTERM);
  CHECK(musterd.wait().exit_code == 0);
  CHECK_FALSE(fs::exists(folder / "port"));
}

TEST_CASE("it listens at every address that it is given") {
  const TemporaryFolder folder;
  const std::string path = "unix:" + (folder / "socket");
  Musterd musterd(musterd_options({"--listen", "127.0.0.1:0", "--listen", path}), 2);
  CHECK(musterd.addresses().back() == path);
  for (const std::string& address : musterd.addresses()) CHECK(is_served(address));
}

TEST_CASE("all of this machine is served in both families, where that is allowed") {
  Musterd musterd({"--listen", ":0", "--allow-unauthenticated"});
  const std::string port = port_of(musterd.address());
  CHECK(is_served("127.0.0.1:" + port));
  if (has_ipv6()) CHECK(is_served("[::1]:" + port));
}

TEST_CASE("a socket that was handed in is served") {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&loopback), sizeof(loopback)) == 0);
  REQUIRE(::listen(fd, 5) == 0);
  Process::Options options = musterd_options({"--listen-fd", std::to_string(fd)});
  options.descriptors = {fd};
  const Musterd musterd(options, 1);
  ::close(fd);
  CHECK(is_served(musterd.address()));
}

TEST_CASE("wrong flags, values, files and limits are usage errors that name what is wrong") {
  const TemporaryFolder folder;
  std::ofstream(folder / "unknown.conf") << "# a comment\n\nno-such-thing = 1\n";
  std::ofstream(folder / "broken.conf") << "grace\n";
  std::ofstream(folder / "near.conf") << "grac = 1s\n";
  std::ofstream(folder / "value.conf") << "grace = soon\n";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--no-such-flag"}, "--no-such-flag"},
      {{"--grace", "soon"}, "--grace: \"soon\" is no duration (write 500ms, 15s, 2min or 1h"},
      {{"--grace", "1s", "--grace", "2s"}, "--grace"},
      {{"--memory-bytes-max", "1TB"}, "--memory-bytes-max: \"1TB\" is no number of bytes (write"},
      {{"--connections-max", "4294967296"}, "whole number from 0 to 4294967295"},
      {{"--session-timeout", "1s"}, "--session-timeout: 1 s is not within 5 s to 600 s"},
      {{"--heartbeat", "10s"}, "--heartbeat: --session-timeout must be at least 5 heartbeats"},
      {{"--sesion-timeout", "15s"}, "did you mean \"--session-timeout\"?"},
      {{"--grace"}, "--grace needs a DURATION"},
      {{"first", "second"}, "\"first\" is one argument too many"},
      {{"--log-level", "loud"}, "debug, info, warning, error or silent"},
      {{"--config", folder / "near.conf"}, "did you mean \"grace\"?"},
      {{"--listen", "nowhere"}, "--listen: address 'nowhere'"},
      {{"--listen-fd", "987"}, "987"},
      {{"--listen-fd", "3", "--listen", "127.0.0.1:0"}, "--listen"},
      {{"--config", folder / "missing.conf"}, "missing.conf"},
      {{"--config", folder / "unknown.conf"}, "unknown.conf:3"},
      {{"--config", folder / "broken.conf"}, "broken.conf:1"},
      {{"--config", folder / "value.conf"}, "value.conf:1"},
      {{"--connections-max", "1000000"}, "--connections-max: connections-max is 1000000"},
  };
  for (const auto& one : cases) {
    Process musterd(musterd_options(one.first));
    const std::string errors = musterd.read_errors();
    const std::string& name = one.second;
    CAPTURE(name);
    CAPTURE(errors);
    CHECK(musterd.wait().exit_code == 2);
    CHECK(errors.find(name) != std::string::npos);
  }
  Process wrong_environment(musterd_options({}, {{"MUSTER_SLACK", "never"}}));
  CHECK(wrong_environment.read_errors().find("MUSTER_SLACK") != std::string::npos);
  CHECK(wrong_environment.wait().exit_code == 2);
  Process out_of_range(musterd_options({}, {{"MUSTER_SESSION_TIMEOUT", "1s"}}));
  CHECK(out_of_range.read_errors().find("MUSTER_SESSION_TIMEOUT: 1 s is not within") !=
        std::string::npos);
  CHECK(out_of_range.wait().exit_code == 2);
}

#if !MUSTER_TEST_HAS_ASAN && !MUSTER_TEST_HAS_TSAN  // which reserve terabytes
/// musterd behind commands of a shell, which may set limits for it.
Process::Options behind(const std::string& commands, const std::vector<std::string>& flags) {
  Process::Options options = musterd_options(flags);
  const std::string all = commands + R"(; exec "$0" "$@")";
  options.command.insert(options.command.begin(), {"/bin/sh", "-c", all});
  return options;
}

TEST_CASE("memory-bytes-max is fitted to the limit of the address space, or the start is refused") {
  Musterd musterd(behind("ulimit -v 262144", {"--listen", "127.0.0.1:0"}), 1);
  CHECK(is_served(musterd.address()));
  musterd.send_signal(SIGTERM);
  const std::string log = musterd.read_errors();
  CAPTURE(log);
  CHECK(log.find("the limit (RLIMIT_AS (ulimit -v)) is 268435456; reduced to 178956968") !=
        log.npos);
  CHECK(musterd.wait().exit_code == 0);
  Process small(behind("ulimit -v 81919", {"--listen", "127.0.0.1:0"}));
  const std::string errors = small.read_errors();
  CAPTURE(errors);
  CHECK(errors.find("a server needs 80 MiB") != errors.npos);
  CHECK(small.wait().exit_code == 1);
}

TEST_CASE("memory-bytes-max is fitted to the limit of the memory cgroup, or the start is refused") {
  const std::string folder = "/sys/fs/cgroup/memory/muster-test-" + std::to_string(::getpid());
  std::error_code failed;
  if (!std::filesystem::create_directory(folder, failed) || failed) {
    MESSAGE("skipped: there is no memory cgroup of version 1 that may be written");
    return;
  }
  const auto limited_to = [&](const std::string& bytes) {
    return behind("echo " + bytes + " > " + folder + "/memory.limit_in_bytes && echo $$ > " +
                      folder + "/cgroup.procs",
                  {"--listen", "127.0.0.1:0"});
  };
  {
    Musterd musterd(limited_to("268435456"), 1);
    CHECK(is_served(musterd.address()));
    musterd.send_signal(SIGTERM);
    const std::string log = musterd.read_errors();
    CAPTURE(log);
    CHECK(log.find(folder + ") is 268435456; reduced to 178956968") != log.npos);
    CHECK(musterd.wait().exit_code == 0);
    Process small(limited_to("67108864"));
    const std::string errors = small.read_errors();
    CAPTURE(errors);
    CHECK(errors.find("limited to 64 MiB by memory.limit_in_bytes of the cgroup " + folder) !=
          errors.npos);
    CHECK(errors.find("a server needs 80 MiB") != errors.npos);
    CHECK(small.wait().exit_code == 1);
  }
  CHECK(std::filesystem::remove(folder));
}
#endif

TEST_CASE("a duration without a unit is seconds") {
  const Musterd musterd({"--grace", "3"});
  RawClient client(musterd.address());
  CHECK(client.say_hello().limits.grace == 3s);
}

TEST_CASE("a variable that nothing reads is told, and what was meant; not those of Kubernetes") {
  Musterd musterd({}, {{"MUSTER_SESION_TIMEOUT", "20s"},
                       {"MUSTER_SERVER", "elsewhere:1"},
                       {"MUSTER_STORE", "elsewhere:1"},
                       {"MUSTER_SHARED_FS", "1"},
                       {"MUSTER_SERVICE_HOST", "10.0.0.1"},
                       {"MUSTER_PORT_29400_TCP", "tcp://10.0.0.1:29400"}});
  musterd.send_signal(SIGTERM);
  const std::string log = musterd.read_errors();
  CHECK(log.find("MUSTER_SESION_TIMEOUT; did you mean \"MUSTER_SESSION_TIMEOUT\"?") !=
        std::string::npos);
  CHECK(log.find("MUSTER_SERV") == std::string::npos);
  CHECK(log.find("MUSTER_STORE") == std::string::npos);
  CHECK(log.find("MUSTER_SHARED_FS") == std::string::npos);
  CHECK(log.find("MUSTER_PORT") == std::string::npos);
  CHECK(musterd.wait().exit_code == 0);
}

TEST_CASE("an address in use and one that is not allowed have exit codes of their own") {
  const Musterd first({});
  Process second(musterd_options({"--listen", first.address()}));
  CHECK(second.wait().exit_code == 3);
  Process open(musterd_options({"--listen", "0.0.0.0:0"}));
  CHECK(open.wait().exit_code == 4);
}

TEST_CASE("help and version end well") {
  Process help(musterd_options({"--help"}));
  const std::string text = help.read_output();
  CHECK(text.find("--allow-unauthenticated") != std::string::npos);
  CHECK(text.find("127.0.0.1:29400") != std::string::npos);
  CHECK(help.wait().exit_code == 0);
  Process version(musterd_options({"--version"}));
  CHECK(version.read_output().starts_with("musterd "));
  CHECK(version.wait().exit_code == 0);
}

TEST_CASE("a flag wins over the environment, that over the file") {
  const TemporaryFolder folder;
  std::ofstream(folder / "musterd.conf") << "value-bytes-max = 1KiB\n"
                                            "key-bytes-max = 100  # of one key\n"
                                            "world-size-max = 10\n"
                                            "listen = 127.0.0.1:0\n"
                                            "listen = localhost:0\n";
  const Musterd musterd(
      musterd_options({"--world-size-max", "30"}, {{"MUSTER_CONFIG", folder / "musterd.conf"},
                                                   {"MUSTER_KEY_BYTES_MAX", "200"},
                                                   {"MUSTER_WORLD_SIZE_MAX", "20"}}),
      2);
  RawClient client(musterd.address());
  const wire::ServerLimits limits = client.say_hello().limits;
  CHECK(limits.value_bytes_max == 1024);
  CHECK(limits.key_bytes_max == 200);
  CHECK(limits.world_size_max == 30);
}

TEST_CASE("its clients hear why it stops") {
  for (const int signal : {SIGTERM, SIGINT}) {
    Musterd musterd({});
    auto client = RawClient::with_session(musterd.address());
    musterd.send_signal(signal);
    CHECK(client.receive_goodbye().find(signal == SIGTERM ? "SIGTERM" : "SIGINT") !=
          std::string::npos);
    CHECK(client.is_closed());
    CHECK(musterd.wait().exit_code == 0);
  }
}

TEST_CASE("a second signal ends it at once") {
  Musterd musterd({});
  auto client = RawClient::with_session(musterd.address());
  musterd.send_signal(SIGTERM);
  client.receive_goodbye();  // it waits now for this client to close
  musterd.send_signal(SIGTERM);
  const Ending ending = musterd.wait();
  CHECK(ending.has_ended);
  CHECK((ending.signal == SIGTERM || ending.exit_code == 0));
}

TEST_CASE("a signal that whoever started it ignores does not stop it") {
  Process::Options options = musterd_options({});
  options.command = {"/bin/sh", "-c",
                     "trap '' INT; exec " + options.command[0] + " --listen 127.0.0.1:0"};
  Musterd musterd(options, 1);
  musterd.send_signal(SIGINT);
  CHECK(is_served(musterd.address()));
  auto client = RawClient::with_session(musterd.address());
  musterd.send_signal(SIGTERM);
  client.receive_goodbye();  // it waits now for this client to close
  musterd.send_signal(SIGINT);
  CHECK(musterd.wait().exit_code == 0);
}

TEST_CASE("a text that cannot be written is told, and no success") {
  for (const char* const option : {"--help", "--version"}) {
    CAPTURE(option);
    Process::Options options;
    options.command = {"/bin/sh", "-c", "\"$MUSTERD\" \"$0\" > /dev/full", option};
    Process process(options);
    CHECK(process.read_errors() ==
          "musterd: cannot write to the standard output: No space left on device\n");
    CHECK(process.wait().exit_code == 1);
    options.command = {"/bin/sh", "-c", "\"$MUSTERD\" \"$0\" >&-", option};
    Process closed(options);
    CHECK(closed.read_errors() ==
          "musterd: cannot write to the standard output: Bad file descriptor\n");
    CHECK(closed.wait().exit_code == 1);
  }
}

TEST_CASE("the port file is no link's target, and one that has replaced it is kept") {
  const TemporaryFolder folder;
  std::ofstream(folder / "precious") << "kept";
  fs::create_symlink(folder / "precious", folder / "port.new");
  Musterd musterd({"--listen", "127.0.0.1:0", "--port-file", folder / "port"});
  const std::string port = port_of(musterd.address());
  CHECK(fs::is_regular_file(fs::symlink_status(folder / "port")));
  std::string kept;
  std::ifstream(folder / "precious") >> kept;
  CHECK(kept == "kept");
  fs::rename(folder / "precious", folder / "port");
  musterd.send_signal(SIGTERM);
  CHECK(musterd.wait().exit_code == 0);
  CHECK(fs::exists(folder / "port"));
}

TEST_CASE("a hang-up ends nothing, and is told in the log") {
  const TemporaryFolder folder;
  const std::string path = "unix:" + (folder / "socket");
  Musterd musterd({"--listen", path, "--listen", "127.0.0.1:0", "--port-file", folder / "port"});
  auto client = RawClient::with_session(path);
  CHECK(client.call(wire::Set{"kept", "value", {}, false, false}).header.code == 0);
  for (int count = 0; count < 3; ++count) {
    musterd.send_signal(SIGHUP);
    CHECK(client.call(wire::Get{"kept"}).header.code == 0);
  }
  CHECK(fs::exists(folder / "port"));
  musterd.send_signal(SIGTERM);
  CHECK(musterd.read_errors().find("there is nothing to reload") != std::string::npos);
  CHECK(musterd.wait().exit_code == 0);
  CHECK_FALSE(fs::exists(folder / "port"));
  CHECK_FALSE(fs::exists(folder / "socket"));
}

TEST_CASE("a hang-up does not end it before it serves, nor while it stops, nor under nohup") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "settings").c_str(), 0600) == 0);
  Process::Options options = musterd_options({});
  options.command = {"/bin/sh", "-c",
                     "trap '' HUP; exec " + options.command[0] + " --listen 127.0.0.1:0 --config " +
                         (folder / "settings")};
  Process musterd(options);
  int settings = -1;
  await([&] {  // until it opens them, too
    settings = ::open((folder / "settings").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return settings >= 0;
  });
  musterd.send_signal(SIGHUP);
  ::close(settings);
  const std::string line = musterd.read_line().value();
  const std::string address = line.substr(line.rfind(' ') + 1);
  auto client = RawClient::with_session(address);
  musterd.send_signal(SIGTERM);
  client.receive_goodbye();  // it waits now for this client to close
  musterd.send_signal(SIGHUP);
  CHECK(musterd.read_errors().find("nothing to reload") != std::string::npos);
  CHECK(musterd.wait().exit_code == 0);
}

TEST_CASE("two signals end it also while it waits for something else") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "settings").c_str(), 0600) == 0);
  Process musterd(musterd_options({"--config", folder / "settings"}));
  int settings = -1;
  await([&] {  // until it opens them, too
    settings = ::open((folder / "settings").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return settings >= 0;
  });
  musterd.send_signal(SIGTERM);
  musterd.send_signal(SIGINT);
#if MUSTER_TEST_HAS_TSAN  // it keeps the signals that come during a read until the read is over
  ::close(settings);
  const auto end = musterd.wait();
#else
  const auto end = musterd.wait();
  ::close(settings);
#endif
  CAPTURE(end.exit_code);
  CAPTURE(end.signal);  // which comes first is the kernel's choice
  CHECK((end.signal == SIGINT || end.signal == SIGTERM));
}

TEST_CASE("it is no process that embeds a server") {
  const Musterd musterd({});
  RawClient client(musterd.address());
  CHECK(client.say_hello().hosting_process.id == muster::ProcessId{});
}

TEST_CASE("it fits its connections to the descriptors that it may have") {
  const TemporaryFolder folder;
  Process::Options options = musterd_options({});
  options.command = {"/bin/sh", "-c",
                     "ulimit -n 400; exec " + options.command[0] + " --listen 127.0.0.1:0"};
  Musterd musterd(options, 1);
  auto client = RawClient::with_session(musterd.address());
  const auto reply = client.call(wire::Status{});
  const auto status = muster::wire::decode_body<wire::StatusReply>(reply.body);
  REQUIRE(status);
  const std::map<std::string_view, std::string_view> fields(status->fields.begin(),
                                                            status->fields.end());
  muster::ServerOptions fitted;
  const auto number = [&](std::string_view name) {
    return static_cast<std::uint32_t>(std::stoul(std::string(fields.at(name))));
  };
  fitted.connections_max = number("connections_max");
  fitted.hello_connections_max = number("hello_connections_max");
  CHECK(muster::connections_at_most(fitted) + 320 == 400);
  options.command.back() += " --connections-max 1000";
  Process refused(options);
  CHECK(refused.wait().exit_code == 2);
}

TEST_CASE("stopped for longer than the session timeout it loses nobody") {
  Musterd musterd({"--session-timeout", "5s"});
  auto client = RawClient::with_session(musterd.address());
  CHECK(client.call(wire::Set{"bound", "", {}, false, true}).header.code == 0);
  musterd.stop();
  CHECK_THROWS(client.receive(1, 6500ms));
  musterd.send_signal(SIGCONT);
  CHECK(client.call(wire::Get{"bound"}).header.code == 0);
}

TEST_CASE("killed and started again it takes over the path of its Unix socket") {
  const TemporaryFolder folder;
  const std::string path = "unix:" + (folder / "socket");
  {
    Musterd first({"--listen", path});
    CHECK(is_served(path));
    Process second(musterd_options({"--listen", path}));
    CHECK(second.wait().exit_code == 3);
    first.send_signal(SIGKILL);
    CHECK(first.wait().signal == SIGKILL);
  }
  const Musterd again({"--listen", path});
  CHECK(is_served(path));
}

}  // namespace
