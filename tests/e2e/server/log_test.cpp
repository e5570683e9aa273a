#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "e2e/server/musterd.h"
#include "support/await.h"
#include "support/raw_client.h"

// Where the log of musterd goes: to whom it may, without ever being waited for.

namespace {

using muster::test::await;
using muster::test::Musterd;
using muster::test::musterd_options;
using muster::test::Process;
using muster::test::RawClient;
using muster::test::TemporaryFolder;
using muster::test::with_listen;
namespace wire = muster::wire;
namespace fs = std::filesystem;

constexpr int sessions_logged = 20;

/// A musterd whose standard error is `descriptor`, which is the caller's.
Process::Options logging_to(int descriptor) {
  Process::Options options = musterd_options(with_listen({"--log-level", "debug"}));
  options.take_errors = false;
  options.errors = descriptor;
  return options;
}

std::ptrdiff_t threads_of(const Process& process) {
  const fs::path tasks = "/proc/" + std::to_string(process.pid()) + "/task";
  return std::distance(fs::directory_iterator(tasks), fs::directory_iterator());
}

/// Of one that logs nothing: its own, and what a sanitizer adds.
std::ptrdiff_t threads_without_log() {
  const Musterd silent({"--log-level", "silent"});
  return threads_of(silent);
}

void make_sessions(const Musterd& musterd) {
  for (int count = 0; count < sessions_logged; ++count) {
    auto client = RawClient::with_session(musterd.address());
    CHECK(client.call(wire::Add{"counter", 1}).header.code == 0);
  }
}

void check_log(const std::string& log) {
  std::istringstream lines(log);
  int begun = 0;
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() > 25);
    CHECK(line[10] == 'T');
    CHECK(line[23] == 'Z');
    if (line.find(" begun from ") != std::string::npos) ++begun;
  }
  CHECK(begun == sessions_logged);
  CHECK(log.find("stopping: musterd was stopped (SIGTERM)") != std::string::npos);
}

std::string read_all(int descriptor) {
  std::string all;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::read(descriptor, buffer, sizeof(buffer))) > 0;) {
    all.append(buffer, static_cast<std::size_t>(count));
  }
  return all;
}

void end(Musterd& musterd) {
  musterd.send_signal(SIGTERM);
  CHECK(musterd.wait().exit_code == 0);
}

TEST_CASE("a pipe takes the log without a thread for it") {
  Musterd musterd({"--log-level", "debug"});
  make_sessions(musterd);
  CHECK(threads_of(musterd) == threads_without_log());
  musterd.send_signal(SIGTERM);
  check_log(musterd.read_errors());
  CHECK(musterd.wait().exit_code == 0);
}

TEST_CASE("a socket takes the log without a thread for it") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  Musterd musterd(logging_to(ends[1]), 1);
  ::close(ends[1]);
  make_sessions(musterd);
  CHECK(threads_of(musterd) == threads_without_log());
  end(musterd);
  check_log(read_all(ends[0]));
  ::close(ends[0]);
}

TEST_CASE("a file takes the log, behind what is in it, and its thread ends") {
  const TemporaryFolder folder;
  std::ofstream(folder / "log") << "what was there before, a line\n";
  const int file = ::open((folder / "log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(file >= 0);
  Musterd musterd(logging_to(file), 1);
  ::close(file);
  make_sessions(musterd);
  const std::ptrdiff_t threads = threads_of(musterd);
  CHECK(threads > threads_without_log());
  await([&] { return threads_of(musterd) < threads; });
  make_sessions(musterd);
  end(musterd);
  std::stringstream log;
  log << std::ifstream(folder / "log").rdbuf();
  std::string first;
  std::getline(log, first);
  CHECK(first == "what was there before, a line");
  int begun = 0;
  for (std::string line; std::getline(log, line);) {
    if (line.find(" begun from ") != std::string::npos) ++begun;
  }
  CHECK(begun == 2 * sessions_logged);
}

TEST_CASE("without a standard error nothing is logged, to no client either") {
  Process::Options options = musterd_options({});
  options.command = {"/bin/sh", "-c",
                     "exec " + options.command[0] + " --listen 127.0.0.1:0 --log-level debug 2>&-"};
  Musterd musterd(options, 1);
  make_sessions(musterd);
  CHECK(threads_of(musterd) == threads_without_log());
  end(musterd);
}

TEST_CASE("a pipe that is read late has every line, and the thread that wrote them ends") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  REQUIRE(::fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0);
  Musterd musterd(logging_to(ends[1]), 1);
  ::close(ends[1]);
  const std::ptrdiff_t threads = threads_without_log();
  std::string log;
  const auto drain = [&] {
    char buffer[4096];
    const ssize_t count = ::read(ends[0], buffer, sizeof(buffer));
    if (count > 0) log.append(buffer, static_cast<std::size_t>(count));
  };
  while (threads_of(musterd) == threads) make_sessions(musterd);
  const std::ptrdiff_t threads_with_log = threads_of(musterd);
  REQUIRE(::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
  await([&] {
    drain();
    return threads_of(musterd) < threads_with_log;
  });
  make_sessions(musterd);
  musterd.send_signal(SIGTERM);
  REQUIRE(::fcntl(ends[0], F_SETFL, 0) == 0);
  log += read_all(ends[0]);
  CHECK(musterd.wait().exit_code == 0);
  ::close(ends[0]);
  // Each session's number stands in the line of its beginning: none is missing.
  int number = 0;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" begun from ") == std::string::npos) continue;
    CAPTURE(line);
    CHECK(line.find("session " + std::to_string(++number) + " ") != std::string::npos);
  }
  CHECK(number > 2 * sessions_logged - 1);
  CHECK(log.find("lines were dropped") == std::string::npos);
}

