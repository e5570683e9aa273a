#include <nlohmann/json.hpp>

#include "muster/inspect.h"
#include "musterctl.h"
#include "support/ranks.h"
#include "support/raw_client.h"
#include "support/tcpstore_bytes.h"

// A hang made on purpose in each kind of call, and what `musterctl why` says of it meanwhile.

namespace muster::test {
namespace {

using Json = nlohmann::json;
using Group = StatelessProcessGroup;

StoreOptions labelled(int rank) {
  StoreOptions options;
  options.label = "pod-" + std::to_string(rank);
  return options;
}

/// Three ranks of group "g", and what an operator sees of them.
struct Hang {
  Musterctl musterctl;
  std::vector<Store> stores;
  std::vector<Group> groups;

  Hang() {
    for (int rank = 0; rank < 3; ++rank)
      stores.push_back(connect(musterctl.address(), labelled(rank)));
  }

  /// As soon as `holds(document)`.
  template <class Holds>
  Json why(Holds holds) {
    Json document;
    await([&] {
      const Said said = musterctl({"--json", "why", "g"});
      if (said.exit_code != 0) return false;
      document = Json::parse(said.output);
      return holds(document);
    });
    return document;
  }

  void form() {
    std::vector<std::promise<Result<Group>>> joined(3);
    for (int rank = 0; rank < 3; ++rank) {
      Group::create_async(stores[static_cast<std::size_t>(rank)], "g", rank, 3, patience(),
                          [&, rank](Result<Group> group) {
                            joined[static_cast<std::size_t>(rank)].set_value(std::move(group));
                          });
    }
    for (auto& each : joined) groups.push_back(must(each.get_future().get()));
  }
};

bool has_round(const Json& document) { return document.contains("round"); }

TEST_CASE("a join that waits: who is there and who has never come") {
  Hang hang;
  std::promise<Result<Group>> joined;
  Group::create_async(hang.stores[1], "g", 1, 3, patience(),
                      [&](Result<Group> group) { joined.set_value(std::move(group)); });
  const Json document = hang.why([](const Json&) { return true; });
  CHECK(document["state"] == "forming");
  CHECK(document["world_size"] == 3);
  CHECK(document["missing"] == Json::array({0, 2}));
  REQUIRE(document["members"].size() == 1);
  CHECK(document["members"][0]["rank"] == 1);
  CHECK(document["members"][0]["label"] == "pod-1");
  CHECK(document["members"][0]["pid"] == ::getpid());
  hang.stores[1].cancel();
  joined.get_future().wait();
}

TEST_CASE("a barrier and an all_gather that wait: in which round, for whom, since when") {
  Hang hang;
  hang.form();
  std::promise<Result<BarrierResult>> passed;
  hang.groups[2].barrier_async(20s, [&](auto result) { passed.set_value(std::move(result)); });
  Json document = hang.why(has_round);
  CHECK(document["state"] == "formed");
  CHECK(document["waits"] == true);
  CHECK(document["round"]["number"] == 1);
  CHECK(document["round"]["call"] == "barrier");
  CHECK(document["round"]["called"] == Json::array({2}));
  CHECK(document["round"]["missing"] == Json::array({0, 1}));
  CHECK(document["members"][0]["label"] == "pod-0");
  hang.groups[2].cancel();
  CHECK(must_fail(passed.get_future().get()).code == ErrorCode::cancelled);

  document = hang.why([](const Json& found) { return !has_round(found); });
  CHECK(document["last_failure"]["code"] == "cancelled");
  CHECK(document["last_failure"]["ranks"][0]["rank"] == 2);

  std::promise<Result<std::vector<std::string>>> gathered;
  for (const std::size_t rank : {0U, 1U}) {  // those who came late are told of the cancelled round
    CHECK(must_fail(hang.groups[rank].barrier()).code == ErrorCode::cancelled);
  }
  hang.groups[0].all_gather_bytes_async(
      "x", 1, 20s, [&](auto result) { gathered.set_value(std::move(result)); });
  document = hang.why(has_round);
  CHECK(document["round"]["number"] == 2);
  CHECK(document["round"]["call"] == "all_gather codec=1");
  CHECK(document["round"]["called"] == Json::array({0}));
  CHECK(document["round"]["missing"] == Json::array({1, 2}));
  hang.groups[0].cancel();
  gathered.get_future().wait();
}

TEST_CASE("ranks that called different things are told of after they were") {
  Hang hang;
  hang.form();
  std::promise<Result<BarrierResult>> passed;
  hang.groups[0].barrier_async(20s, [&](auto result) { passed.set_value(std::move(result)); });
  CHECK(must_fail(hang.groups[1].all_gather_bytes("x", 1, 20s)).code ==
        ErrorCode::collective_mismatch);
  CHECK(must_fail(passed.get_future().get()).code == ErrorCode::collective_mismatch);
  const Json document = hang.why([](const Json& found) { return found.contains("last_failure"); });
  const Json& failure = document["last_failure"];
  CHECK(failure["code"] == "collective_mismatch");
  CHECK(failure["ranks"][0]["called"] == "barrier");
  CHECK(failure["ranks"][1]["called"] == "all_gather codec=1");
  CHECK(failure["ranks_at_fault"] == Json::array({0, 1}));
  const std::string text = hang.musterctl({"why", "g"}).output;
  CHECK(text.find("barrier: called by rank 0\n") != std::string::npos);
  CHECK(text.find("all_gather codec=1: called by rank 1\n") != std::string::npos);
}

TEST_CASE("objects on their way are listed as keys are") {
  Hang hang;
  hang.form();
  must(hang.groups[0].send_bytes(Rank{1}, codec_id::raw, "12345", Tag{7}));
  const auto objects = must(inspect_objects(hang.stores[0], "group/g/"));
  REQUIRE(objects.size() == 1);
  CHECK(objects[0].value_bytes == 5);
  CHECK(objects[0].key.starts_with("group/g/epoch/"));
  CHECK(objects[0].key.ends_with("/stream/0-1/tag/7/0"));
  CHECK(must(inspect_objects(hang.stores[0], "group/h/")).empty());
  const Json listed = Json::parse(hang.musterctl({"--json", "ls", "--objects"}).output);
  REQUIRE(listed.size() == 1);
  CHECK(listed[0]["key"] == objects[0].key);
  CHECK(listed[0]["value_bytes"] == 5);
  CHECK(hang.musterctl({"ls", "--objects", "group/h"}).output.empty());
  CHECK(hang.musterctl({"ls"}).output.empty());
}

TEST_CASE("without a group everything that waits is explained, and what does not is left out") {
  Hang hang;
  hang.form();
  CHECK(hang.musterctl({"why"}).output.find("nobody waits") != std::string::npos);
  std::promise<Result<std::string>> got;
  hang.stores[0].get_async("absent", 20s, [&](auto result) { got.set_value(std::move(result)); });
  std::promise<Result<Group>> joined;
  Group::create_async(hang.stores[1], "h", 0, 2, patience(),
                      [&](Result<Group> group) { joined.set_value(std::move(group)); });
  Json document;
  await([&] {
    document = Json::parse(hang.musterctl({"--json", "why"}).output);
    return document["groups"].size() == 1 && document["waiters"].size() == 1;
  });
  CHECK(document["groups"][0]["group"] == "h");
  CHECK(document["groups"][0]["waits"] == true);
  CHECK(document["waiters"][0]["target"] == "'absent'");
  const std::string text = hang.musterctl({"why"}).output;
  CHECK(text.find("group \"h\": forms") != std::string::npos);
  CHECK(text.find("in get: 'absent'") != std::string::npos);
  CHECK(text.find("group \"g\"") == std::string::npos);
  for (Store& store : hang.stores) store.cancel();
  got.get_future().wait();
  joined.get_future().wait();
}

TEST_CASE("namespaces in which somebody waits are named from others") {
  Hang hang;
  StoreOptions options;
  options.name_space = "job7";
  Store other = connect(hang.musterctl.address(), options);
  std::promise<Result<std::string>> got;
  other.get_async("absent", 20s, [&](auto result) { got.set_value(std::move(result)); });
  Json document;
  await([&] {
    document = Json::parse(hang.musterctl({"--json", "why"}).output);
    return document["other_namespaces_waiting_count"] == 1;
  });
  CHECK(document["other_namespaces_waiting"] == "'job7'");
  CHECK(document["waiters"].empty());
  document = Json::parse(hang.musterctl({"--json", "--namespace", "job7", "why"}).output);
  CHECK(document["other_namespaces_waiting_count"] == 0);
  CHECK(document["waiters"].size() == 1);
  other.cancel();
  got.get_future().wait();
}

TEST_CASE("clients of TCPStore whose requests were refused, in their namespace alone") {
  const Musterctl musterctl;
  ServerOptions options;
  options.value_bytes_max = 1024;
  options.tcpstore = {{"127.0.0.1:0", "job"}};
  const Server server = Server::start(options).value();
  RawClient client("127.0.0.1:" + std::to_string(server.tcpstore_ports().front()));
  client.send(tcpstore::validate + tcpstore::set("/weights", std::string(1025, 'v')));
  CHECK(client.receive(1).empty());
  const auto why = [&](const std::string& name_space) {
    return musterctl({"--server", server.addresses().front(), "--namespace", name_space, "why"});
  };
  CHECK(why("job").output.find("a value of SET") != std::string::npos);
  CHECK(why("job").output.find("127.0.0.1:") != std::string::npos);
  CHECK(why("other").output.find("a value of SET") == std::string::npos);
}

TEST_CASE("a join that was refused is the first line") {
  Hang hang;
  std::promise<Result<Group>> joined;
  Group::create_async(hang.stores[0], "g", 0, 2, patience(),
                      [&](Result<Group> group) { joined.set_value(std::move(group)); });
  hang.why([](const Json& document) { return !document["members"].empty(); });
  const auto refused = Group::create(hang.stores[1], "g", 1, 3, patience());
  CHECK(must_fail(refused).code == ErrorCode::group_mismatch);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"why", "g"}, std::vector<std::string>{"why"}}) {
    const std::string text = hang.musterctl(command).output;
    const std::string first = text.substr(0, text.find('\n'));
    CHECK_MESSAGE(first.find("join_refused") != first.npos, text);
    CHECK_MESSAGE(first.find("pod-1") != first.npos, text);
  }
  hang.stores[0].cancel();
  joined.get_future().wait();
}

