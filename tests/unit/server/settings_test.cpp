#include "server/settings.h"

#include <map>
#include <string>

#include <doctest/doctest.h>

#include "server/system_memory.h"

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

std::optional<muster::server::SystemMemoryLimit> limit_of(
    const std::string& cgroups, const std::string& mounts,
    const std::map<std::string, std::string>& files) {
  return muster::server::cgroup_memory_limit(
      cgroups, mounts, [&](const std::string& path) -> std::optional<std::string> {
        const auto found = files.find(path);
        if (found == files.end()) return std::nullopt;
        return found->second;
      });
}

const std::string mounted_2 = "30 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";
const std::string mounted_1 =
    "24 1 8:1 / / rw,relatime - ext4 /dev/root rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw shared:7 master:2 - cgroup cgroup rw,memory\n";

TEST_CASE("of nested cgroups the lowest limit counts, in version 2") {
  const std::string cgroups = "0::/jobs/a/b\n";
  const std::string base = "/sys/fs/cgroup";
  const auto limit = limit_of(cgroups, mounted_2,
                              {{base + "/jobs/a/b/memory.max", "max\n"},
                               {base + "/jobs/a/memory.max", "67108864\n"},
                               {base + "/jobs/memory.max", "134217728\n"}});
  REQUIRE(limit);
  CHECK(limit->bytes == 64U << 20);
  CHECK(limit->name == "memory.max of the cgroup /sys/fs/cgroup/jobs/a");
  CHECK_FALSE(limit_of(cgroups, mounted_2, {{base + "/jobs/a/b/memory.max", "max\n"}}));
  CHECK_FALSE(limit_of(cgroups, mounted_2, {{base + "/jobs/a/memory.max", "many\n"}}));
  CHECK_FALSE(limit_of(cgroups, mounted_2, {}));
  CHECK_FALSE(limit_of("", "", {}));
  CHECK_FALSE(limit_of("nonsense\n1:2\n::\n", "- - -\n a - cgroup2\n", {}));
}

TEST_CASE("the highest number of version 1 is no limit, and its ancestors count") {
  const std::string cgroups = "9:cpu,cpuacct:/x\n4:memory:/docker/1f\n1:name=systemd:/\n0::/\n";
  const std::string base = "/sys/fs/cgroup/memory";
  const auto limit = limit_of(cgroups, mounted_1 + mounted_2,
                              {{base + "/docker/1f/memory.limit_in_bytes", "9223372036854771712\n"},
                               {base + "/docker/memory.limit_in_bytes", "209715200\n"},
                               {base + "/memory.limit_in_bytes", "9223372036854771712\n"},
                               {"/sys/fs/cgroup/memory.max", "max\n"}});
  REQUIRE(limit);
  CHECK(limit->bytes == 200U << 20);
  CHECK(limit->name == "memory.limit_in_bytes of the cgroup /sys/fs/cgroup/memory/docker");
  CHECK_FALSE(limit_of(cgroups, mounted_1,
                       {{base + "/docker/1f/memory.limit_in_bytes", "9223372036854771712\n"}}));
}

TEST_CASE("a container that sees its own cgroup as the root has that one's limit") {
  const std::string file = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
  const std::string mounts =
      "35 31 0:32 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
  for (const std::string path : {"/docker/1f", "/", "/../other"}) {
    CAPTURE(path);
    const auto limit = limit_of("4:memory:" + path + "\n", mounts, {{file, "104857600\n"}});
    REQUIRE(limit);
    CHECK(limit->bytes == 100U << 20);
  }
}

TEST_CASE("memory_bytes_max is reduced to what fits below a limit of the system") {
  using muster::server::fit_memory;
  using muster::server::process_memory_bytes;
  const auto limit = [](std::uint64_t mebibytes) {
    return muster::server::SystemMemoryLimit{mebibytes << 20, "a test"};
  };
  ServerOptions options;
  options.standalone = true;
  options.namespace_memory_bytes_max = 1U << 30;
  CHECK(fit_memory(options, std::nullopt)->empty());
  CHECK(fit_memory(options, limit(1216))->empty());
  CHECK(options.memory_bytes_max == 1U << 30);
  const auto reduced = fit_memory(options, limit(256));
  REQUIRE(reduced);
  CHECK(reduced->find("a test") != reduced->npos);
  CHECK(options.memory_bytes_max < 171U << 20);
  CHECK(options.memory_bytes_max > 170U << 20);
  CHECK(process_memory_bytes(options.memory_bytes_max) <= 256U << 20);
  CHECK(options.namespace_memory_bytes_max == options.memory_bytes_max);
  CHECK(make_settings(options));
  CHECK(fit_memory(options, limit(256))->empty());
  const auto refused = fit_memory(options, limit(79));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::resource_exhausted);
  CHECK(refused.error().limit == 80U << 20);
  CHECK(refused.error().actual == 79U << 20);
  CHECK(fit_memory(options, limit(80)));
  CHECK(process_memory_bytes(options.memory_bytes_max) <= 80U << 20);
}

TEST_CASE("an embedded server is never refused for a limit of its process") {
  ServerOptions options;
  const auto reduced =
      muster::server::fit_memory(options, muster::server::SystemMemoryLimit{1U << 20, "a test"});
  REQUIRE(reduced);
  CHECK_FALSE(reduced->empty());
  CHECK(muster::server::process_memory_bytes(options.memory_bytes_max) <= 80U << 20);
  CHECK(options.memory_bytes_max > 14U << 20);
  ServerOptions small;
  small.memory_bytes_max = 1U << 20;
  CHECK(muster::server::fit_memory(small, muster::server::SystemMemoryLimit{1U << 20, "a test"})
            ->empty());
  CHECK(small.memory_bytes_max == 1U << 20);
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
