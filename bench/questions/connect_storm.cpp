// How long it takes until many clients that come at the same moment are all served: connected, and
// their first request (with Muster: the hello, which begins a session) answered.

#include <algorithm>
#include <fstream>
#include <sstream>

#include "load.h"
#include "questions.h"

namespace muster::bench {
namespace {

/// Of the whole machine: SYNs that the kernel has sent again, a second or more later.
double syns_sent_again() {
  std::ifstream netstat("/proc/net/netstat");
  for (std::string names, values; std::getline(netstat, names) && std::getline(netstat, values);) {
    std::istringstream name_words(names);
    std::istringstream value_words(values);
    for (std::string name, value; name_words >> name && value_words >> value;) {
      if (name == "TCPSynRetrans") return std::stod(value);
    }
  }
  return 0;
}

}  // namespace

Json storm(const Subject& subject, int connections) {
  Swarm swarm(subject);
  const double syns_before = syns_sent_again();
  const double server_before_us = subject.processor_us();
  const double client_before_us = own_processor_us();
  const auto began = Clock::now();
  auto took_us = swarm.connect(connections, connections, Swarm::Greeting::answered);
  const double wall_us = microseconds_since(began);
  const double client_us = own_processor_us() - client_before_us;
  subject.settle();
  return {{"wall_ms", wall_us / 1e3},
          {"server_us", (subject.processor_us() - server_before_us) / connections},
          {"client_us", client_us / connections},
          {"p50_us", quantile(took_us, 0.5)},
          {"p99_us", quantile(took_us, 0.99)},
          {"slowest_ms", *std::max_element(took_us.begin(), took_us.end()) / 1e3},
          {"syns_sent_again", syns_sent_again() - syns_before}};
}

void measure_connect_storm(Run& run) {
  const auto subjects = run.start(all_kinds);
  const auto counts = run.by_extent<std::vector<int>>({64}, {4096}, {256, 1024, 4096});
  for (const Cores cores : {Cores::one, Cores::two}) {
    place_client(cores);
    for (const int connections : counts) {
      const Json parameters = {{"connections", connections}, {"cores", name_of(cores)}};
      if (!run.wants(parameters)) continue;
      take_turns(run.rounds(), subjects.size(), [&](std::size_t i) {
        const Subject& subject = *subjects[i];
        // Its disconnects take it seconds.
        const bool is_slow = subject.kind() == Kind::tcpstore && connections > 1024;
        if (is_slow && run.extent() != Extent::full) return;
        try {
          run.record("connect_storm", parameters, subject.name(), storm(subject, connections));
        } catch (const std::exception& failed) {
          if (subject.kind() == Kind::muster || subject.kind() == Kind::echo) throw;
          run.excuse("connect_storm", subject.name() + ", " + std::to_string(connections) +
                                          " connections, " + name_of(cores) + ": " + failed.what());
        }
        subject.settle();  // the closing, too, is over before the next one's turn
      });
    }
  }
}

}  // namespace muster::bench