TEST_CASE("for a name that is no group the groups are named, and who waits for such a key") {
  Hang hang;
  hang.form();
  std::promise<Result<std::string>> got;
  hang.stores[0].get_async("k/1", 20s, [&](auto result) { got.set_value(std::move(result)); });
  Json document;
  await([&] {
    const Said said = hang.musterctl({"--json", "why", "k"});
    CHECK(said.exit_code == 3);
    document = Json::parse(said.output);
    return document["waiters"].size() == 1;
  });
  CHECK(document["groups"] == Json::array({"g"}));
  CHECK(document["error"]["code"] == "not_found");
  const Said said = hang.musterctl({"why", "k"});
  CHECK(said.errors.find("there: \"g\"") != std::string::npos);
  CHECK(said.errors.find("1 call waits for keys") != std::string::npos);
  CHECK(said.errors.find("musterctl events") == std::string::npos);
  hang.stores[0].cancel();
  got.get_future().wait();
}

TEST_CASE("of a group that is over, it is told where to ask what happened to it") {
  Hang hang;
  hang.form();
  hang.groups.clear();
  Said said;
  await([&] {
    said = hang.musterctl({"why", "g"});
    return said.exit_code == 3;
  });
  CHECK(said.errors.find("no group is there") != std::string::npos);
  CHECK(said.errors.find("it was there: musterctl events \"g\"") != std::string::npos);
}

