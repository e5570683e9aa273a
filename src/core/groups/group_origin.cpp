#include "core/groups/group_origin.h"

#include <algorithm>

#include "base/text.h"

namespace muster::core {

GroupTenants::GroupTenants(std::string_view own, const std::vector<std::string_view>& others)
    : owner_(own) {
  if (own.empty() || others.empty()) return;
  all_.assign(others.begin(), others.end());
  all_.push_back(owner_);
  std::sort(all_.begin(), all_.end());
  all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
  if (all_.size() == 1) all_.clear();
}

bool GroupTenants::admits(std::string_view tenant) const {
  return tenant == owner_ || std::binary_search(all_.begin(), all_.end(), tenant);
}

bool GroupTenants::is_same_as(const GroupTenants& other) const {
  return all_ == other.all_ && (!all_.empty() || owner_ == other.owner_);
}

std::string GroupTenants::text() const {
  if (all_.empty()) return base::quoted_text(owner_);
  std::string text;
  for (const std::string& tenant : all_) {
    if (!text.empty()) text += ", ";
    text += base::quoted_text(tenant);
  }
  return text;
}

std::uint64_t GroupTenants::bytes() const {
  std::uint64_t bytes = all_.size() * sizeof(std::string);
  for (const std::string& tenant : all_) bytes += tenant.size();
  return bytes;
}

}  // namespace muster::core
