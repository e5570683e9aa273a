// What 64 members notice of strangers who begin TLS two thousand times in a second, and what the
// server keeps for these. The strangers are a thread of their own, which yields to the members:
// both share a core, and the server has the other one.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <future>
#include <random>
#include <stdexcept>
#include <thread>

#include "encryption.h"
#include "questions.h"
#include "ranks.h"

namespace muster::bench {
namespace {

using namespace std::chrono_literals;

constexpr int members_count = 64;
constexpr auto get_interval = 500us;
constexpr auto barrier_interval = 5ms;

constexpr auto flight_interval = 500us;
constexpr auto flight_lifetime = 250ms;
constexpr int nice_of_strangers = 10;
constexpr int flights_per_look = 64;  ///< at the server's memory
constexpr std::uint32_t first_address = INADDR_LOOPBACK + 1;

/// What strangers say, and from how many addresses.
struct Strangers {
  std::string_view what;
  std::string flight;
  std::uint32_t addresses_count;
};

/// A ClientHello by its headers, and nothing by the rest.
std::string garbled(std::string flight) {
  constexpr std::size_t headers_bytes = 9;
  std::mt19937 random(1);
  std::generate(flight.begin() + headers_bytes, flight.end(),
                [&] { return static_cast<char>(random()); });
  return flight;
}

std::vector<Strangers> all_strangers(const TlsContext& of_member) {
  const std::string unknown = first_flight(make_stranger());
  return {{"garbage, one address", garbled(unknown), 1},
          {"an unknown key, one address", unknown, 1},
          {"an unknown key, 256 addresses", unknown, 256},
          {"a recorded ClientHello, 256 addresses", first_flight(of_member), 256}};
}

/// Begins TLS again and again, from its making on, until it is stopped.
class StrangersFlood {
 public:
  StrangersFlood(const Subject& subject, const Strangers& strangers)
      : subject_(subject),
        strangers_(strangers),
        done_(std::async(std::launch::async, [this] { return run(); })) {}
  ~StrangersFlood() { stops_ = true; }
  StrangersFlood(const StrangersFlood&) = delete;
  StrangersFlood& operator=(const StrangersFlood&) = delete;

  struct Found {
    double per_s = 0;
    double refused_per_s = 0;  ///< that the server has answered, or closed
    double server_bytes = 0;   ///< resident, the most
  };
  Found stop() {
    stops_ = true;
    return done_.get();
  }

 private:
  struct Flight {
    int fd;
    Clock::time_point until;
  };

  Found run() {
    ::setpriority(PRIO_PROCESS, 0, nice_of_strangers);  // of this thread alone
    const auto began = Clock::now();
    Found found;
    auto next = began;
    for (int count = 0; !stops_; ++count) {
      std::this_thread::sleep_until(next);
      next += flight_interval;
      begin_one(count);
      found.per_s += 1;
      while (!flights_.empty() && Clock::now() >= flights_.front().until) end_first(found);
      if (count % flights_per_look == 0) {
        found.server_bytes = std::max(found.server_bytes, subject_.resident_bytes());
      }
    }
    const double seconds = microseconds_since(began) / 1e6;
    while (!flights_.empty()) end_first(found);
    found.per_s /= seconds;
    found.refused_per_s /= seconds;
    return found;
  }

  /// Of a socket that goes, nothing stays: 2,000 in a second would take all ports.
  void begin_one(int count) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const linger at_once{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr =
        htonl(first_address + static_cast<std::uint32_t>(count) % strangers_.addresses_count);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    bool is_sent = fd >= 0 && ::bind(fd, raw, sizeof(address)) == 0;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(subject_.port());
    is_sent = is_sent && ::connect(fd, raw, sizeof(address)) == 0 &&
              ::send(fd, strangers_.flight.data(), strangers_.flight.size(), MSG_NOSIGNAL) > 0;
    if (!is_sent && fd >= 0) ::close(fd);
    if (!is_sent) throw std::runtime_error("a stranger cannot reach " + subject_.name());
    flights_.push_back({fd, Clock::now() + flight_lifetime});
  }

  void end_first(Found& found) {
    char answer;
    if (::recv(flights_.front().fd, &answer, 1, MSG_DONTWAIT) >= 0) found.refused_per_s += 1;
    ::close(flights_.front().fd);
    flights_.pop_front();
  }