TEST_CASE("a receive that waits: for whose object") {
  Hang hang;
  hang.form();
  std::promise<Result<ReceivedBytes>> received;
  hang.groups[1].recv_bytes_async(Rank{2}, 1, Tag{7}, 20s,
                                  [&](auto result) { received.set_value(std::move(result)); });
  const Json document = hang.why([](const Json& found) { return !found["receivers"].empty(); });
  CHECK(document["receivers"][0]["rank"] == 1);
  CHECK(document["receivers"][0]["source"] == 2);
  CHECK(document["receivers"][0]["tag"] == 7);
  hang.groups[1].cancel();
  received.get_future().wait();
}

TEST_CASE("who waits for work hangs nobody, however long; who waits for a rank does") {
  Hang hang;
  hang.form();
  std::promise<Result<ReceivedBytes>> received;
  std::promise<Result<std::string>> got;
  hang.groups[1].recv_bytes_async(Rank{2}, 1, Tag{7}, 20s,
                                  [&](auto result) { received.set_value(std::move(result)); });
  hang.stores[0].get_async("job", 20s, [&](auto result) { got.set_value(std::move(result)); });
  await([&] { return Json::parse(hang.musterctl({"--json", "waiters"}).output).size() == 2; });
  const auto ask = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--json", "why"});
    return Json::parse(hang.musterctl(arguments).output);
  };
  CHECK(ask({"g"})["waits"] == true);
  CHECK(ask({"g", "--hung-for", "1us"})["hangs"] == false);
  CHECK(ask({"--hung-for", "1us"})["hangs"] == false);
  CHECK(ask({})["hangs"] == false);
  CHECK(hang.musterctl({"why", "--hung-for", "1us"}).output.starts_with("nobody is held up"));
  hang.groups[0].barrier_async(20s, [](auto) {});
  const Json held_up = hang.why(has_round);
  CHECK(held_up["hangs"] == false);  // not for ten seconds yet
  CHECK(held_up.contains("held_up_s"));
  CHECK(ask({"g", "--hung-for", "1us"})["hangs"] == true);
  CHECK(ask({"--hung-for", "1us"})["groups"].size() == 1);
  CHECK(ask({"--hung-for", "1h"})["groups"].empty());
  for (Store& store : hang.stores) store.cancel();
  received.get_future().wait();
  got.get_future().wait();
}

