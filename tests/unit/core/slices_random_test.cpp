#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "engine_driver.h"

// Two engines get the same events, by seeds. One does everything at its event; the other puts off
// what it may, and does it in pieces of any size at any time. Whoever asks, gives up or runs out of
// time must not see the difference: every request gets the same answer from both, those that
// look in the same event, and when the second one has nothing left to do both hold the same.

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

constexpr std::array<std::string_view, 5> few_keys = {"a", "b", "c", "d", "e"};
constexpr std::uint32_t without_end = 1U << 30;
constexpr std::size_t long_value_bytes = 5000;
constexpr std::size_t visitor = 6;  ///< the last connection, that of another namespace

core::Options options(std::uint32_t work_per_event_max) {
  core::Options options;
  options.work_per_event_max = work_per_event_max;
  return options;
}

/// What a request got, and in which event.
struct Told {
  std::uint16_t code = 0;
  std::string body;
  int event = 0;
  friend bool operator==(const Told& a, const Told& b) {
    return a.code == b.code && a.body == b.body;
  }
};

class SlicesPlay {
 public:
  explicit SlicesPlay(unsigned seed)
      : random_(seed), whole_(options(without_end)), sliced_(options(1 + seed % 7)) {
    sliced_.works_off = false;
    for (core::ConnectionId& connection : connections_) connection = connect();
  }

  void step() {
    const std::size_t from = random_() % visitor;
    switch (random_() % 17) {
      case 16: drop_another(); break;
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: wait(from); break;
      case 5:
      case 6: set(from); break;
      case 7: set_several(from); break;
      case 8: ask(from, wire::Remove{some_keys()}); break;
      case 9: change(from); break;
      case 10: look(from); break;
      case 11: abandon(from); break;
      case 12: bind_many(from); break;
      case 13:
        if (random_() % 4 == 0) replace_session(from);
        break;
      default: pass();
    }
    for (auto pieces = random_() % 3; pieces > 0 && sliced_.engine.has_backlog(); --pieces) {
      apply_to_sliced(core::Continue{});
    }
    CHECK(whole_.engine.counts().keys == sliced_.engine.counts().keys);
    if (random_() % 16 == 0) compare_at_rest();
  }

  void finish() {
    for (int count = 0; count < 8; ++count) pass();
    compare_at_rest();
    for (std::size_t index = 0; index < connections_.size(); ++index) say_goodbye(index);
    compare_at_rest();
    for (int count = 0; count < 8; ++count) pass();
    compare_at_rest();
  }

  int late_count() const { return late_count_; }

 private:
  using Replies = std::map<std::uint64_t, Told>;

  // Events for both.

  core::ConnectionId connect(const std::string& name_space = {}) {
    ++event_;
    const core::ConnectionId connection = whole_.connect(name_space, wire::Role::supervisor);
    sliced_.connect(name_space, wire::Role::supervisor);
    take_replies();
    return connection;
  }

  void apply(const core::Event& event) {
    ++event_;
    whole_.apply(event);
    apply_to_sliced(event);
  }
  void apply_to_sliced(const core::Event& event) {
    is_deadline_ = std::holds_alternative<core::Advance>(event);
    sliced_.apply(event);
    take_replies();
  }

  std::uint64_t ask(std::size_t from, wire::RequestBody body, Duration timeout = Duration::zero()) {
    wire::Request request;
    request.id = ++last_request_;
    request.timeout = timeout;
    request.acknowledged = std::exchange(to_acknowledge_[from], {});
    request.body = std::move(body);
    owners_[request.id] = from;
    asked_in_[request.id] = event_ + 1;
    apply(core::Requested{connections_[from], &request});
    // Who is answered in the event that brings the request is so by both, unless it takes long.
    const auto told = whole_told_.find(request.id);
    const bool is_told = told != whole_told_.end();
    const bool may_be_long = is_told && told->second.body.size() >= long_value_bytes;
    CHECK((may_be_long || is_told == sliced_told_.contains(request.id)));
    return request.id;
  }

