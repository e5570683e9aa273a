#include "muster/operate.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "muster/inspect.h"
#include "musterctl.h"
#include "support/await.h"
#include "support/ranks.h"
#include "support/temporary_folder.h"

// What operators change by musterctl: settings, the end of sessions, the server's end; and keys
// that they take along.

namespace muster::test {
namespace {

using OperateJson = nlohmann::json;

StoreOptions at_namespace(std::string name_space) {
  StoreOptions options;
  options.name_space = std::move(name_space);
  return options;
}

TEST_CASE("musterctl config shows settings, changes them, and says what needs a restart") {
  const Musterctl musterctl;
  const Said all = musterctl({"config", "get"});
  CHECK(all.exit_code == 0);
  CHECK(all.output.find("memory-bytes-max") != std::string::npos);
  CHECK(musterctl({"config", "get", "heartbeat"}).output == "1s\n");
  CHECK(musterctl({"config", "get", "busy-poll"}).output == "0s\n");
  CHECK(musterctl({"config", "get", "listen-backlog"}).output == "4096\n");
  CHECK(musterctl({"config", "get", "tcpstore-idle-lifetime"}).output == "0s\n");
  CHECK(musterctl({"config", "get", "tcpstore-memory-bytes-max"}).output == "268435456\n");
  const Said not_told = musterctl({"config", "get", "log-format"});
  CHECK(not_told.exit_code == 2);
  CHECK(not_told.errors.find("MUSTER_LOG_FORMAT") != std::string::npos);
  CHECK(musterctl({"config", "set", "memory-bytes-max", "2GiB"}).exit_code == 0);
  CHECK(musterctl({"config", "get", "memory-bytes-max"}).output == "2147483648\n");
  CHECK(musterctl({"config", "set", "log-level", "warning"}).exit_code == 0);
  CHECK(musterctl({"config", "get", "log-level"}).output == "warning\n");
  const auto slow =
      OperateJson::parse(musterctl({"--json", "config", "set", "slow-round-log", "1500ms"}).output);
  CHECK(slow["value"] == 1.5);
  CHECK(slow["before"] == 10.0);
  CHECK(slow["kind"] == "duration");
  CHECK(slow["least"] == 0.1);
  CHECK(slow["most"] == 3600.0);

  const auto error_of = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> with_json = {"--json"};
    with_json.insert(with_json.end(), arguments.begin(), arguments.end());
    return OperateJson::parse(musterctl(with_json).output)["error"]["code"];
  };
  CHECK(error_of({"config", "set", "heartbeat", "2s"}) == "invalid_argument");
  CHECK(error_of({"config", "set", "busy-poll", "1ms"}) == "invalid_argument");
  CHECK(error_of({"config", "set", "listen", "127.0.0.1:1"}) == "invalid_argument");
  CHECK(error_of({"config", "set", "nothing", "1"}) == "not_found");
  CHECK(error_of({"config", "set", "parked-waits-max", "0"}) == "invalid_argument");
  CHECK(error_of({"config", "set", "parked-waits-max", "many"}) == "invalid_argument");
  CHECK(musterctl({"config", "set", "parked-waits-max", "many"}).exit_code == 2);

