#include "server/settings.h"

#include <doctest/doctest.h>

namespace {

using namespace std::chrono_literals;
using muster::ErrorCode;
using muster::ServerOptions;
using muster::server::make_settings;

TEST_CASE("the defaults are valid, and every start is another incarnation") {
  const auto first = make_settings({});
  const auto second = make_settings({});
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->core.incarnation != second->core.incarnation);
  CHECK(first->core.hash_key != second->core.hash_key);
  CHECK(first->core.namespace_memory_bytes_max == first->core.memory_bytes_max);
}

TEST_CASE("an embedded server names its process, a standalone one does not") {
  ServerOptions options;
  options.hosting_rank = 3;
  options.label = "pod";
  const auto embedded = make_settings(options);
  REQUIRE(embedded);
  CHECK(embedded->core.host.process.id != muster::ProcessId{});
  CHECK(embedded->core.host.process.label == "pod");
  CHECK(embedded->core.host.rank == 3);
  options.standalone = true;
  const auto standalone = make_settings(options);
  REQUIRE(standalone);
  CHECK(standalone->core.host.process.id == muster::ProcessId{});
  CHECK(standalone->core.host.rank == -1);
}

TEST_CASE("an embedded server is of the tenant of all its identities, if it is one") {
  ServerOptions options;
  options.listen = {"unix:@settings_test"};
  options.credentials = "unix:uid=1 * all as=job/a\nunix:uid=2 * all as=job/b\n";
  const auto of_one = make_settings(options);
  REQUIRE(of_one);
  CHECK(of_one->core.host.tenant == "job");
  options.credentials += "unix:uid=3 * observe as=monitor\n";
  const auto of_two = make_settings(options);
  REQUIRE(of_two);
  CHECK(of_two->core.host.tenant.empty());
  CHECK(make_settings({})->core.host.tenant.empty());
}

TEST_CASE("an option out of its range is named") {
  const auto fault = [](auto change) {
    ServerOptions options;
    change(options);
    const auto settings = make_settings(options);
    REQUIRE_FALSE(settings);
    CHECK(settings.error().code == ErrorCode::invalid_argument);
    return settings.error().detail.substr(0, settings.error().detail.find(':'));
  };
  CHECK(fault([](auto& o) { o.session_timeout = 4999ms; }) == "session_timeout");
  CHECK(fault([](auto& o) { o.session_timeout = 601s; }) == "session_timeout");
  CHECK(fault([](auto& o) { o.heartbeat = 4s; }) == "heartbeat");
  CHECK(fault([](auto& o) { o.heartbeat = 0s; }) == "heartbeat");
  CHECK(fault([](auto& o) { o.grace = 16s; }) == "grace");
  CHECK(fault([](auto& o) { o.grace = -1s; }) == "grace");
  CHECK(fault([](auto& o) { o.slack = 0s; }) == "slack");
  CHECK(fault([](auto& o) { o.busy_poll = -1us; }) == "busy_poll");
  CHECK(fault([](auto& o) { o.busy_poll = 101ms; }) == "busy_poll");
  CHECK(fault([](auto& o) { o.key_bytes_max = 0; }) == "key_bytes_max");
  CHECK(fault([](auto& o) { o.value_bytes_max = (1U << 30) + 1; }) == "value_bytes_max");
  CHECK(fault([](auto& o) { o.connections_max = 0; }) == "connections_max");
  CHECK(fault([](auto& o) { o.memory_bytes_max = 1000; }) == "memory_bytes_max");
  CHECK(fault([](auto& o) { o.namespace_memory_bytes_max = o.memory_bytes_max + 1; }) ==
        "namespace_memory_bytes_max");
  CHECK(fault([](auto& o) { o.listen_backlog = 0; }) == "listen_backlog");
  CHECK(fault([](auto& o) { o.listen.clear(); }) == "listen");
  CHECK(fault([](auto& o) { o.listening_socket = -2; }) == "listening_socket");
  CHECK(fault([](auto& o) { o.label = std::string(65, 'x'); }) == "label");
}

}  // namespace
