#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../scheduler.h"

namespace muster::sim::job {

/// What the board's server holds for one launcher.
struct Session {
  bool is_over = false;
  std::string bound_key;  ///< goes with it
};

/// Ranks of a group, as its members hear of them.
struct GroupNews {
  enum class Kind : std::uint8_t { formed, not_come, lost, left };
  Kind kind = Kind::formed;
  std::vector<int> ranks;
};

/// The server at which launchers meet, as far as they use it: keys, waits for them, and groups.
/// Requests are done when they arrive.
class Board {
 public:
  using Answer = std::function<void(const std::string& value)>;
  using Tell = std::function<void(const GroupNews&)>;

  explicit Board(Scheduler& scheduler) : scheduler_(scheduler) {}

  /// Hears of each key that comes, and, with an empty value, of each that goes.
  std::function<void(const std::string& key, const std::string& value)> changed;

  /// returns  what is there already; none: it was set
  std::optional<std::string> set_once(const std::string& key, const std::string& value,
                                      std::optional<Duration> lifetime = {});
  void bind(Session& session, const std::string& key, const std::string& value);
  /// If the key has one value it has the other one, for a time.
  bool change(const std::string& key, const std::string& from, const std::string& to,
              Duration lifetime);
  std::int64_t add_one(const std::string& key);
  /// The answer comes when the key is there.
  void await(Session& session, const std::string& key, Answer answer);
  /// As `await`; one of those who wait so gets the value, and the key goes.
  void take(Session& session, const std::string& key, Answer answer);
  void put(const std::string& key, const std::string& value, Duration lifetime) {
    set(key, value, scheduler_.now() + lifetime);
  }
  std::optional<std::string> value_of(const std::string& key);
  std::vector<std::string> list(const std::string& prefix);
  void remove(const std::string& key);

  void join(Session& session, const std::string& group, int rank, int size, Duration timeout,
            Tell tell);
  void leave(Session& session, const std::string& group);

  void end(Session& session);
  /// Nothing is answered any more.
  void die() { is_dead_ = true; }
  bool is_dead() const { return is_dead_; }

 private:
  struct Entry {
    std::string value;
    Instant expires = base::far_future;
  };
  struct Waiter {
    Session* session;
    Answer answer;
    bool takes = false;
  };
  struct Member {
    Session* session;
    Tell tell;
  };
  struct Group {
    int size = 0;
    bool is_formed = false;
    std::map<int, Member> members;
    std::vector<int> gone;
  };

  Entry* find(const std::string& key);
  void set(const std::string& key, const std::string& value, Instant expires);
  void give_up(const std::string& group, int rank, const Session& session);
  void take_out(Session& session, Group& group, GroupNews::Kind how);

  Scheduler& scheduler_;
  std::map<std::string, Entry> keys_;
  std::map<std::string, std::vector<Waiter>> waiters_;
  std::map<std::string, Group> groups_;
  bool is_dead_ = false;
};

}  // namespace muster::sim::job
