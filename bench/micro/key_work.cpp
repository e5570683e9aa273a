#include <cstddef>

#include "served.h"

namespace muster::bench {
namespace {

constexpr std::size_t many_waiters = 64;

/// Session 0 works; the others wait.
class Stored : public Served {
 public:
  explicit Stored(std::size_t keys, std::size_t waiters = 1) : Served(1 + waiters), numbers_(keys) {
    for (std::size_t i = 0; i < keys; ++i) set(next_key());
  }

  void set(std::string_view key, wire::Ttl ttl = {}) {
    wire::Set set;
    set.key = key;
    set.value = value();
    set.ttl = ttl;
    ask(0, set);
  }

  /// Another one each time.
  std::string_view next_key() {
    key_.set(numbers_.next());
    return key_.name();
  }
  const Keys& next_keys() { return bench::next_keys(keys_, numbers_); }

 private:
  Numbers numbers_;
  Key key_;
  Keys keys_;
};

class StoredForMany : public Stored {
 public:
  explicit StoredForMany(std::size_t keys) : Stored(keys, many_waiters) {}
};

class StoredForACrowd : public Stored {
 public:
  explicit StoredForACrowd(std::size_t keys) : Stored(keys, crowd), in_turn_(1 + crowd) {}

  void get_in_turn() { ask(in_turn_.next(), wire::Get{next_key()}, 0s); }

 private:
  static constexpr std::size_t crowd = 199;
  Numbers in_turn_;
};

void set(Stored& stored) { stored.set(stored.next_key()); }
void set_with_ttl(Stored& stored) { stored.set(stored.next_key(), 1h); }
void get(Stored& stored) { stored.ask(0, wire::Get{stored.next_key()}, 0s); }
void get_in_turn(StoredForACrowd& stored) { stored.get_in_turn(); }
void add(Stored& stored) { stored.ask(0, wire::Add{"a number", 1}); }

void multi_get(Stored& stored) {
  wire::MultiGet multi_get;
  multi_get.keys.reserve(keys_at_once);
  for (const Key& key : stored.next_keys()) multi_get.keys.push_back(key.name());
  stored.ask(0, std::move(multi_get), 0s);
}

void multi_set(Stored& stored) {
  wire::MultiSet multi_set;
  multi_set.entries.reserve(keys_at_once);
  for (const Key& key : stored.next_keys()) multi_set.entries.push_back({key.name(), value()});
  stored.ask(0, std::move(multi_set));
}

void set_and_remove(Stored& stored) {
  stored.set("not there yet");
  stored.ask(0, wire::Remove{{"not there yet"}});
}

void take_that_waits(Stored& stored) {
  stored.ask(1, wire::Take{"not there yet"});
  stored.set("not there yet");
}

/// The get, the set that answers it, and the key goes.
void get_that_waits(Stored& stored) {
  stored.ask(1, wire::Get{"not there yet"});
  set_and_remove(stored);
}

void get_that_many_wait_for(Stored& stored) {
  for (std::size_t i = 1; i <= many_waiters; ++i) stored.ask(i, wire::Get{"not there yet"});
  set_and_remove(stored);
}

void get_that_is_late(Stored& stored) {
  stored.ask(1, wire::Get{"never there"}, 1ms);
  stored.pass(2ms);
}

void expire(Stored& stored) {
  stored.set("soon gone", Duration(1ms));
  stored.pass(2ms);
}

void heartbeat(Stored& stored) { stored.heartbeat(0); }

void begin_and_end_session(Stored& stored) {
  stored.begin_session();
  stored.end_last_session();
}

}  // namespace

std::vector<Work> key_work() {
  return {
      {"core/set", with<Stored>(set)},
      {"core/set with a time to live", with<Stored>(set_with_ttl)},
      {"core/get", with<Stored>(get)},
      {"core/get, 200 connections in turn", with<StoredForACrowd>(get_in_turn)},
      {"core/add", with<Stored>(add)},
      {"core/multi-get of 64", with<Stored>(multi_get)},
      {"core/multi-set of 64", with<Stored>(multi_set)},
      {"core/set and remove of a new key", with<Stored>(set_and_remove)},
      {"core/take that waits, and the set that wakes it", with<Stored>(take_that_waits)},
      {"core/get that waits, and the set and remove", with<Stored>(get_that_waits)},
      {"core/one of 64 gets that wait for one set", with<StoredForMany>(get_that_many_wait_for),
       many_waiters},
      {"core/get that waits in vain", with<Stored>(get_that_is_late)},
      {"core/key that is set and expires", with<Stored>(expire)},
      {"core/heartbeat", with<Stored>(heartbeat)},
      {"core/session that begins and ends", with<Stored>(begin_and_end_session)},
  };
}

}  // namespace muster::bench
