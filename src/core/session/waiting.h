#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace muster::core {

struct Session;
class WaitingSessions;

/// In which namespaces requests are parked. Where nothing is parked any more a name goes when
/// somebody looks, so that a request that is parked costs no search.
class WaitingNames {
 public:
  WaitingNames() = default;
  WaitingNames(const WaitingNames&) = delete;
  WaitingNames& operator=(const WaitingNames&) = delete;

  /// How many namespaces beside `own` have parked requests.
  std::uint64_t others_count(const WaitingSessions& own) const;
  /// The first of their names, at most so many.
  std::vector<std::string_view> others(const WaitingSessions& own, std::size_t count_max);

 private:
  friend class WaitingSessions;
  std::uint64_t count_ = 0;
  std::map<std::string_view, WaitingSessions*> listed_;  ///< those where something waits, and more
};

/// How many requests of one namespace are parked, and which of its sessions have some.
class WaitingSessions {
 public:
  /// `name` is that of the namespace, and stays.
  WaitingSessions(WaitingNames& names, std::string_view name) : names_(names), name_(name) {}
  ~WaitingSessions() { leave(); }
  WaitingSessions(const WaitingSessions&) = delete;
  WaitingSessions& operator=(const WaitingSessions&) = delete;

  /// Of the namespace.
  std::string_view name() const { return name_; }
  /// A request of the session is parked.
  void add(Session& session) {
    if (count_ == 0 || !is_listed(session)) list(session);
    if (count_++ == 0) ++names_.count_;
  }
  /// So many are parked no more.
  void remove(std::uint64_t count) {
    count_ -= count;
    if (count != 0 && count_ == 0) --names_.count_;
  }
  /// The session is over; its requests have been removed.
  void forget(Session& session);
  /// The namespace is dropped: nothing waits in it, and another one may have its name.
  void leave();

  /// The first session with parked requests whose id is greater than `id`; null: none.
  const Session* after(std::uint64_t id);

 private:
  friend class WaitingNames;
  static bool is_listed(const Session& session);
  void list(Session& session);

  WaitingNames& names_;
  std::string_view name_;
  std::uint64_t count_ = 0;
  bool is_named_ = false;                     ///< among the names
  std::map<std::uint64_t, Session*> listed_;  ///< those that wait, and more
};

}  // namespace muster::core
