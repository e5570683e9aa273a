#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "muster/inspect.h"
#include "musterctl.h"
#include "support/ranks.h"

// Operators find the namespaces that jobs have left behind, and drop them.

namespace muster::test {
namespace {

using NamespacesJson = nlohmann::json;

StoreOptions in(std::string name_space, Role role = Role::client) {
  StoreOptions options;
  options.name_space = std::move(name_space);
  options.role = role;
  return options;
}

/// That of a name in a list of `musterctl --json namespaces`; null: it is not there.
NamespacesJson entry_of(const NamespacesJson& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const NamespacesJson& entry) {
    return entry["namespace"] == name;
  });
  return found == list.end() ? NamespacesJson() : *found;
}

TEST_CASE("an address that has left 256 namespaces with keys makes others when some are dropped") {
  constexpr int limit = 256;
  const Musterctl musterctl;
  const std::string& address = musterctl.address();
  const auto io_thread = IoThread::create("jobs");
  for (int job = 0; job < limit; ++job) {
    StoreOptions options = in("job" + std::to_string(job));
    options.io_thread = io_thread;
    must(connect(address, options).set("k", "v"));
  }
  CHECK(must_fail(Store::connect(address, in("one more"), 300ms)).code == ErrorCode::busy);
  CHECK(musterctl({"-n", "one more", "-t", "300ms", "ls"}).exit_code == 1);

  // The default one has its place, so that an operator gets in.
  const auto list = NamespacesJson::parse(musterctl({"--json", "namespaces"}).output);
  CHECK(list.size() == limit + 1);
  const NamespacesJson left = entry_of(list, "job7");
  CHECK(left["keys"] == 1);
  CHECK(left["sessions"] == 0);
  CHECK(left["groups"] == 0);
  CHECK(left["memory_bytes"] > 0);
  CHECK(left["made_by"] == "127.0.0.1");
  CHECK(left["idle_s"].is_number());
  const NamespacesJson own = entry_of(list, "");
  CHECK(own["sessions"] == 1);
  CHECK(own["idle_s"].is_null());
  CHECK(own["made_by"].is_null());

  const Said dropped = musterctl({"namespaces", "--drop", "job7", "job8"});
  CHECK(dropped.exit_code == 0);
  CHECK(dropped.output == "job7: 1 key was removed\njob8: 1 key was removed\n");
  must(connect(address, in("one more")).set("k", "v"));
  auto again = connect(address, in("job7"));
  CHECK_FALSE(must(again.exists("k")));
  CHECK(must_fail(Store::connect(address, in("one too many"), 300ms)).code == ErrorCode::busy);
}

TEST_CASE("a namespace that somebody is in is not dropped, and the operator is told who that is") {
  const Musterctl musterctl;
  const std::string& address = musterctl.address();
  StoreOptions options = in("job7");
  options.label = "trainer-0";
  std::optional<Store> store = connect(address, options);
  must(store->set("k", "v"));
  std::optional<StatelessProcessGroup> group = join(*store, "g", 0, 1);
  const Said refused = musterctl({"namespaces", "--drop", "job7", "never"});
  CHECK(refused.exit_code == 1);
  CHECK(refused.output.empty());
  for (const char* const part : {"'job7' is in use by 1 session", "(trainer-0)", "1 group;",
                                 "there is no namespace 'never'"}) {
    CAPTURE(refused.errors);
    CHECK(refused.errors.find(part) != std::string::npos);
  }
  const std::string text = musterctl({"namespaces"}).output;
  CHECK(text.starts_with("NAMESPACE"));
  CHECK(text.find("\njob7") != std::string::npos);

  group.reset();
  store.reset();
  const auto told = NamespacesJson::parse(
      musterctl({"--json", "namespaces", "--drop", "never", "--drop", "job7"}).output);
  CHECK(told[0]["error"]["code"] == "not_found");
  CHECK(told[1]["removed"] == 1);
  CHECK(musterctl({"namespaces", "--drop", "job7"}).exit_code == 3);
  CHECK(NamespacesJson::parse(musterctl({"--json", "namespaces"}).output).size() == 1);
}

TEST_CASE("the default namespace is dropped from another one, and no watch drops anything") {
  const Musterctl musterctl;
  CHECK(musterctl({"set", "k", "v"}).exit_code == 0);
  CHECK(musterctl({"namespaces", "--drop", ""}).exit_code == 2);
  CHECK(musterctl({"namespaces", "--drop", std::string(65, 'n')}).exit_code == 2);
  CHECK(musterctl({"namespaces", "--drop"}).exit_code == 2);
  CHECK(musterctl({"--watch", "namespaces", "--drop", "job7"}).exit_code == 2);
  const Said dropped = musterctl({"-n", "ops", "namespaces", "--drop", ""});
  CHECK(dropped.output == "\"\": 1 key was removed\n");
  CHECK(musterctl({"ls"}).output.empty());
}

TEST_CASE("programs list and drop namespaces as musterctl does") {
  auto server = start_server();
  auto supervisor = connect(server, in("ops", Role::supervisor));
  {
    auto job = connect(server, in("job7"));
    must(job.multi_set({{"a", "1"}, {"b", "2"}}));
  }
  await([&] { return held_count(supervisor, "sessions") == 1; });
  const auto listed = must(inspect_namespaces(supervisor));
  REQUIRE(listed.size() == 2);
  CHECK(listed[0].name == "job7");
  CHECK(listed[0].keys == 2);
  CHECK(listed[0].idle.has_value());
  CHECK(listed[1].name == "ops");
  CHECK(listed[1].sessions == 1);
  CHECK_FALSE(listed[1].idle.has_value());
  CHECK(must_fail(supervisor.drop_namespace("ops")).code == ErrorCode::invalid_argument);
  CHECK(must_fail(supervisor.drop_namespace("never")).code == ErrorCode::not_found);
  CHECK(must(supervisor.drop_namespace("job7")) == 2);
  CHECK(must(inspect_namespaces(supervisor)).size() == 1);
  for (const Role role : {Role::client, Role::observer}) {
    auto other = connect(server, in("", role));
    CHECK(must_fail(other.drop_namespace("ops")).code == ErrorCode::permission_denied);
    CHECK(must(inspect_namespaces(other)).size() == 2);
  }
}

}  // namespace
}  // namespace muster::test
