#include "musterctl.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/frame_proxy.h"
#include "support/ranks.h"

// musterctl as operators and their scripts call it.

namespace {

using Json = nlohmann::json;
using muster::test::Musterctl;
using muster::test::Process;
using muster::test::Said;

TEST_CASE("keys are set, read, counted, listed and removed") {
  const Musterctl musterctl;
  CHECK(musterctl({"set", "a", "text"}).exit_code == 0);
  CHECK(musterctl({"get", "a"}).output == "text");
  CHECK(musterctl({"set", "a", "other", "--only-if-absent"}).exit_code == 1);
  CHECK(musterctl({"add", "n", "5"}).output == "5\n");
  CHECK(musterctl({"add", "n", "-7"}).output == "-2\n");
  CHECK(musterctl({"add", "n"}).output == "-1\n");
  CHECK(musterctl({"ls", "a"}).output == "4\t-\t-\ta\n");
  CHECK(musterctl({"wait", "a", "n"}).exit_code == 0);
  CHECK(musterctl({"rm", "a", "n"}).exit_code == 0);
  CHECK(musterctl({"get", "a"}).exit_code == 3);
  CHECK(musterctl({"rm", "a"}).exit_code == 3);
}

TEST_CASE("every call of a store has its command") {
  const Musterctl musterctl;
  const auto document = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--json");
    return Json::parse(musterctl(arguments).output);
  };
  CHECK(musterctl({"append", "log", "one "}).output == "4\n");
  CHECK(document({"append", "log", "two"})["value_bytes"] == 7);
  CHECK(musterctl({"take", "log"}).output == "one two");
  CHECK(musterctl({"take", "log"}).exit_code == 3);
  CHECK(musterctl({"queue_push", "q", "one"}).output == "1\n");
  CHECK(document({"queue_push", "q", "two"})["count"] == 2);
  CHECK(musterctl({"queue_pop", "q"}).output == "one");
  CHECK(musterctl({"queue_length", "q"}).output == "1\n");
  CHECK(document({"queue_pop", "--wait", "q"})["value"] == "two");
  CHECK(musterctl({"queue_pop", "q"}).exit_code == 3);
  CHECK(musterctl({"multi_set", "a", "1", "b", "2", "--ttl", "1h"}).exit_code == 0);
  CHECK(musterctl({"multi_get", "a", "b"}).output == "a\t1\nb\t2\n");
  CHECK(musterctl({"multi_get", "a", "none"}).exit_code == 3);
  CHECK(document({"multi_get", "none"})[0]["value"].is_null());
  CHECK(musterctl({"exists", "a", "b"}).exit_code == 0);
  CHECK(musterctl({"exists", "a", "none"}).output == "none is absent\n");
  CHECK(document({"exists", "a"})[0]["exists"] == true);
  CHECK(document({"ls", "a"})[0]["ttl_s"].is_number());
  CHECK(document({"touch", "a"})["ttl_s"].is_null());
  CHECK(document({"ls", "a"})[0]["ttl_s"].is_null());
  CHECK(musterctl({"touch", "a", "--ttl", "1h"}).exit_code == 0);
  CHECK(musterctl({"ls", "a"}).output.starts_with("1\t59 min"));
  CHECK(musterctl({"touch", "none"}).exit_code == 3);
  CHECK(musterctl({"compare_set", "a", "1", "3"}).exit_code == 0);
  const Json refused = document({"compare_set", "a", "1", "4"});
  CHECK(refused["applied"] == false);
  CHECK(refused["value"] == "3");
  CHECK(musterctl({"compare_set", "a", "1", "4"}).exit_code == 1);
  CHECK(document({"compare_set", "none", "1", "4"})["value"].is_null());
  Process waiting(musterctl.call({"take", "--wait", "job"}));
  CHECK(musterctl({"set", "job", "work"}).exit_code == 0);
  CHECK(waiting.read_output() == "work");
  CHECK(waiting.wait().exit_code == 0);
  CHECK(musterctl({"exists", "job"}).exit_code == 3);
}

