#pragma once

#include <string>
#include <string_view>

#include "base/secret/unshown.h"
#include "muster/log.h"

namespace tools {

/// What somebody typed, as messages show it: printable, and at most 64 bytes of it. No key.
inline std::string in_quotes(std::string_view typed) {
  if (muster::base::looks_secret(typed))
    return "(a text that looks like a key and is not shown: replace that key, because it is now "
           "known)";
  constexpr std::size_t shown_bytes_max = 64;
  const bool is_whole = typed.size() <= shown_bytes_max;
  return '"' + muster::printable(typed.substr(0, shown_bytes_max)) + (is_whole ? "\"" : "...\"");
}

}  // namespace tools
