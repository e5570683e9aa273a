#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "auth/identity.h"
#include "core/memory/chain.h"
#include "core/memory/quota.h"
#include "core/session/clock.h"

// Who is charged for what: a unit for all that its connections have, and below it an account for
// what they have in one namespace.

namespace muster::core {

struct Session;
class Units;

/// How many requests somebody may send: so many at once, and as many in each second.
class RequestBucket {
 public:
  /// False: it is empty, and nothing was taken.
  bool take(Instant now, std::uint32_t per_second) {
    const Duration since = std::clamp(now - at_, Duration::zero(), second_);
    const std::uint64_t taken_max = share_ * per_second;
    at_ = now;
    taken_ = std::min(taken_, taken_max);  // there were perhaps more
    taken_ -= std::min(taken_, static_cast<std::uint64_t>(since.count()) * per_second);
    if (taken_ + share_ > taken_max) return false;
    taken_ += share_;
    return true;
  }

 private:
  static constexpr Duration second_{std::chrono::seconds(1)};
  /// What one request takes: in each tick of the clock as much comes back as there may be requests
  /// in a second.
  static constexpr std::uint64_t share_ = static_cast<std::uint64_t>(second_.count());

  Instant at_{};
  std::uint64_t taken_ = 0;
};

/// Whose shares are counted together, such as all connections from one address, or of one identity.
/// Stands as long as anything of it does.
struct Unit {
  Unit(std::string its_name, Quota& its_server)
      : name(std::move(its_name)), server(its_server), quota(UINT64_MAX) {
    server.add_sharer();
  }
  ~Unit() { server.remove_sharer(); }
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  void set_limits(const auth::Limits& its_limits) {
    limits = its_limits;
    quota.set_limit(limits.memory_bytes != 0 ? limits.memory_bytes : UINT64_MAX);
  }

  /// Whether nothing of it is left.
  bool is_over() const { return accounts_count == 0 && name_spaces_count == 0; }
  /// Whether there are several units, and this one has less than its share of the memory.
  bool is_below_memory_share() const {
    return server.is_shared() && quota.used_bytes() < server.part_bytes();
  }

  std::string name;
  Quota& server;
  Quota quota;  ///< beside those of its accounts
  std::uint32_t accounts_count = 0;
  std::uint32_t name_spaces_count = 0;  ///< that it has made
  Chain<Session> sessions;              ///< those that may go first are in front
  std::uint32_t sessions_count = 0;
  std::uint32_t groups_count = 0;  ///< that it has made
  auth::Limits limits;             ///< of its identity; 0: those of the server
  RequestBucket requests;
  ChainLink<Unit> place{*this};  ///< among those with as many sessions
};

/// What a unit has in one namespace. It outlives its sessions while anything is charged to it.
struct Account {
  Account(std::uint16_t its_index, Unit& its_unit, Quota& name_space)
      : index(its_index), unit(its_unit), quota(UINT64_MAX, &name_space, &its_unit.quota) {
    ++unit.accounts_count;
    unit.quota.add_sharer();
  }
  ~Account() {
    unit.quota.remove_sharer();
    --unit.accounts_count;
  }
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  bool is_over() const {
    return sessions_count + groups_count + epochs_count == 0 && quota.used_bytes() == 0;
  }

  const std::uint16_t index;  ///< in its namespace
  Unit& unit;
  Quota quota;
  std::uint32_t sessions_count = 0;
  std::uint32_t groups_count = 0;       ///< that it has made
  std::uint32_t epochs_count = 0;       ///< of them, also those that are over
  std::uint64_t places_of_several = 0;  ///< that its waits for several keys have at them
};

/// The accounts of one namespace, in places that do not change while they stand.
class Accounts {
 public:
  /// Of more units than this the rest share an account.
  static constexpr std::size_t count_max = (1U << 15) - 1;

  explicit Accounts(Quota& name_space) : name_space_(name_space) {}
  Accounts(const Accounts&) = delete;
  Accounts& operator=(const Accounts&) = delete;

  Account& find_or_make(Unit& unit);
  Account& operator[](std::uint16_t index) { return *places_[index]; }
  std::size_t size() const { return by_unit_.size(); }

  /// Removes the account if nothing of it is left, and its unit with the last one.
  void drop_if_over(Units& units, Account& account);
  /// The same with those in the next `count` places.
  void sweep(Units& units, std::size_t count);

 private:
  Quota& name_space_;
  std::vector<std::unique_ptr<Account>> places_;
  std::vector<std::uint16_t> free_places_;
  std::unordered_map<const Unit*, Account*> by_unit_;
  std::size_t swept_ = 0;
};

/// All units of the server, by name.
class Units {
 public:
  explicit Units(Quota& server) : server_(server) {}
  Units(const Units&) = delete;
  Units& operator=(const Units&) = delete;

  Unit& find_or_make(const std::string& name);
  /// Removes it if nothing of it is left.
  void drop_if_over(Unit& unit);
  std::size_t size() const { return units_.size(); }

  void session_came(Unit& unit) { count_sessions(unit, unit.sessions_count + 1); }
  void session_gone(Unit& unit) { count_sessions(unit, unit.sessions_count - 1); }
  /// One with the most sessions; there are some.
  Unit& fullest();

 private:
  void count_sessions(Unit& unit, std::uint32_t count);

  Quota& server_;
  std::unordered_map<std::string, std::unique_ptr<Unit>> units_;
  std::deque<Chain<Unit>> by_sessions_;  ///< element i: those with i sessions
};

}  // namespace muster::core