TEST_CASE("an observer comes and goes without a line at info") {
  Musterd musterd({});
  {
    RawClient observer(musterd.address());
    wire::ClientHello hello;
    hello.role = wire::Role::observer;
    hello.process.label = "only looks";
    CHECK(observer.say_hello(hello).status == 0);
    std::string goodbye;
    wire::append_goodbye(goodbye, "bye");
    observer.send(goodbye);
    CHECK(observer.is_closed());
  }
  make_sessions(musterd);
  musterd.send_signal(SIGTERM);
  const std::string log = musterd.read_errors();
  check_log(log);
  CHECK(log.find("only looks") == std::string::npos);
  CHECK(musterd.wait().exit_code == 0);
}

TEST_CASE("a line of the log is text, whatever a client calls itself") {
  Musterd musterd({"--log-level", "debug"});
  RawClient client(musterd.address());
  wire::ClientHello hello;
  hello.process.id.bytes[0] = 1;
  hello.process.label = "a\n\u009b\u202e\xff";
  CHECK(client.say_hello(hello).status == 0);
  end(musterd);
  CHECK(musterd.read_errors().find("(a\\x0a\\u009b\\u202e\\xff)") != std::string::npos);
}

/// Those of the log whose message has `part`.
std::vector<nlohmann::json> objects_with(const std::string& part, const std::string& log) {
  std::vector<nlohmann::json> found;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    REQUIRE(object.is_object());
    CHECK(object.at("time").get<std::string>().size() == 24);
    const std::string message = object.at("message");
    if (message.find(part) != std::string::npos) found.push_back(std::move(object));
  }
  return found;
}

TEST_CASE("in JSON each line is an object with the fields of its message, whoever it is about") {
  Musterd musterd({"--log-level", "debug", "--log-format", "json"});
  {
    RawClient client(musterd.address());
    wire::ClientHello hello;
    hello.process.id.bytes[0] = 1;
    hello.process.label = "\"a\\\n begun from 9.9.9.9:9";
    CHECK(client.say_hello(hello).status == 0);
    client.finish_sending();
    CHECK(client.is_closed());
  }
  end(musterd);
  const std::string log = musterd.read_errors();
  const auto begun = objects_with("\\x0a begun from 9.9.9.9:9)", log);
  REQUIRE(begun.size() >= 1);
  CHECK(begun[0].at("level") == "info");
  CHECK(begun[0].at("session") == 1);
  CHECK(begun[0].at("peer").get<std::string>().starts_with("127.0.0.1:"));
  const auto ended = objects_with(": ended: ", log);
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].at("session") == 1);
  CHECK(ended[0].at("peer") == begun[0].at("peer"));
  const auto stopping = objects_with("stopping: ", log);
  REQUIRE(stopping.size() == 1);
  CHECK(stopping[0].size() == 3);
}

TEST_CASE("a log that nobody takes stops nothing, and what was dropped is counted") {
  Musterd musterd({});  // its errors go into a pipe that nobody reads
  auto member = RawClient::with_session(musterd.address());
  // What clients cause is bounded before it comes to that: each hang-up is a line, and the answer
  // to the member comes behind it.
  for (int count = 0; count < 14'000; ++count) {
    musterd.send_signal(SIGHUP);
    REQUIRE(member.call(wire::Add{"counter", 1}).header.code == 0);
  }
  musterd.send_signal(SIGTERM);
  CHECK(musterd.read_errors().find("lines were dropped") != std::string::npos);
  CHECK(musterd.wait().exit_code == 0);
}

TEST_CASE("a log whose reader is gone stops nothing") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  Musterd musterd(logging_to(ends[1]), 1);
  ::close(ends[0]);
  ::close(ends[1]);
  make_sessions(musterd);
  end(musterd);
}

}  // namespace
