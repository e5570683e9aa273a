#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <string>

#include "nccl/doubles/nccl_types.h"

namespace nccl_double {

using Magic = std::array<char, 8>;

/// What an id says: random bytes that those who belong together know, and where the root listens.
struct RootPlace {
  Magic magic{};
  sockaddr_in address{};
};
RootPlace place_of(const UniqueId& id);

/// A rank tells the root where it can be told its successor in the ring, and where that successor
/// of another finds it. Sent after the magic.
struct CheckIn {
  std::int32_t rank = 0;
  std::int32_t rank_count = 0;
  sockaddr_in for_root{};
  sockaddr_in for_ring{};
  std::uint64_t host_hash = 0;
  std::array<unsigned char, 16> device{};
};

/// Makes an id with its root: a listening socket and a thread that is never joined.
int make_unique_id(UniqueId& id);

/// Of the ids that NCCL_COMM_ID makes nobody listens before rank 0 begins.
bool is_id_of_environment();
int start_root_of_environment(const UniqueId& id);

}  // namespace nccl_double