TEST_CASE("a process that is declared dead is fenced, with the reason") {
  const Musterctl musterctl;
  auto store = muster::Store::connect(musterctl.address()).value();
  const std::string process = to_string(store.process().id);
  CHECK(musterctl({"report_dead", "5f0c"}).exit_code == 2);
  CHECK(musterctl({"report_dead", std::string(32, 'f')}).exit_code == 3);
  CHECK(musterctl({"report_dead", process, "a test says so"}).exit_code == 0);
  const auto refused = store.get("k");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == muster::ErrorCode::fenced);
  CHECK(refused.error().detail.find("a test says so") != std::string::npos);
}

TEST_CASE("status lists the limits, also as JSON") {
  const Musterctl musterctl;
  CHECK(musterctl({"status"}).output.find("key_bytes_max") != std::string::npos);
  const Json status = Json::parse(musterctl({"--json", "--namespace", "7", "status"}).output);
  CHECK(status["key_bytes_max"] == 1024);
  CHECK(status["namespace"] == "7");
}

TEST_CASE("a wait ends at its timeout and says what is absent") {
  const Musterctl musterctl;
  const Said said = musterctl({"--timeout", "2s", "wait", "never"});
  CHECK(said.exit_code == 3);
  CHECK(said.errors.find("'never' is absent") != std::string::npos);
}

TEST_CASE("where no server answers it says so") {
  const Musterctl musterctl;
  const std::vector<std::string> nowhere = {"--server", "unix:/nowhere", "--timeout", "1h"};
  for (const char* command : {"status", "why", "ls"}) {
    std::vector<std::string> arguments = nowhere;  // it does not wait until the timeout
    arguments.push_back(command);
    const Said said = musterctl(arguments);
    CHECK(said.exit_code == 4);
    CHECK(said.errors.find("--wait-for-server") != std::string::npos);
  }
}

TEST_CASE("it waits for a server where it is told to, and no longer") {
  Musterctl musterctl;
  musterctl.stop_server();
  Process patient(musterctl.call({"--wait-for-server", "1h", "-t", "5s", "--json", "ls"}));
  Process waits_after(musterctl.call({"--wait-for-server", "1h", "-t", "1h", "get", "-w", "key"}));
  CHECK(musterctl({"--wait-for-server", "100ms", "-t", "1h", "status"}).exit_code == 4);
  musterctl.start_server();
  CHECK(patient.wait().exit_code == 0);
  CHECK(musterctl({"set", "key", "value"}).exit_code == 0);
  CHECK(waits_after.wait().exit_code == 0);
  CHECK(waits_after.read_output() == "value");
}

TEST_CASE("what only reads has no outcome: without an answer no server is there") {
  const Musterctl musterctl;
  muster::test::FrameProxy proxy(musterctl.address());
  const std::vector<std::string> to_proxy = {"--json", "--server", proxy.address(), "-t", "3s"};
  auto store = muster::test::connect(musterctl.address());
  const auto exit_code_of = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), to_proxy.begin(), to_proxy.end());
    proxy.resume();
    Process process(musterctl.call(arguments));
    muster::test::await([&] { return muster::test::held_count(store, "waits") == 1; });
    proxy.pause();
    return process.wait().exit_code;
  };
  CHECK(exit_code_of({"get", "--wait", "never"}) == 4);
  CHECK(exit_code_of({"wait", "never"}) == 4);
}

TEST_CASE("numbers out of range and what breaks a rule are usage errors, and change nothing") {
  const Musterctl musterctl;
  const std::vector<std::vector<std::string>> wrong = {
      {"add", "n", "99999999999999999999"},
      {"add", "n", "1.5"},
      {"add", "n", ""},
      {"--timeout", "0", "get", "n"},
      {"--timeout", "-1", "get", "n"},
      {"--timeout", "nan", "get", "n"},
      {"--timeout", "1e30", "get", "n"},
      {"--timeout", "5 parsecs", "get", "n"},
      {"--timeout", "", "get", "n"},
      {"--wait-for-server", "soon", "get", "n"},
      {"--watch=0", "ls"},
      {"--watch=1ms", "ls"},
      {"--watch=often", "ls"},
      {"--watch", "set", "n", "x"},
      {"--watch", "get", "--wait", "n"},
      {"--watch", "wait", "n"},
      {"set", "n", "x", "--ttl", "0"},
      {"set", "", "x"},
      {"--namespace", std::string(65, 'n'), "get", "n"},
      {"--server", "nowhere", "get", "n"},
      {"--server", "host:99999", "get", "n"},
      {"--server", "", "get", "n"},
      {"--server", "unix:", "get", "n"},
      {"ls", "--frobnicate"},
      {"get"},
      {"frobnicate"},
      {},
  };
  for (const auto& arguments : wrong) {
    const Said said = musterctl(arguments);
    CAPTURE(said.errors);
    CHECK(said.exit_code == 2);
    CHECK_FALSE(said.errors.empty());
    CHECK(said.errors.size() < 300);
  }
  CHECK(musterctl({"ls"}).output.empty());
}