  const Subject& subject_;
  const Strangers strangers_;
  std::deque<Flight> flights_;
  std::atomic<bool> stops_{false};
  std::future<Found> done_;  // waits when it goes, before what it uses
};

/// What members do, again and again, and how long it took them.
struct Asked {
  std::string_view what;
  std::vector<double> took_us;
  double server_share;
};

/// At a fixed rate. Who is kept waiting by the one before has waited since its own time.
template <class Ask>
Asked ask_at_rate(const Subject& subject, std::string_view what, Clock::duration interval,
                  Clock::duration duration, Ask&& ask) {
  Asked asked{what, {}, subject.processor_us()};
  const auto start = Clock::now();
  for (auto next = start; next < start + duration; next += interval) {
    const bool is_late = Clock::now() > next;
    std::this_thread::sleep_until(next);
    const auto began = is_late ? next : Clock::now();
    ask();
    asked.took_us.push_back(microseconds_since(began));
  }
  asked.server_share = (subject.processor_us() - asked.server_share) / microseconds_since(start);
  return asked;
}

class Members {
 public:
  Members(const Subject& subject, Clock::duration duration)
      : subject_(subject), duration_(duration), swarm_(subject), ranks_(subject) {
    swarm_.connect(members_count);
    for (int peer = 0; peer < swarm_.size(); ++peer) {
      swarm_.dialect(peer).append_set(swarm_.out(peer), nth_key(peer),
                                      std::string(small_value_bytes, 'v'), 0);
      swarm_.call(peer);
    }
    ranks_.connect(members_count);
    ranks_.join();
    ranks_.round(wire::Collective::barrier, {});  // warms up
    subject.settle();
    resident_bytes_ = subject.resident_bytes();
  }

  /// Before any stranger had come.
  double resident_bytes() const { return resident_bytes_; }

  std::array<Asked, 2> ask() {
    int peer = 0;
    return {ask_at_rate(subject_, "a get", get_interval, duration_,
                        [&] {
                          peer = (peer + 1) % members_count;
                          swarm_.dialect(peer).append_get(swarm_.out(peer), nth_key(peer),
                                                          small_value_bytes);
                          swarm_.call(peer);
                        }),
            ask_at_rate(subject_, "a barrier of 64 ranks", barrier_interval, duration_,
                        [&] { ranks_.barrier_us(); })};
  }

 private:
  const Subject& subject_;
  Clock::duration duration_;
  Swarm swarm_;
  Ranks ranks_;
  double resident_bytes_ = 0;
};

/// A round with one subject: alone, and then beside each kind of strangers.
void measure_beside(Run& run, const Subject& subject, Members& members,
                    const std::vector<Strangers>& all) {
  std::map<std::string_view, double> alone_p99_us;
  const auto record = [&](std::array<Asked, 2> asked, std::string_view beside,
                          const Json& of_strangers) {
    for (auto& [what, took_us, server_share] : asked) {
      const double p99_us = quantile(took_us, 0.99);
      alone_p99_us.emplace(what, p99_us);
      Json values = {{"p50_us", quantile(took_us, 0.5)},
                     {"p99_us", p99_us},
                     {"p99_grows_by", p99_us / alone_p99_us[what]},
                     {"server_share_of_wall", server_share}};
      values.update(of_strangers);
      run.record("encrypted_strangers", {{"of", what}, {"beside", beside}}, subject.name(), values);
    }
  };
  subject.settle();
  record(members.ask(), "nobody", {{"others_per_s", 0}, {"refused_per_s", 0}, {"grown_kib", 0}});
  for (const Strangers& strangers : all) {
    if (!run.wants({{"beside", strangers.what}})) continue;
    StrangersFlood flood(subject, strangers);
    std::this_thread::sleep_for(flight_lifetime);  // as many are there as ever will be
    std::array<Asked, 2> asked = members.ask();
    const StrangersFlood::Found found = flood.stop();
    record(std::move(asked), strangers.what,
           {{"others_per_s", found.per_s},
            {"refused_per_s", found.refused_per_s},
            {"grown_kib", (found.server_bytes - members.resident_bytes()) / kibibyte}});
  }
}

}  // namespace

void measure_strangers(Run& run) {
  place_client(Cores::two);
  const std::chrono::milliseconds duration(run.by_extent(20, 500, 1500));
  std::vector<std::unique_ptr<Subject>> subjects;
  std::vector<std::unique_ptr<Members>> members;
  for (const Wire wire : {Wire::clear, Wire::encrypted}) {
    subjects.push_back(run.start(Kind::muster, {}, wire));
    members.push_back(std::make_unique<Members>(*subjects.back(), duration));
  }
  const std::vector<Strangers> strangers = all_strangers(subjects.back()->tls());
  take_turns(run.rounds(), subjects.size(),
             [&](std::size_t i) { measure_beside(run, *subjects[i], *members[i], strangers); });
}

}  // namespace muster::bench
