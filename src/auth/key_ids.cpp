#include "auth/key_ids.h"

#include <algorithm>
#include <string>

#include "base/failure.h"

namespace muster::auth {

std::uint64_t KeyId::number() const {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : bytes) number = number << 8U | byte;
  return number;
}

Result<KeyIds> KeyIds::of(const Credentials& credentials, const Derive& derive) {
  const std::vector<Credential>& all = credentials.all();
  KeyIds ids;
  for (std::size_t position = 0; position < all.size(); ++position) {
    const auto* const key = std::get_if<Key>(&all[position].proof);
    if (key != nullptr) ids.positions_.emplace_back(derive(*key), position);
  }
  std::sort(ids.positions_.begin(), ids.positions_.end());
  const auto twice =
      std::adjacent_find(ids.positions_.begin(), ids.positions_.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice == ids.positions_.end()) return ids;
  return base::failure(ErrorCode::invalid_argument,
                       "the keys in lines " + std::to_string(all[twice->second].line) + " and " +
                           std::to_string(all[std::next(twice)->second].line) +
                           " have one id by chance; replace one of them");
}

std::optional<std::size_t> KeyIds::find(const KeyId& id) const {
  const std::optional<Near> near = find_near(id);
  if (!near || !near->has_id) return {};
  return near->position;
}

std::optional<KeyIds::Near> KeyIds::find_near(const KeyId& id) const {
  if (positions_.empty()) return {};
  const auto found = std::lower_bound(
      positions_.begin(), positions_.end(), id,
      [](const auto& position, const KeyId& wanted) { return position.first < wanted; });
  const auto& near = found == positions_.end() ? positions_.back() : *found;
  return Near{near.second, near.first == id};
}

}  // namespace muster::auth