  void wait(std::size_t from) {
    const Duration timeout(static_cast<int>(random_() % 200000) + 1);
    wire::RequestBody body = wire::Get{some_key()};
    if (random_() % 4 == 0) body = wire::Wait{some_keys()};
    const bool takes = random_() % 8 == 0;
    if (takes) body = wire::Take{some_key()};
    const std::uint64_t id = ask(from, std::move(body), timeout);
    if (takes) takes_.insert(id);
  }
  void set(std::size_t from) {
    const std::string value = some_value();
    ask(from, wire::Set{some_key(), value, some_ttl(), random_() % 8 == 0, random_() % 3 == 0});
  }
  void set_several(std::size_t from) {
    wire::MultiSet several;
    const std::string value = some_value();
    for (const std::string_view key : some_keys()) several.entries.push_back({key, value});
    several.ttl = some_ttl();
    ask(from, std::move(several));
  }
  void change(std::size_t from) {
    const std::string value = some_value();
    switch (random_() % 4) {
      case 0: ask(from, wire::Add{some_key(), 1}); break;
      case 1: ask(from, wire::Append{some_key(), value}); break;
      case 2: ask(from, wire::CompareSet{some_key(), std::nullopt, value, some_ttl()}); break;
      default: ask(from, wire::Touch{some_key(), some_ttl()});
    }
  }
  void look(std::size_t from) {
    switch (random_() % 4) {
      case 0: ask(from, wire::Exists{some_keys()}); break;
      case 1: ask(from, wire::MultiGet{some_keys()}); break;
      case 2: ask(from, wire::Get{some_key()}); break;
      default: compare_lists(from);
    }
  }
  /// More keys than fit one event, which go with the session; one of those that are waited for.
  void bind_many(std::size_t from) {
    for (auto count = random_() % 20; count > 0; --count) {
      const std::string key = "bound " + std::to_string(random_() % 30);
      ask(from, wire::Set{key, "v", some_ttl(), false, true});
    }
    ask(from, wire::Set{some_key(), "v", some_ttl(), false, true});
  }
  void abandon(std::size_t from) {
    std::vector<std::uint64_t> ids;
    for (const auto& [id, owner] : owners_) {
      if (owner == from && !sliced_told_.contains(id) && random_() % 2 == 0) ids.push_back(id);
    }
    given_up_.insert(ids.begin(), ids.end());
    apply(core::Abandoned{connections_[from], &ids});
  }
  void say_goodbye(std::size_t index) {
    for (const auto& [id, owner] : owners_) {
      if (owner == index) given_up_.insert(id);
    }
    to_acknowledge_[index].clear();
    apply(core::Goodbye{connections_[index]});
  }
  void replace_session(std::size_t index) {
    say_goodbye(index);
    connections_[index] = connect();
  }
  /// Somebody comes to another namespace and leaves keys there; then it is dropped, maybe while
  /// what one of that name had is still being removed.
  void drop_another() {
    say_goodbye(visitor);
    connections_[visitor] = connect("another");
    for (auto count = random_() % 20; count > 0; --count) {
      const std::string key = "k" + std::to_string(count);
      ask(visitor, wire::Set{key, "v", some_ttl(), false, random_() % 3 == 0});
    }
    say_goodbye(visitor);
    if (random_() % 4 != 0) ask(random_() % visitor, wire::DropNameSpace{"another"});
  }
  void pass() {
    const Duration duration(static_cast<int>(random_() % 60000));
    whole_.now += duration;
    sliced_.now += duration;
    for (const core::ConnectionId connection : connections_) apply(core::Heard{connection});
    apply(core::Advance{});
  }

  std::string_view some_key() { return few_keys[random_() % few_keys.size()]; }
  std::vector<std::string_view> some_keys() {
    std::vector<std::string_view> some;
    for (auto count = 1 + random_() % 3; count > 0; --count) some.push_back(some_key());
    return some;
  }
  std::string some_value() {
    const std::size_t bytes = random_() % 8 == 0 ? long_value_bytes : 1;
    return std::string(bytes, static_cast<char>('0' + random_() % 10));
  }
  wire::Ttl some_ttl() {
    if (random_() % 2 == 0) return std::nullopt;
    return Duration(static_cast<int>(random_() % 50000) + 1);
  }

  // What comes of them.

