#include "work.h"

#include <array>
#include <deque>
#include <memory>
#include <stdexcept>

#include "core/engine.h"
#include "core/timers.h"
#include "wire/frame.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace muster::bench {
namespace {

using namespace std::chrono_literals;

constexpr int keys = 100'000;
constexpr std::size_t keys_of_multi_get = 64;

/// A key of 16 bytes, made so that making it costs next to nothing.
class Key {
 public:
  std::string_view name(std::size_t number) {
    number %= static_cast<std::size_t>(keys);
    for (std::size_t at = text_.size(); at > text_.size() - digits; number /= 10) {
      text_[--at] = static_cast<char>('0' + number % 10);
    }
    return {text_.data(), text_.size()};
  }

 private:
  static constexpr std::size_t digits = 6;

  std::array<char, 16> text_{'k', 'e', 'y', '-', 'n', 'u', 'm', 'b', 'e', 'r'};
};

/// Keeps the compiler from leaving the work out.
template <class Value>
void use(Value& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

wire::Request request_of(wire::RequestBody body) {
  wire::Request request;
  request.id = 1;
  request.timeout = 5s;
  request.acknowledged = {7};
  request.body = std::move(body);
  return request;
}

const std::string& value() {
  static const std::string bytes(64, 'v');
  return bytes;
}

std::function<void()> encode(wire::RequestBody body) {
  return [request = request_of(std::move(body)), out = std::string()]() mutable {
    out.clear();
    wire::append_request(out, request);
    use(out);
  };
}

std::function<void()> decode(wire::RequestBody body) {
  std::string bytes;
  wire::append_request(bytes, request_of(std::move(body)));
  return [bytes, request = wire::Request()]() mutable {
    const auto frame = wire::cut_frame(bytes, 1U << 20);
    auto read = wire::decode_request(**frame, request);
    use(read);
    use(request);
  };
}

/// An engine with one session and many keys, which acknowledges every reply with its next request.
class Served {
 public:
  Served() : engine_(core::Options{}) {
    core::Hello hello;
    hello.connection = connection;
    hello.fresh_token.bytes[0] = 1;
    hello.hello.process.id.bytes[0] = 1;
    engine_.apply(hello, now_);
    for (std::size_t key = 0; key < static_cast<std::size_t>(keys); ++key) {
      wire::Set set;
      set.key = key_.name(key);
      set.value = value();
      ask(set);
    }
  }

  void ask(wire::RequestBody body, Duration timeout = 5s) {
    request_.id = ++last_id_;
    request_.timeout = timeout;
    request_.acknowledged = {last_id_ - 1};
    request_.body = std::move(body);
    now_ += 1us;
    auto& effects = engine_.apply(core::Requested{connection, &request_}, now_);
    use(effects);
  }

  /// Another one each time.
  std::string_view next_key() { return key_.name(number_ += 7919); }

 private:
  static constexpr core::ConnectionId connection = 1;

  core::Engine engine_;
  core::Instant now_{1s};
  wire::Request request_;
  std::uint64_t last_id_ = 0;
  std::size_t number_ = 0;
  Key key_;
};

template <class Ask>
std::function<std::function<void()>()> served(Ask ask) {
  return [ask] {
    auto server = std::make_shared<Served>();
    return [server, ask] { ask(*server); };
  };
}

void set(Served& server) {
  wire::Set set;
  set.key = server.next_key();
  set.value = value();
  server.ask(set);
}

void set_with_ttl(Served& server) {
  wire::Set set;
  set.key = server.next_key();
  set.value = value();
  set.ttl = 1h;
  server.ask(set);
}

void get(Served& server) { server.ask(wire::Get{server.next_key()}, 0s); }

void add(Served& server) { server.ask(wire::Add{"a number", 1}); }

void multi_get(Served& server) {
  static std::array<Key, keys_of_multi_get> names;
  static std::size_t number = 0;
  wire::MultiGet multi_get;
  for (Key& key : names) multi_get.keys.push_back(key.name(number += 7919));
  server.ask(std::move(multi_get), 0s);
}

void wait_and_wake(Served& server) {
  server.ask(wire::Take{"not there yet"});
  wire::Set set;
  set.key = "not there yet";
  set.value = value();
  server.ask(set);
}

/// A wheel with many timers, each of which is armed for another time of the next minute.
class Armed {
 public:
  Armed() {
    for (int i = 0; i < keys; ++i) {
      timers_.emplace_back(core::TimerKind::key, nullptr);
      arm_next();
    }
  }
  ~Armed() { timers_.clear(); }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;

  void arm_next() {
    core::Timer& timer = timers_[next_++ % timers_.size()];
    wheel_.arm(timer, now_ + std::chrono::microseconds(1 + (next_ * 7919'000) % 60'000'000));
  }
  /// Lets the next one fire, and arms it anew.
  void fire_next() {
    for (;;) {
      if (core::Timer* const due = wheel_.take_due(now_)) {
        wheel_.arm(*due, now_ + 60s);
        return;
      }
      now_ = std::max(now_, wheel_.next_deadline());
    }
  }

 private:
  core::TimerWheel wheel_;
  core::Instant now_{1s};
  std::deque<core::Timer> timers_;
  std::size_t next_ = 0;
};

std::vector<Work> make_work() {
  wire::Set set_body;
  set_body.key = "key-000000000001";
  set_body.value = value();
  const wire::Get get_body{"key-000000000001"};
  return {
      {"wire/encode a set", [=] { return encode(set_body); }},
      {"wire/decode a set", [=] { return decode(set_body); }},
      {"wire/encode a get", [=] { return encode(get_body); }},
      {"wire/decode a get", [=] { return decode(get_body); }},
      {"core/set", served(set)},
      {"core/set with a time to live", served(set_with_ttl)},
      {"core/get", served(get)},
      {"core/add", served(add)},
      {"core/multi-get of 64", served(multi_get)},
      {"core/take that waits, and the set that wakes it", served(wait_and_wake)},
      {"timers/arm one that is armed",
       [] {
         auto armed = std::make_shared<Armed>();
         return [armed] { armed->arm_next(); };
       }},
      {"timers/fire and arm anew",
       [] {
         auto armed = std::make_shared<Armed>();
         return [armed] { armed->fire_next(); };
       }},
  };
}

}  // namespace

const std::vector<Work>& all_work() {
  static const std::vector<Work> work = make_work();
  return work;
}

}  // namespace muster::bench
