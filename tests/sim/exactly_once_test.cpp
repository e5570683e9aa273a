// Clients add, append and take through the production protocol and engine while connections break,
// the network holds bytes back and processes stop. Each request is applied once and answered once,
// nobody waits too long, and nothing is left on the server when all have gone.

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "client.h"
#include "support/scale.h"
#include "weather.h"
#include "wire/reply.h"

namespace muster::sim {
namespace {

constexpr std::size_t client_count = 3;
constexpr Duration patience = std::chrono::seconds(60);

class Story {
 public:
  Story(std::uint64_t seed, Weather::Kind kind)
      : random_(seed),
        network_(scheduler_, random_),
        server_(scheduler_, network_, random_, core::Options{}),
        is_rough_(kind == Weather::Kind::rough),
        weather_(kind, scheduler_, network_, random_, clients_) {
    for (std::size_t number = 0; number < client_count; ++number) {
      clients_.emplace_back(number, scheduler_, network_, server_);
    }
  }

  void run() {
    for (Client& client : clients_) client.open();
    for (std::size_t number = 0; number < client_count; ++number) work(number);
    weather_.begin();
    pass(std::chrono::seconds(20));
    is_working_ = false;
    weather_.end();
    pass(2 * patience + std::chrono::seconds(30));
    settle();
    read_back();
    for (Client& client : clients_) client.close();
    pass(std::chrono::seconds(20));
    check_nothing_is_left();
  }

  const std::vector<std::string>& problems() const { return problems_; }
  std::uint64_t resumed_count() const {
    std::uint64_t count = 0;
    for (const Client& client : clients_) count += client.resumed_count();
    return count;
  }

 private:
  void pass(Duration duration) { scheduler_.run_until(scheduler_.now() + duration); }
  void problem(std::string what) { problems_.push_back(std::move(what)); }

  /// In a storm sessions die; the application begins new ones.
  void reopen_if_over(Client& client) {
    const Error* failure = client.failure();
    if (failure != nullptr && failure->code == ErrorCode::session_expired) client.reopen();
  }

  void work(std::size_t number) {
    if (!is_working_) return;
    Client& client = clients_[number];
    if (!client.is_stopped()) {
      reopen_if_over(client);
      const auto kind = random_.below(6);
      const auto burst = random_.one_in(20) ? 100 : 1;  // more than may be in flight
      for (int count = 0; count < burst; ++count) ask(client, kind);
    }
    scheduler_.after(random_.between(std::chrono::milliseconds(5), std::chrono::milliseconds(300)),
                     [this, number] { work(number); });
  }

  void ask(Client& client, std::uint64_t kind) {
    switch (kind) {
      case 0:
      case 1: return add(client);
      case 2: return append(client);
      case 3:
      case 4: return hand_over(client);
      default: return ask_and_cancel(client);
    }
  }

  void add(Client& client) {
    client.call(wire::Add{"n", 1}, patience, [this](const auto& reply, protocol::Fate fate) {
      if (!reply) return failed("add", reply.error(), fate, adds_in_doubt_);
      const auto number = wire::decode_body<wire::NumberReply>(*reply)->number;
      if (!numbers_.insert(number).second) problem("a number was given twice");
      ++adds_;
    });
  }

  void append(Client& client) {
    const std::string token = std::to_string(++tokens_) + ";";
    client.call(wire::Append{"log", token}, patience,
                [this, token](const auto& reply, protocol::Fate fate) {
                  if (!reply) return failed("append", reply.error(), fate, appends_in_doubt_);
                  appended_.insert(token);
                });
  }

  /// One sets a key, two want to take it.
  void hand_over(Client& client) {
    const std::string key = "item/" + std::to_string(++items_);
    client.call(wire::Set{key, key, {}, false, false}, patience,
                [this, key](const auto& reply, protocol::Fate fate) {
                  if (!reply) failed("set", reply.error(), fate, sets_in_doubt_[key]);
                });
    const std::size_t first = random_.below(client_count);
    for (const std::size_t number : {first, (first + 1) % client_count}) {
      if (clients_[number].is_stopped()) continue;
      const auto call = clients_[number].call(
          wire::Take{key}, patience, [this, key, number](const auto& reply, protocol::Fate fate) {
            takers_[key].erase(number);
            if (reply) return took(key, wire::decode_body<wire::ValueReply>(*reply)->value);
            const bool gave_up = reply.error().code == ErrorCode::cancelled;
            if (gave_up || reply.error().code == ErrorCode::timed_out) return;
            failed("take", reply.error(), fate, takes_in_doubt_);
          });
      takers_[key][number] = call;
    }
  }

  void took(const std::string& key, std::string_view value) {
    if (value != key) problem("a value of another key");
    if (!taken_.insert(key).second) problem("a value was taken twice");
    const auto others = takers_[key];
    for (const auto& [number, call] : others) {
      if (!clients_[number].is_stopped()) clients_[number].cancel(call);
    }
  }

  void ask_and_cancel(Client& client) {
    const auto call =
        client.call(wire::Take{"never"}, patience, [this](const auto& reply, protocol::Fate fate) {
          if (reply) return problem("a value of nothing");
          if (reply.error().code == ErrorCode::cancelled) return;
          failed("take", reply.error(), fate, takes_in_doubt_);
        });
    scheduler_.after(random_.between(Duration(1), std::chrono::seconds(3)), [&client, call] {
      if (!client.is_stopped()) client.cancel(call);
    });
  }