  void take_replies() {
    take(whole_, whole_told_, whole_order_);
    const std::size_t before = sliced_order_.size();
    take(sliced_, sliced_told_, sliced_order_);
    if (!is_deadline_) return;
    by_deadline_.insert(sliced_order_.begin() + static_cast<std::ptrdiff_t>(before),
                        sliced_order_.end());  // maybe before its turn
  }
  void take(EngineDriver& driver, Replies& told, std::vector<std::uint64_t>& order) {
    for (const core::Effect& effect : std::exchange(driver.effects, {})) {
      const auto* reply = std::get_if<core::SendReply>(&effect);
      if (reply == nullptr) continue;
      const bool is_first =
          told.emplace(reply->request_id, Told{reply->code, body_of(*reply), event_}).second;
      CHECK(is_first);
      order.push_back(reply->request_id);
      if (&driver == &sliced_) {
        to_acknowledge_[owners_.at(reply->request_id)].push_back(reply->request_id);
      }
    }
  }

  /// A listing shows the same keys, however they lie.
  void compare_lists(std::size_t from) {
    const auto listed = [](const Told& told) {
      std::set<std::pair<std::string, bool>> names;
      const auto list = wire::decode_body<wire::ListReply>(told.body);
      for (const wire::ListEntry& entry : list->entries) names.emplace(entry.name, entry.bound);
      return names;
    };
    const std::uint64_t id = ask(from, wire::List{wire::ListKind::keys, "", 0, 0});
    CHECK(listed(whole_told_.at(id)) == listed(sliced_told_.at(id)));
    sliced_told_[id] = whole_told_[id];
  }

  void compare_at_rest() {
    while (sliced_.engine.has_backlog()) apply_to_sliced(core::Continue{});
    for (const auto& [id, told] : whole_told_) {
      const auto other = sliced_told_.find(id);
      if (other == sliced_told_.end()) {
        CHECK(given_up_.contains(id));
        continue;
      }
      CHECK(told == other->second);
      late_count_ += other->second.event > told.event ? 1 : 0;
    }
    for (const auto& [id, told] : sliced_told_) CHECK(whole_told_.contains(id));
    compare_orders();
    for (const auto& [id, told] : whole_told_) owners_.erase(id);
    for (Replies* told : {&whole_told_, &sliced_told_}) told->clear();
    compare_counts(whole_.engine.counts(), sliced_.engine.counts());
  }

  /// Who reads is told in the order of the decisions, but for deadlines and long replies.
  void compare_orders() {
    const auto in_turn = [&](std::vector<std::uint64_t>& order) {
      std::map<std::size_t, std::vector<std::uint64_t>> by_connection;
      for (const std::uint64_t id : std::exchange(order, {})) {
        const bool counts = !by_deadline_.contains(id) && !takes_.contains(id) &&
                            sliced_told_.contains(id) &&
                            sliced_told_.at(id).event > asked_in_.at(id) &&
                            sliced_told_.at(id).body.size() < long_value_bytes;
        if (counts) by_connection[owners_.at(id)].push_back(id);
      }
      return by_connection;
    };
    CHECK(in_turn(whole_order_) == in_turn(sliced_order_));
    by_deadline_.clear();
  }

  static void compare_counts(const core::Counts& whole, const core::Counts& sliced) {
    CHECK(whole.sessions == sliced.sessions);
    CHECK(whole.keys == sliced.keys);
    CHECK(whole.waits == sliced.waits);
    CHECK(whole.cached_results == sliced.cached_results);
    CHECK(whole.timers == sliced.timers);
    CHECK(whole.memory_bytes == sliced.memory_bytes);
  }

  std::mt19937 random_;
  EngineDriver whole_;
  EngineDriver sliced_;
  std::array<core::ConnectionId, visitor + 1> connections_{};
  std::array<std::vector<std::uint64_t>, visitor + 1> to_acknowledge_;
  std::uint64_t last_request_ = 0;
  int event_ = 0;
  bool is_deadline_ = false;
  std::map<std::uint64_t, std::size_t> owners_;  ///< of requests, by index of the connection
  std::map<std::uint64_t, int> asked_in_;        ///< the event
  std::set<std::uint64_t> given_up_;             ///< by who asked
  std::set<std::uint64_t> by_deadline_;
  std::set<std::uint64_t> takes_;
  Replies whole_told_;
  Replies sliced_told_;
  std::vector<std::uint64_t> whole_order_;
  std::vector<std::uint64_t> sliced_order_;
  int late_count_ = 0;
};

}  // namespace

TEST_CASE("what is put off changes nothing for whoever looks") {
  int late_count = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    SlicesPlay play(seed);
    for (int count = 0; count < 400; ++count) play.step();
    play.finish();
    late_count += play.late_count();
  }
  CHECK(late_count > 300);  // or it would have shown nothing
}
