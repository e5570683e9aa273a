#include <signal.h>

#include <nlohmann/json.hpp>

#include "musterctl.h"
#include "support/ranks.h"

// `musterctl --watch`: it goes on whatever happens to the server, until it is told to end.

namespace muster::test {
namespace {

using Json = nlohmann::json;

Json next_document(Process& watch) {
  const auto line = watch.read_line();
  REQUIRE(line.has_value());
  return Json::parse(*line);
}

TEST_CASE("a watch in JSON is a document per line, and an interrupt ends it with 0") {
  const Musterctl musterctl;
  for (const int signal : {SIGINT, SIGTERM}) {
    Process watch(musterctl.call({"--json", "--watch=100ms", "groups"}));
    const Json first = next_document(watch);
    CHECK(first["answer"] == Json::array());
    CHECK(first["time"].get<std::string>().size() == 20);
    CHECK(next_document(watch)["answer"] == Json::array());
    watch.send_signal(signal);
    const Ending ending = watch.wait();
    CHECK(ending.exit_code == 0);
    CHECK(ending.signal == 0);
    CHECK(watch.read_errors().empty());
  }
}

TEST_CASE("a watched key may come and go") {
  const Musterctl musterctl;
  Process watch(musterctl.call({"--json", "--watch=100ms", "get", "k"}));
  CHECK(next_document(watch)["answer"]["error"]["code"] == "not_found");
  CHECK(musterctl({"set", "k", "there"}).exit_code == 0);
  await([&] { return next_document(watch)["answer"].contains("value"); });
  CHECK(musterctl({"rm", "k"}).exit_code == 0);
  await([&] { return next_document(watch)["answer"].contains("error"); });
}

TEST_CASE("a watch outlives the server, says so, and goes on with the next one") {
  Musterctl musterctl;
  Process watch(musterctl.call({"--json", "--watch=100ms", "--timeout", "300ms", "ls"}));
  Process text(musterctl.call({"--watch=100ms", "--timeout", "300ms", "ls"}));
  CHECK(next_document(watch)["answer"] == Json::array());
  REQUIRE(text.read_line().has_value());
  musterctl.stop_server();
  Json trouble;
  await([&] { return (trouble = next_document(watch)).contains("error"); });
  CHECK(trouble["error"]["for_s"] >= 0);
  await([&] { return text.read_line().value().starts_with("no answer for"); });
  musterctl.start_server();
  await([&] { return next_document(watch)["answer"] == Json::array(); });
  await([&] { return text.read_line().value().find("by another server") != std::string::npos; });
}

TEST_CASE("a watch begins before its server, and is interrupted as well while it waits for one") {
  Musterctl musterctl;
  musterctl.stop_server();
  Process watch(musterctl.call({"--json", "--watch=100ms", "--timeout", "200ms", "status"}));
  CHECK(next_document(watch)["error"]["code"] == "unavailable");
  musterctl.start_server();
  await([&] { return next_document(watch).value("answer", Json::object()).contains("version"); });
  Process patient(musterctl.call({"--json", "--watch=100ms", "--timeout", "1h", "status"}));
  CHECK(next_document(patient).value("answer", Json::object()).contains("version"));
  musterctl.stop_server();
  await([&] { return next_document(watch).contains("error"); });
  patient.send_signal(SIGINT);
  CHECK(patient.wait().exit_code == 0);
}

TEST_CASE("a watch whose reader goes ends quietly") {
  const Musterctl musterctl;
  Process::Options options = musterctl.call({});
  options.command = {"/bin/sh", "-c", options.command[0] + " --watch=1h status | head -n 1"};
  Process shell(options);
  CHECK(shell.read_line()->starts_with("20"));
  CHECK(shell.wait().exit_code == 0);
  CHECK(shell.read_errors().empty());
}

}  // namespace
}  // namespace muster::test
