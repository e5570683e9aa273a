#include "faults/hoarder.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "faults/report.h"
#include "support/raw_client.h"
#include "wire/reply.h"

namespace muster::faults {
namespace {

using namespace std::chrono_literals;
using test::RawClient;

constexpr char hoarders_host[] = "127.0.0.2";  // not that of the ranks: shares are per address
constexpr int deaf_buffer_bytes = 16 * 1024;
// Of one connection; fewer where each leaves something on the server.
constexpr int requests_max = 300;
constexpr int requests_that_wait_max = 64;
constexpr int requests_that_store_max = 2;
constexpr int requests_per_batch = 16;
constexpr auto quiet_time = 1500ms;
constexpr auto time_max = 12s;

constexpr std::size_t listed_keys_count = 300;
constexpr std::size_t multi_keys_count = 32;
constexpr std::size_t filling_keys_count = 16;

enum class Kind : std::uint8_t {
  get_short,
  get_long,
  multi_get,
  exists,
  list_keys,
  list_objects,
  sessions,
  waiters,
  groups,
  inspect_group,
  status,
  members,
  all_gather,
  broadcast,
  receive,
  take,
  compare_set,
  add,
  parked_get,
  parked_wait,
  end,
};

/// One who does not listen.
struct Deaf {
  RawClient client;
  Kind kind;
  std::string group{};
  std::uint64_t epoch = 0;
  std::uint64_t next = 0;  ///< round, sequence, or number of a key
  std::string unsent{};
  int asked_count = 0;
  bool is_over = false;