  // A limit below what is used.
  Store store = connect(musterctl.address());
  must(store.set("long", std::string(2U << 20, 'x')));
  const Said lowered = musterctl({"config", "set", "memory-bytes-max", "1MiB"});
  CHECK(lowered.exit_code == 0);
  CHECK(lowered.output.find("in use: ") != std::string::npos);
  CHECK(must_fail(store.set("more", "x")).code == ErrorCode::resource_exhausted);
  CHECK(must(store.get("long")).size() == 2U << 20);
}

TEST_CASE("musterctl kill ends a session, or a process, and its client is told") {
  const Musterctl musterctl;
  Store store = connect(musterctl.address());
  must(store.set("k", "v"));
  const auto sessions = OperateJson::parse(musterctl({"--json", "sessions"}).output);
  const auto own = std::find_if(sessions.begin(), sessions.end(), [](const OperateJson& each) {
    return each["label"] != "musterctl";
  });
  REQUIRE(own != sessions.end());
  const std::string number = std::to_string((*own)["session"].get<int>());
  CHECK(musterctl({"kill", number, "it holds the lock"}).exit_code == 0);
  const Error why = must_fail(store.set("k", "v"));
  CHECK(why.code == ErrorCode::fenced);
  CHECK(why.detail.find("it holds the lock") != std::string::npos);
  CHECK(musterctl({"kill", number}).exit_code == 3);
  CHECK(musterctl({"kill", "nobody"}).exit_code == 2);

  must(store.reopen());
  const std::string process = (*own)["process"];
  CHECK(OperateJson::parse(musterctl({"--json", "kill", process}).output)["ended"] == 1);
  CHECK(must_fail(store.set("k", "v")).code == ErrorCode::fenced);
}

TEST_CASE("musterctl events tells of a rank that was ended who did and why") {
  const Musterctl musterctl;
  Store store = connect(musterctl.address());
  const auto group = join(store, "g", 0, 1);
  const auto sessions = OperateJson::parse(musterctl({"--json", "sessions"}).output);
  const auto own = std::find_if(sessions.begin(), sessions.end(), [](const OperateJson& each) {
    return each["label"] != "musterctl";
  });
  REQUIRE(own != sessions.end());
  const std::string process = (*own)["process"];
  CHECK(musterctl({"kill", process, "it holds\nthe lock"}).exit_code == 0);
  const auto events = OperateJson::parse(musterctl({"--json", "events", "g"}).output)["events"];
  const auto lost = std::find_if(events.begin(), events.end(), [](const OperateJson& each) {
    return each["what"] == "rank_lost";
  });
  REQUIRE(lost != events.end());
  const OperateJson& error = (*lost)["error"];
  CHECK(error["cause"] == "reported");
  CHECK(error["detail"] == "ended by an operator: 'it holds\\x0athe lock'");
  CHECK(error["decided_by"].get<std::string>().ends_with("(musterctl)"));
  const std::string told = musterctl({"events", "g"}).output;
  CHECK(told.find("(musterctl)") != std::string::npos);
  CHECK(told.find("ended by an operator: 'it holds\\x0athe lock'") != std::string::npos);
}

TEST_CASE("musterctl drain keeps newcomers out, and --cancel lets them in again") {
  const Musterctl musterctl;
  Store store = connect(musterctl.address());
  const auto drained = OperateJson::parse(musterctl({"--json", "drain", "an update"}).output);
  CHECK(drained["sessions"] == 1);
  const Error why = must_fail(Store::connect(musterctl.address(), {}, 300ms));
  CHECK(why.code == ErrorCode::unavailable);
  CHECK(why.detail.find("an update") != std::string::npos);
  must(store.set("k", "v"));
  CHECK(musterctl({"drain", "--cancel"}).exit_code == 0);
  must(connect(musterctl.address()).set("k", "v"));
  CHECK(musterctl({"drain", "--cancel"}).exit_code == 3);
  CHECK(musterctl({"drain", "--cancel", "--for", "1s"}).exit_code == 2);
}

TEST_CASE("an export has every key but those of sessions, and an import sets them as they were") {
  const Musterctl musterctl;
  const TemporaryFolder folder;
  Store from = connect(musterctl.address(), at_namespace("from"));
  const std::string bytes("\0\xff\"\\\n\x7f", 6);
  std::map<std::string, std::string> keys = {
      {bytes, bytes}, {"text/\"quoted\" \u00e9\u202e", "\u2028"}, {"empty", ""}};
  for (int index = 0; index < 5000; ++index) {
    keys["many/" + std::to_string(index)] = std::string(static_cast<std::size_t>(index % 300), 'x');
  }
  for (const auto& [key, value] : keys) must(from.set(key, value));
  SetOptions with_ttl;
  with_ttl.ttl = 1h;
  must(from.set("short", "lived", with_ttl));
  SetOptions bound;
  bound.bind_to_session = true;
  must(from.set("bound", "to me", bound));

  const std::string path = folder / "keys.jsonl";
  const auto written =
      OperateJson::parse(musterctl({"-n", "from", "--json", "export", "--output", path}).output);
  CHECK(written["written"] == keys.size() + 1);
  CHECK(written["bound"] == 1);
  const Said to_stdout = musterctl({"-n", "from", "export", "many/1"});
  CHECK(std::count(to_stdout.output.begin(), to_stdout.output.end(), '\n') == 1111);

  Store to = connect(musterctl.address(), at_namespace("to"));
  must(to.set("empty", "not now"));
  const auto set =
      OperateJson::parse(musterctl({"-n", "to", "--json", "import", "--if-absent", path}).output);
  CHECK(set["set"] == keys.size());
  CHECK(set["there"] == 1);
  CHECK(must(to.get("empty")) == "not now");
  CHECK(musterctl({"-n", "to", "import", path}).exit_code == 0);
  for (const auto& [key, value] : keys) {
    if (must(to.get(key)) != value) FAIL_CHECK("another value of " << key);
  }
  CHECK(must_fail(to.get("bound", 0s)).code == ErrorCode::not_found);
  std::vector<KeyInfo> listed;
  std::uint64_t cursor = 0;
  do {
    const KeyPage page = must(to.list("short", cursor));
    listed.insert(listed.end(), page.keys.begin(), page.keys.end());
    cursor = page.cursor;
  } while (cursor != 0);
  REQUIRE(listed.size() == 1);
  REQUIRE(listed[0].ttl.has_value());
  CHECK(*listed[0].ttl > 50min);
  CHECK(*listed[0].ttl <= 1h);
}

TEST_CASE("an export has every key of a server that has no memory left") {
  const Musterctl musterctl;
  CHECK(musterctl({"config", "set", "memory-bytes-max", "2MiB"}).exit_code == 0);
  Store store = connect(musterctl.address());
  std::size_t written_count = 0;
  for (std::size_t value_bytes = 100'000; value_bytes >= 1000; value_bytes /= 10) {
    const std::string value(value_bytes, 'x');
    const auto write = [&] { return store.set("key/" + std::to_string(written_count), value); };
    auto written = write();
    for (; written.has_value(); written = write()) ++written_count;
    CHECK(written.error().code == ErrorCode::resource_exhausted);
    CHECK(written.error().detail.find("musterctl config set") != std::string::npos);
  }
  const Said said = musterctl({"export"});
  CHECK(said.exit_code == 0);
  CHECK(static_cast<std::size_t>(std::count(said.output.begin(), said.output.end(), '\n')) ==
        written_count);
}

TEST_CASE("events and an export of a namespace that is not there are a mistake, not empty") {
  const Musterctl musterctl;
  const TemporaryFolder folder;
  const std::string path = folder / "keys.jsonl";
  std::ofstream(path) << "of yesterday\n";
  const std::string said = "musterctl: there is no namespace \"jbo\\\"7\" at " +
                           musterctl.address() +
                           ": musterctl namespaces lists those that there are\n";
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"events"}, {"events", "trainer"}, {"export"}, {"export", "a/", "--output", path}}) {
    std::vector<std::string> arguments = {"-n", "jbo\"7"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    const Said told = musterctl(arguments);
    CHECK(told.exit_code == 3);
    CHECK(told.errors == said);
    CHECK(told.output.empty());
    arguments.insert(arguments.begin(), "--json");
    if (command != std::vector<std::string>{"export"}) {
      CHECK(OperateJson::parse(musterctl(arguments).output)["error"]["code"] == "not_found");
    }
  }
  std::string kept;
  std::getline(std::ifstream(path), kept);
  CHECK(kept == "of yesterday");
  CHECK(musterctl({"events"}).exit_code == 0);  // the default one is always there
  CHECK(musterctl({"export"}).exit_code == 0);

  const auto expect = [&](const char* name_space) {
    CAPTURE(name_space);
    CHECK(musterctl({"-n", name_space, "events"}).exit_code == 0);
    CHECK(musterctl({"-n", name_space, "events", "never"}).exit_code == 0);
    CHECK(musterctl({"-n", name_space, "export", "--output", path}).exit_code == 0);
  };
  const Store empty = connect(musterctl.address(), at_namespace("empty"));
  expect("empty");
  must(connect(musterctl.address(), at_namespace("keys")).set("k", "v"));
  expect("keys");
  must(connect(musterctl.address(), at_namespace("queue")).queue_push("q", "item"));
  expect("queue");
  {
    Store store = connect(musterctl.address(), at_namespace("over"));
    const auto group = join(store, "g", 0, 1);
  }
  await([&] {
    const auto list = OperateJson::parse(musterctl({"--json", "namespaces"}).output);
    return std::none_of(list.begin(), list.end(),
                        [](const auto& each) { return each["namespace"] == "over"; });
  });
  expect("over");
}

TEST_CASE("an import stops at the line that is none, and says which") {
  const Musterctl musterctl;
  const TemporaryFolder folder;
  for (const std::string line :
       {"{\"key\":\"k\"}", "[]", "{\"key\":1,\"value\":\"v\"}", "{\"key_base64\":\"a\"}",
        "{\"key\":\"k\",\"value\":\"v\",\"ttl_s\":-1}", "nothing"}) {
    CAPTURE(line);
    const std::string path = folder / "keys.jsonl";
    std::ofstream(path) << "{\"key\":\"first\",\"value\":\"v\"}\n\n" << line << "\n";
    const Said said = musterctl({"import", path});
    CHECK(said.exit_code == 1);
    CHECK(said.errors.find(path + ":3: ") != std::string::npos);
  }
  CHECK(musterctl({"get", "first"}).output == "v");
  CHECK(musterctl({"import", folder / "absent"}).exit_code == 1);
  CHECK(musterctl({"--json", "export"}).exit_code == 2);
}

}  // namespace
}  // namespace muster::test