TEST_CASE("a regroup that waits: for which members") {
  Hang hang;
  hang.form();
  std::promise<Result<Group>> regrouped;
  hang.groups[0].regroup_async({}, 20s,
                               [&](auto result) { regrouped.set_value(std::move(result)); });
  const Json document = hang.why([](const Json& found) { return found.contains("regroup"); });
  CHECK(document["regroup"]["called"] == Json::array({0}));
  CHECK(document["regroup"]["missing"] == Json::array({1, 2}));
  hang.groups[0].cancel();
  regrouped.get_future().wait();
}

TEST_CASE("a wait for keys: whose, and which are missing") {
  Hang hang;
  must(hang.stores[0].set("there", ""));
  const std::vector<std::string_view> keys = {"there", "missing"};
  std::promise<Result<void>> waited;
  hang.stores[0].wait_async(keys, 20s, [&](auto result) { waited.set_value(std::move(result)); });
  Json document;
  await([&] {
    document = Json::parse(hang.musterctl({"--json", "waiters"}).output);
    return !document.empty();
  });
  CHECK(document[0]["operation"] == "wait");
  CHECK(document[0]["target"] == "'missing'");
  CHECK(document[0]["label"] == "pod-0");
  hang.stores[0].cancel();
  waited.get_future().wait();
}

TEST_CASE("sessions and groups are listed, also as text") {
  Hang hang;
  hang.form();
  const Json sessions = Json::parse(hang.musterctl({"--json", "sessions"}).output);
  REQUIRE(sessions.size() == 4);  // musterctl itself is one
  CHECK(sessions[2]["label"] == "pod-2");
  CHECK(sessions[2]["groups"] == 1);
  const Json groups = Json::parse(hang.musterctl({"--json", "groups"}).output);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0]["group"] == "g");
  CHECK(groups[0]["live"] == 3);
  CHECK(hang.musterctl({"sessions"}).output.find("pod-1") != std::string::npos);
  CHECK(hang.musterctl({"groups"}).output.find("3/3") != std::string::npos);
  CHECK(hang.musterctl({"why", "g"}).output.find("nobody waits") != std::string::npos);
  CHECK(hang.musterctl({"why", "no such group"}).exit_code == 3);
}

}  // namespace
}  // namespace muster::test
