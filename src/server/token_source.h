#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "wire/hello.h"

namespace muster::server {

/// Random tokens, of which many are asked of the system at once.
class TokenSource {
 public:
  /// returns  nothing: the system gives none
  std::optional<wire::ResumeToken> next();

 private:
  static constexpr std::size_t asked_at_once = 64;

  std::array<wire::ResumeToken, asked_at_once> tokens_;
  std::size_t left_ = 0;
};

}  // namespace muster::server