TEST_CASE("a usage error names what was typed, what is valid, and what was probably meant") {
  const Musterctl musterctl;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"get", "-k"}, "\"-k\" is no option of musterctl get"},
      {{"get"}, "musterctl get: KEY is required"},
      {{"get", "a", "b", "c"}, "\"b\" is one argument too many for musterctl get"},
      {{"ls", "--object"}, "did you mean \"--objects\"?"},
      {{"--namspace", "n", "ls"}, "did you mean \"--namespace\"?"},
      {{"stauts"}, "\"stauts\" is no command; did you mean \"status\"?"},
      {{"set", "k", "--verbose"}, "stands behind \"--\""},
      {{"get", "a", "--timeout"}, "--timeout needs a DURATION"},
      {{"get", "a", "--timeout", "soon"}, "write 500ms, 15s, 2min or 1h"},
      {{"get", "a", "--timeout", "1s", "--timeout", "2s"}, "--timeout"},
      {{}, "a command is missing"},
  };
  for (const auto& [arguments, text] : cases) {
    const Said said = musterctl(arguments);
    CAPTURE(said.errors);
    CHECK(said.exit_code == 2);
    CHECK(said.errors.find(text) != std::string::npos);
  }
}

TEST_CASE("a variable that nothing reads is told on the standard error") {
  const Musterctl musterctl;
  Process::Options options = musterctl.call({"ls"});
  options.environment["MUSTER_NAMESPCE"] = "job7";
  options.environment["MUSTER_GRACE"] = "2s";           // of musterd
  options.environment["MUSTER_STORE"] = "127.0.0.1:1";  // of muster-runtime, in a rank
  Process process(options);
  const std::string errors = process.read_errors();
  CHECK(errors.find("MUSTER_NAMESPCE; did you mean \"MUSTER_NAMESPACE\"?") != std::string::npos);
  CHECK(errors.find("MUSTER_GRACE") == std::string::npos);
  CHECK(errors.find("MUSTER_STORE") == std::string::npos);
  CHECK(process.wait().exit_code == 0);
}

TEST_CASE("times have units, and a number alone is seconds") {
  const Musterctl musterctl;
  CHECK(musterctl({"set", "n", "x", "--ttl", "2h", "--timeout", "5"}).exit_code == 0);
  const Json listed = Json::parse(musterctl({"--json", "ls"}).output);
  CHECK(listed[0]["ttl_s"].get<double>() > 7000);
  CHECK(musterctl({"set", "n", "x", "--ttl", "1.5min"}).exit_code == 0);
  CHECK(musterctl({"ls"}).output.starts_with("1\t1 min 2"));
  CHECK(musterctl({"--timeout", "100000h", "get", "n"}).exit_code == 0);
}

TEST_CASE("keys and values of any bytes stay on their line, and are exact in JSON") {
  const Musterctl musterctl;
  const std::string bad_key = "a\n\x1b[31m\xff";
  CHECK(musterctl({"set", bad_key, "\xfe"}).exit_code == 0);
  CHECK(musterctl({"set", "\u00fc", "x"}).exit_code == 0);
  CHECK(musterctl({"ls"}).output == "1\t-\t-\ta\\x0a\\x1b[31m\\xff\n1\t-\t-\t\u00fc\n");
  CHECK(musterctl({"get", bad_key}).output == "\xfe");
  CHECK(Json::parse(musterctl({"--json", "get", bad_key}).output)["value_base64"] == "/g==");
  const Json listed = Json::parse(musterctl({"--json", "ls"}).output);
  CHECK(listed[0]["key_base64"] == "YQobWzMxbf8=");
  CHECK(listed[1]["key"] == "\u00fc");
  CHECK_FALSE(listed[1].contains("key_base64"));
}

