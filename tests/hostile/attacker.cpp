// A client that does what it can to be in the way of others.
//
//     hostile_attacker HOST:PORT ATTACK [NAME=VALUE]...
//
// Each attack is a function of stage.h; its arguments are told there. It makes ready and says so,
// begins at the first line of the standard input, ends at the second, and tells what it has seen.
// The standard input's end ends it at once. Reported are lines of JSON, as by fault_worker.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <utility>

#include "faults/report.h"
#include "hostile/stage.h"

namespace muster::hostile {

std::uint64_t Stage::number(const std::string& name, std::uint64_t otherwise) const {
  const auto found = arguments_.find(name);
  return found == arguments_.end() ? otherwise : std::stoull(found->second);
}

std::string Stage::text(const std::string& name, const std::string& otherwise) const {
  const auto found = arguments_.find(name);
  return found == arguments_.end() ? otherwise : found->second;
}

Sources Stage::sources() const {
  return {text("from", "127.0.0.2"), static_cast<std::uint32_t>(number("addresses", 1))};
}

wire::ClientHello Stage::hello() const {
  wire::ClientHello hello;
  hello.name_space = text("namespace", "");
  hello.process.host = "attacker";
  return hello;
}

void Stage::ready() {
  faults::say({{"event", "ready"}});
  while (swarm.told_count() < 1) swarm.turn();
}

void Stage::hold() {
  while (goes_on()) swarm.turn();
}

namespace {

const std::map<std::string, Attack> attacks = {
    {"half_hellos", half_hellos},
    {"newcomers", newcomers},
    {"garbage", garbage},
    {"begin_and_end", begin_and_end},
    {"blind_writes", blind_writes},
    {"namespaces", name_spaces},
    {"groups", groups},
    {"leak", leak},
    {"fill", fill},
    {"parked", parked},
    {"objects", objects},
    {"non_readers", non_readers},
    {"unread", unread},
    {"bound_keys", bound_keys},
    {"waiters", waiters},
    {"ended_group", ended_group},
    {"removed_values", removed_values},
    {"group", one_group},
    {"round", one_round},
    {"large_value", large_value},
    {"flood", flood},
    {"old_ids", old_ids},
    {"unacknowledged", unacknowledged},
    {"observer", observer},
    {"names", names},
    {"tcpstore_parts", tcpstore_parts},
    {"tcpstore_garbage", tcpstore_garbage},
    {"tcpstore_multi_set", tcpstore_multi_set},
    {"tcpstore_non_readers", tcpstore_non_readers},
    {"tcpstore_lists", tcpstore_lists},
    {"tcpstore_waits", tcpstore_waits},
    {"tcpstore_unread", tcpstore_unread},
};

/// As many descriptors as may be, and `wanted` where that is allowed.
void raise_descriptors(rlim_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  rlimit more{std::max(wanted, limit.rlim_max), std::max(wanted, limit.rlim_max)};
  if (::setrlimit(RLIMIT_NOFILE, &more) == 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(const std::string& server, const std::string& name,
        std::map<std::string, std::string> arguments) {
  const auto attack = attacks.find(name);
  if (attack == attacks.end()) return 2;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  raise_descriptors(40'000);
  Swarm swarm(server);
  Stage stage(swarm, std::move(arguments));
  Figures figures = attack->second(stage);
  for (const auto& [code, count] : swarm.replies()) {
    figures["replies"][code == ErrorCode{} ? "ok" : std::string(name_of(code))] = count;
  }
  figures["ended"] = swarm.ended_count();
  figures["event"] = "did";
  faults::say(std::move(figures));
  return 0;
}

}  // namespace
}  // namespace muster::hostile

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::map<std::string, std::string> arguments;
  for (int index = 3; index < argc; ++index) {
    const std::string pair = argv[index];
    const auto at = pair.find('=');
    if (at == std::string::npos) return 2;
    arguments[pair.substr(0, at)] = pair.substr(at + 1);
  }
  try {
    return muster::hostile::run(argv[1], argv[2], std::move(arguments));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
