#pragma once

#include <cstdint>
#include <vector>

namespace muster::test {

/// The numbers from 1 to `count` that this process tries: MUSTER_TEST_SHARD "2/8" is the third of
/// eight parts. One in twenty, evenly; with MUSTER_TEST_SCALE=20 all.
std::vector<std::uint64_t> of_this_shard(std::uint64_t count);

}  // namespace muster::test