TEST_CASE("nothing that a terminal obeys is printed of other processes' names, in JSON either") {
  const Musterctl musterctl;
  const std::string label = "a\u009b\u2028\u202e\u2066\x7f";
  muster::StoreOptions options;
  options.label = label;
  auto store = muster::Store::connect(musterctl.address(), options).value();
  const Said text = musterctl({"sessions"});
  CHECK(text.output.find("a\\u009b\\u2028\\u202e\\u2066\\x7f") != std::string::npos);
  const Said json = musterctl({"--json", "sessions"});
  CHECK(json.output.find("a\\u009b\\u2028\\u202e\\u2066\\u007f") != std::string::npos);
  const Json sessions = Json::parse(json.output);
  CHECK(std::any_of(sessions.begin(), sessions.end(),
                    [&](const Json& session) { return session["label"] == label; }));
}

TEST_CASE("with --json every outcome is one document") {
  const Musterctl musterctl;
  const auto document = [&](std::vector<std::string> arguments, int exit_code) {
    arguments.insert(arguments.begin(), "--json");
    const Said said = musterctl(arguments);
    CHECK(said.exit_code == exit_code);
    return Json::parse(said.output);
  };
  CHECK(document({"set", "a", "1"}, 0)["applied"] == true);
  CHECK(document({"set", "a", "2", "--only-if-absent"}, 1)["applied"] == false);
  CHECK(document({"get", "a"}, 0)["value"] == "1");
  CHECK(document({"add", "a"}, 0)["value"] == 2);
  CHECK(document({"wait", "a"}, 0)["present"] == 1);
  CHECK(document({"rm", "a", "b"}, 3)["removed"] == 1);
  CHECK(document({"get", "a"}, 3)["error"]["code"] == "not_found");
  CHECK(document({"wait", "a", "--timeout", "2s"}, 3)["error"]["code"] == "timed_out");
  CHECK(document({"why", "a"}, 3)["error"]["code"] == "not_found");
  CHECK(document({"get", ""}, 2)["error"]["code"] == "invalid_argument");
  CHECK(document({"--server", "unix:/nowhere", "--timeout", "10ms", "ls"}, 4)["error"]["code"] ==
        "unavailable");
  for (const char* list : {"ls", "groups", "waiters"}) CHECK(document({list}, 0).empty());
  CHECK(document({"--namespace", "never used", "ls"}, 0).empty());
  CHECK(document({"sessions"}, 0).size() == 1);
}

TEST_CASE("a value comes from the standard input, whole or with an error") {
  const Musterctl musterctl;
  const auto shell = [&](const std::string& script) {
    Process::Options options = musterctl.call({});
    options.command = {"/bin/sh", "-c", script, options.command[0]};
    Process process(options);
    return process.wait().exit_code;
  };
  CHECK(shell("printf 'a\\000b' | \"$0\" set n -") == 0);
  CHECK(musterctl({"get", "n"}).output == std::string("a\0b", 3));
  CHECK(shell("\"$0\" set closed - <&-") == 1);
  CHECK(shell("\"$0\" set folder - < /") == 1);
  CHECK(shell("head -c 17000000 /dev/zero | \"$0\" set large -") == 1);
  CHECK(shell("\"$0\" status > /dev/full") == 1);
  CHECK(shell("\"$0\" status >&-") == 1);
  CHECK(shell("\"$0\" --help > /dev/full") == 1);
  CHECK(shell("\"$0\" --watch status >&-") == 1);
  CHECK(musterctl({"ls"}).output == "3\t-\t-\tn\n");
}

TEST_CASE("what the server refuses ends with 1") {
  const Musterctl musterctl;
  CHECK(musterctl({"set", std::string(1025, 'k'), "x"}).exit_code == 1);
  CHECK(musterctl({"set", "n", "x"}).exit_code == 0);
  CHECK(musterctl({"add", "n", "1"}).exit_code == 1);
}

}  // namespace