  void failed(std::string_view what, const Error& error, protocol::Fate fate,
              std::uint64_t& in_doubt) {
    const bool is_allowed =
        !is_rough_ &&
        (error.code == ErrorCode::suspended || error.code == ErrorCode::session_expired ||
         error.code == ErrorCode::unavailable || error.code == ErrorCode::outcome_unknown);
    // A request that was held back on its way waits at the server for longer than its caller.
    const bool is_patience = what == "take" && (error.code == ErrorCode::timed_out ||
                                                error.code == ErrorCode::outcome_unknown);
    if (!is_allowed && !is_patience) {
      problem(std::string(what) + " failed: " + std::string(name_of(error.code)) + " " +
              error.detail);
    }
    if (fate == protocol::Fate::in_doubt) ++in_doubt;
  }

  void settle() {
    for (Client& client : clients_) {
      reopen_if_over(client);
      if (client.pending_count() != 0) problem("a call never ended");
      for (const std::string& violation : client.violations()) problem(violation);
    }
    pass(std::chrono::seconds(30));
  }

  void read_back() {
    Client& client = clients_.front();
    client.call(wire::Add{"n", 0}, patience, [this](const auto& reply, protocol::Fate) {
      if (!reply) return problem("the count cannot be read");
      const auto sum = wire::decode_body<wire::NumberReply>(*reply)->number;
      const auto least = static_cast<std::int64_t>(adds_);
      const auto most = least + static_cast<std::int64_t>(adds_in_doubt_);
      if (sum < least || sum > most) problem("the sum is wrong");
    });
    client.call(wire::Append{"log", ""}, patience, [](const auto&, protocol::Fate) {});
    client.call(wire::Get{"log"}, patience, [this](const auto& reply, protocol::Fate) {
      if (!reply) return problem("the log cannot be read");
      check_log(std::string(wire::decode_body<wire::ValueReply>(*reply)->value));
    });
    std::vector<std::string> keys = {"n", "log"};
    for (std::uint64_t item = 1; item <= items_; ++item) {
      keys.push_back("item/" + std::to_string(item));
    }
    for (std::size_t first = 0; first < keys.size(); first += 1000) {
      const std::size_t last = std::min(keys.size(), first + 1000);
      client.call(wire::Remove{{keys.begin() + static_cast<std::ptrdiff_t>(first),
                                keys.begin() + static_cast<std::ptrdiff_t>(last)}},
                  patience, [this](const auto& reply, protocol::Fate) {
                    if (!reply) problem("keys cannot be removed");
                  });
    }
    pass(std::chrono::seconds(5));
    // Everything has been answered, and the answers acknowledged or abandoned.
    const core::Counts counts = server_.counts();
    if (counts.waits + counts.cached_results != 0) problem("the server keeps what nobody needs");
  }

  void check_log(const std::string& log) {
    std::map<std::string, int> found;
    for (std::size_t at = 0; at < log.size();) {
      const std::size_t end = log.find(';', at) + 1;
      ++found[log.substr(at, end - at)];
      at = end;
    }
    for (const auto& [token, count] : found) {
      if (count != 1) problem("appended twice");
    }
    for (const std::string& token : appended_) {
      if (found.count(token) == 0) problem("appended and not there");
    }
    if (found.size() > appended_.size() + appends_in_doubt_) problem("appended by nobody");
    for (std::uint64_t item = 1; is_rough_ && item <= items_; ++item) {
      // Somebody wanted it, unless both were stopped when they were asked.
      const std::string key = "item/" + std::to_string(item);
      if (takers_.count(key) != 0 && taken_.count(key) == 0) problem("nobody got " + key);
    }
  }

  void check_nothing_is_left() {
    const core::Counts counts = server_.counts();
    const std::uint64_t left = counts.sessions + counts.connections + counts.keys + counts.waits +
                               counts.cached_results + counts.timers + counts.memory_bytes;
    if (left != 0) problem("something is left on the server");
  }

  Scheduler scheduler_;
  Random random_;
  Network network_;
  Server server_;
  std::deque<Client> clients_;
  bool is_rough_;
  Weather weather_;
  bool is_working_ = true;

  std::uint64_t adds_ = 0;
  std::uint64_t adds_in_doubt_ = 0;
  std::set<std::int64_t> numbers_;
  std::uint64_t tokens_ = 0;
  std::set<std::string> appended_;
  std::uint64_t appends_in_doubt_ = 0;
  std::uint64_t items_ = 0;
  std::map<std::string, std::uint64_t> sets_in_doubt_;
  std::map<std::string, std::map<std::size_t, protocol::CallId>> takers_;
  std::set<std::string> taken_;
  std::uint64_t takes_in_doubt_ = 0;
  std::vector<std::string> problems_;
};

void tell(std::uint64_t first, std::uint64_t count, Weather::Kind kind) {
  std::uint64_t resumed_count = 0;
  const std::uint64_t last = first + test::scaled(count) - 1;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    Story story(seed, kind);
    story.run();
    resumed_count += story.resumed_count();
    if (story.problems().empty()) continue;
    CAPTURE(seed);
    FAIL_CHECK(story.problems().front());
  }
  CHECK(resumed_count > last - first);  // otherwise nothing was shown
}

TEST_CASE("whatever is cut for a short time, everything happens exactly once") {
  tell(1, 200, Weather::Kind::rough);
}

TEST_CASE("whatever is cut for a long time, nothing happens twice and nobody waits too long") {
  tell(1'000'001, 200, Weather::Kind::storm);
}

}  // namespace
}  // namespace muster::sim
