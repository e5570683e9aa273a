#include "support/fresh_key.h"

#include <string.h>

#include <utility>

#include "base/random.h"

namespace tools {

std::optional<muster::auth::Key> fresh_key() {
  unsigned char bytes[muster::auth::Key::bytes_min];
  if (!muster::base::fill_random(bytes, sizeof bytes)) return std::nullopt;
  auto key = muster::auth::Key::of({reinterpret_cast<const char*>(bytes), sizeof bytes});
  ::explicit_bzero(bytes, sizeof bytes);
  if (!key) return std::nullopt;
  return *std::move(key);
}

}  // namespace tools
