#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "process.h"

namespace muster::sim {

/// Random calls of one process on the keys, each judged by the model.
class StoreWork {
 public:
  explicit StoreWork(Process& process) : process_(process) {}
  void begin();

 private:
  using Key = KeyModel::Key;
  struct ShortLived {
    Key key;
    std::string value;
    Duration ttl{};
    Instant begun{};  ///< the set was asked for
    Instant set{};    ///< and answered
  };

  void plan();
  void work();
  void add();
  void append();
  void write();
  void compare_and_set();
  void read();
  void put_item();
  void take_item();
  void look_at_item();
  void wait_for_items();
  void take_nothing();
  void short_lived();
  void read_short_lived(const ShortLived& at);
  void touch(const ShortLived& at);
  void lives_on(const Key& key);
  void still_lives(const Key& key);
  void write_pair();
  void read_pair();
  void push_item();
  void pop_item();
  void look_at_queue();
  void bind();
  void look_at_bound();

  Town& town() { return process_.town(); }
  KeyModel& keys() { return process_.town().oracle.keys; }
  QueueModel& queues() { return process_.town().oracle.queues; }
  Random& random() { return process_.town().random; }
  Key key(std::string name);
  Key queue() { return key("queue/" + std::to_string(random().below(2))); }
  std::string unique(std::string_view what);
  Duration patience();
  /// What becomes of a value that was taken: the process has it, or it is given back. Delayed: that
  /// is decided later.
  enum class Fortune { delayed, received, given_back, in_doubt };
  using Settled = std::function<void(Fortune fortune)>;
  std::uint64_t ask_to_take(const std::string& what, const wire::RequestBody& body,
                            Duration timeout, Process::Use use);
  void settle_taken(const Settled& settled);
  void give_back(protocol::CallId call, const Settled& settled);
  std::uint64_t ask(const std::string& what, const wire::RequestBody& body, Duration timeout,
                    Process::Use use);
  void cancel_perhaps(std::uint64_t call);

  Process& process_;
};

}  // namespace muster::sim
