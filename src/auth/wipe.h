#pragma once

#include <string.h>

#include <string>

namespace muster::auth {

/// Overwrites what the text holds, and empties it. The compiler does not leave that out. A text
/// that has grown may have left copies behind: reserve its place before a secret comes into it.
inline void wipe(std::string& text) {
  explicit_bzero(text.data(), text.size());
  text.clear();
}

}  // namespace muster::auth