  template <class Body>
  void ask(Body body, Duration timeout = 60s) {
    unsent += client.request(std::move(body), timeout);
  }
};

/// What is there to be asked for, and who reads it.
class Feeder {
 public:
  explicit Feeder(const std::string& address)
      : client_(RawClient::with_session(address, 0, hoarders_host)) {
    for (std::size_t i = 0; i < listed_keys_count; ++i) {
      listed_.push_back("listed/" + std::to_string(i) + "/" + std::string(900, 'k'));
      client_.call(wire::Set{listed_.back(), "v", {}, false, false});
    }
    for (std::size_t i = 0; i < multi_keys_count; ++i) {
      multi_.push_back("multi/" + std::to_string(i));
      client_.call(wire::Set{multi_.back(), std::string(8000, 'm'), {}, false, false});
    }
    for (std::size_t i = 0; i < filling_keys_count; ++i) {
      client_.call(
          wire::Set{"filling/" + std::to_string(i), std::string(512 << 10, 'f'), {}, false, false});
    }
    client_.call(wire::Set{"short", short_value_, {}, false, false});
    client_.call(wire::Set{"long", std::string(400'000, 'l'), {}, false, false});
  }

  std::vector<std::string_view> listed() const { return {listed_.begin(), listed_.end()}; }
  std::vector<std::string_view> multi() const { return {multi_.begin(), multi_.end()}; }
  std::string_view short_value() const { return short_value_; }
  std::string_view value() const { return value_; }

  /// The deaf one is rank 1 of a group in which this is rank 0 and has broadcast some values.
  void broadcast_to(Deaf& deaf) {
    wire::Join join;
    join.group = deaf.group;
    join.world_size = 2;
    client_.send(client_.request(join));
    join.rank = 1;
    const auto formed = deaf.client.call(join);
    deaf.epoch = wire::decode_body<wire::FormedReply>(formed.body).value().epoch;
    client_.receive_frame();
    for (std::uint64_t round = 1; round <= 4; ++round) {
      client_.call(
          wire::CollectiveCall{deaf.epoch, round, wire::Collective::broadcast, 0, 0, {value_}});
    }
  }
  /// Its session stays, however long the others take to come.
  void show_life() { client_.call(wire::Exists{{"short"}}); }
  /// The same, without waiting for a busy server; at most every 200 ms.
  void send_heartbeat() {
    const auto now = std::chrono::steady_clock::now();
    if (now - heartbeat_at_ < 200ms) return;
    heartbeat_at_ = now;
    std::string heartbeat;
    wire::append_ids(heartbeat, wire::FrameType::heartbeat, ++heartbeats_count_, {});
    client_.send_some(heartbeat);
  }
  /// Those who wait for it have it now.
  void set_late() { client_.call(wire::Set{"late", short_value_, {}, false, false}); }

 private:
  RawClient client_;
  std::uint64_t heartbeats_count_ = 0;
  std::chrono::steady_clock::time_point heartbeat_at_{};
  const std::string short_value_ = std::string(1900, 's');
  const std::string value_ = std::string(50'000, 'r');
  std::vector<std::string> listed_;
  std::vector<std::string> multi_;
};

void begin(Deaf& deaf, Feeder& feeder, int number) {
  deaf.group = "group/" + std::to_string(number) + std::string(500, 'g');
  if (deaf.kind == Kind::broadcast) return feeder.broadcast_to(deaf);
  const bool joins = deaf.kind == Kind::members || deaf.kind == Kind::all_gather ||
                     deaf.kind == Kind::receive || deaf.kind == Kind::inspect_group;
  if (!joins) return;
  wire::Join join;
  join.group = deaf.group;
  join.world_size = 1;
  if (deaf.kind == Kind::members) join.info = feeder.value();
  const auto formed = deaf.client.call(join);
  if (formed.header.code != 0) return;  // memory is short already
  deaf.epoch = wire::decode_body<wire::FormedReply>(formed.body).value().epoch;
}

void ask_of_groups(Deaf& deaf, const Feeder& feeder) {
  const std::uint64_t next = deaf.next++;
  switch (deaf.kind) {
    case Kind::members: return deaf.ask(wire::Members{deaf.epoch});
    case Kind::all_gather:
      return deaf.ask(wire::CollectiveCall{
          deaf.epoch, next + 1, wire::Collective::all_gather, 0, 0, {feeder.value()}});
    case Kind::broadcast:
      return deaf.ask(
          wire::CollectiveCall{deaf.epoch, next + 1, wire::Collective::broadcast, 0, 0, {}});
    case Kind::receive:
      deaf.ask(wire::Send{deaf.epoch, 0, 0, next, 0, feeder.value()});
      return deaf.ask(wire::Receive{deaf.epoch, 0, 0, next, 0});
    default: return deaf.ask(wire::InspectGroup{deaf.group});
  }
}

void ask(Deaf& deaf, const Feeder& feeder) {
  const std::string own_key = "own/" + deaf.group.substr(0, 20) + std::to_string(deaf.next++);
  switch (deaf.kind) {
    case Kind::get_short: return deaf.ask(wire::Get{"short"});
    case Kind::get_long: return deaf.ask(wire::Get{"long"});
    case Kind::multi_get: return deaf.ask(wire::MultiGet{feeder.multi()});
    case Kind::exists: return deaf.ask(wire::Exists{feeder.listed()});
    case Kind::list_keys: return deaf.ask(wire::List{});
    case Kind::list_objects: return deaf.ask(wire::List{wire::ListKind::objects, "", 0, 0});
    case Kind::sessions: return deaf.ask(wire::Sessions{});
    case Kind::waiters: return deaf.ask(wire::Waiters{});
    case Kind::groups: return deaf.ask(wire::Groups{});
    case Kind::status: return deaf.ask(wire::Status{});
    case Kind::take:
      deaf.ask(wire::Set{own_key, feeder.short_value(), {}, false, false});
      return deaf.ask(wire::Take{own_key});
    case Kind::compare_set:
      return deaf.ask(wire::CompareSet{"short", "other", feeder.short_value(), {}});
    case Kind::add: return deaf.ask(wire::Add{own_key, 1});
    case Kind::parked_get: return deaf.ask(wire::Get{"late"});
    case Kind::parked_wait: return deaf.ask(wire::Wait{{"late", "never"}});
    default: return ask_of_groups(deaf, feeder);
  }
}

int requests_max_of(Kind kind) {
  switch (kind) {
    case Kind::all_gather:
    case Kind::receive: return requests_that_store_max;
    case Kind::parked_get:
    case Kind::parked_wait: return requests_that_wait_max;
    default: return requests_max;
  }
}

/// Sends what the server takes.
///
/// returns  whether it took anything
bool go_on(Deaf& deaf, const Feeder& feeder) {
  const int left = requests_max_of(deaf.kind) - deaf.asked_count;
  if (deaf.unsent.empty() && left > 0) {
    const int count = std::min(left, requests_per_batch);
    for (int each = 0; each < count; ++each) ask(deaf, feeder);
    deaf.asked_count += count;
  }
  const std::size_t sent = deaf.client.send_some(deaf.unsent);
  deaf.unsent.erase(0, sent);
  return sent != 0;
}

/// Until the server takes nothing more.
///
/// returns  how many it has closed
int hoard_all(std::deque<Deaf>& all, Feeder& feeder) {
  const auto began = std::chrono::steady_clock::now();
  auto last = began;
  int closed_count = 0;
  bool has_set_late = false;
  for (auto now = began; now - last < quiet_time && now - began < time_max;
       now = std::chrono::steady_clock::now()) {
    if (!has_set_late && now - began > 3s) {
      feeder.set_late();
      has_set_late = true;
    }
    bool any = false;
    for (Deaf& deaf : all) {
      feeder.send_heartbeat();  // one pass may take longer than a session may be silent
      if (deaf.is_over) continue;
      pollfd ready{deaf.client.fd(), POLLOUT, 0};
      if (::poll(&ready, 1, 0) == 0) continue;
      if ((ready.revents & (POLLERR | POLLHUP)) != 0) {
        deaf.is_over = true;
        ++closed_count;
      } else if (go_on(deaf, feeder)) {
        any = true;
      }
    }
    if (any) {
      last = std::chrono::steady_clock::now();
    } else {
      ::poll(nullptr, 0, 20);
    }
  }
  return closed_count;
}

}  // namespace

void hoard(const std::string& address, int count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  Feeder feeder(address);
  std::deque<Deaf> all;
  for (int number = 0; number < count; ++number) {
    const auto kind = static_cast<Kind>(number % static_cast<int>(Kind::end));
    all.push_back({RawClient::with_session(address, deaf_buffer_bytes, hoarders_host), kind});
    begin(all.back(), feeder, number);
    feeder.show_life();
  }
  say({{"event", "hoarding"}});
  const int closed_count = hoard_all(all, feeder);
  std::uint64_t asked_count = 0;
  for (const Deaf& deaf : all) asked_count += static_cast<std::uint64_t>(deaf.asked_count);
  say({{"event", "hoarded"}, {"closed", closed_count}, {"asked", asked_count}});
  char line[64];
  while (::read(STDIN_FILENO, line, sizeof line) > 0) continue;
}

}  // namespace muster::faults
