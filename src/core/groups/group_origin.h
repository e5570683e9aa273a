#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/memory/tallied.h"
#include "core/session/accounts.h"

namespace muster::core {

/// Whose a group is, and who else may be in it. All who join must say the same.
class GroupTenants {
 public:
  /// As a session of `own` joins that names the others; `own` is empty where nobody is asked who he
  /// is: then there are no tenants.
  GroupTenants(std::string_view own, const std::vector<std::string_view>& others);

  /// To whom it belongs. Empty: to who was not asked who he is.
  const std::string& owner() const { return owner_; }
  bool admits(std::string_view tenant) const;
  /// Whether both are the same tenants, whoever of them it belongs to.
  bool is_same_as(const GroupTenants& other) const;
  /// For people.
  std::string text() const;
  /// What the names take in memory, about.
  std::uint64_t bytes() const;

 private:
  std::string owner_;
  std::vector<std::string> all_;  ///< in order, each once; none: it is the owner's alone
};

/// Counts a group for the account that has made it, and among all groups; keeps whose it is.
struct MadeGroup {
  MadeGroup(Account& its_account, GroupTenants its_tenants, std::uint64_t& all_groups_count)
      : account(its_account), tenants(std::move(its_tenants)), among_all(all_groups_count) {
    ++account.groups_count;
    ++account.unit.groups_count;
  }
  ~MadeGroup() {
    --account.unit.groups_count;
    --account.groups_count;
  }
  MadeGroup(const MadeGroup&) = delete;
  MadeGroup& operator=(const MadeGroup&) = delete;

  Account& account;
  GroupTenants tenants;  ///< who may join, and look
  Tallied among_all;
};

}  // namespace muster::core
