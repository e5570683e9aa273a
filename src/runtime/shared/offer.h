#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.h"

namespace muster::runtime {

/// Why a rank cannot take part, in a message to the others.
struct Trouble {
  ErrorCode code = ErrorCode::internal;
  std::uint64_t actual = 0;
  std::uint64_t limit = 0;
  std::vector<int> ranks;  ///< at fault; empty: the one that tells
  std::string detail;
};

/// What a rank tells the others about its part of a gathering.
struct Offer {
  std::string call;  ///< the function and its options: equal on all ranks
  std::optional<Trouble> trouble;
  std::string kind;  ///< of tensors that are to be equal: dtype and shape
  bool has_state = false;
  std::string file;  ///< where it is; empty: it is not handed over
  std::uint64_t bytes = 0;
};

Trouble trouble_of(const Error& error);
std::string encode_trouble(const std::optional<Trouble>& trouble);
std::string encode_offer(const Offer& offer);

// From another process: nothing if it is none.

/// of nothing that troubles: an empty one, with the code `internal`
std::optional<std::optional<Trouble>> decode_trouble(std::string_view bytes);
std::optional<Offer> decode_offer(std::string_view bytes);

}  // namespace muster::runtime
