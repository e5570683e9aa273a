#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "gloo/elements.h"

// The operations in which the ranks' parts differ in size.

namespace muster::test {
namespace {

/// The first elements of a rank's part, of other counts for each; those of rank 0 are none.
std::vector<std::size_t> uneven_counts(int world_size) {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < world_size; ++rank) {
    counts.push_back(static_cast<std::size_t>(3 * rank) % (count + 1));
  }
  return counts;
}
std::vector<double> uneven_part(int rank, const std::vector<std::size_t>& counts) {
  std::vector<double> values = part(rank);
  values.resize(counts[static_cast<std::size_t>(rank)]);
  return values;
}

TEST_CASE("parts of different sizes come to all ranks, to each root, and back from it") {
  for (const int world_size : world_sizes) {
    exercise(world_size, [=](Communicator& communicator, DataType type) {
      const auto counts = uneven_counts(world_size);
      std::size_t total = 0;
      std::size_t before = 0;
      for (int rank = 0; rank < world_size; ++rank) {
        if (rank == communicator.rank()) before = total;
        total += counts[static_cast<std::size_t>(rank)];
      }
      const auto expected = joined(world_size, [&](int rank) { return uneven_part(rank, counts); });
      const std::size_t own_count = counts[static_cast<std::size_t>(communicator.rank())];
      Elements own(type, uneven_part(communicator.rank(), counts));
      Elements result(type, total);
      must(communicator.all_gather_v(own.at(), result.at(), counts, type, nullptr));
      CHECK(result.values() == expected);
      Elements in_place(type, total);
      if (own_count > 0) {
        std::memcpy(in_place.at(before), own.at(), own_count * size_of(type));
      }
      must(communicator.all_gather_v(in_place.at(before), in_place.at(), counts, type, nullptr));
      CHECK(in_place.values() == expected);
      for (int root = 0; root < world_size; ++root) {
        const bool is_root = communicator.rank() == root;
        Elements all(type, total);
        must(communicator.gather_v(own.at(), is_root ? all.at() : nullptr, counts, type, root,
                                   nullptr));
        if (is_root) CHECK(all.values() == expected);
        Elements back(type, own.values().size());
        must(communicator.scatter_v(is_root ? all.at() : nullptr, back.at(), counts, type, root,
                                    nullptr));
        CHECK(back.values() == own.values());
      }
    });
  }
}

TEST_CASE("elements are reduced, and each rank has a part of another size") {
  for (const int world_size : world_sizes) {
    exercise(world_size, [=](Communicator& communicator, DataType type) {
      const auto counts = uneven_counts(world_size);
      std::size_t total = 0;
      for (const std::size_t each : counts) total += each;
      std::vector<double> values;
      for (std::size_t index = 0; index < total; ++index) {
        values.push_back(static_cast<double>((index + 1) % 3 + 1));
      }
      std::size_t before = 0;
      for (int rank = 0; rank < communicator.rank(); ++rank) {
        before += counts[static_cast<std::size_t>(rank)];
      }
      const std::size_t own_count = counts[static_cast<std::size_t>(communicator.rank())];
      Elements own(type, values);
      Elements result(type, own_count);
      must(communicator.reduce_scatter_v(own.at(), result.at(), counts, type, ReduceOp::average,
                                         nullptr));
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(before);
      CHECK(result.values() ==
            std::vector<double>(first, first + static_cast<std::ptrdiff_t>(own_count)));
      must(communicator.reduce_scatter_v(own.at(), result.at(), counts, type, ReduceOp::max,
                                         nullptr));
      CHECK(result.values() ==
            std::vector<double>(first, first + static_cast<std::ptrdiff_t>(own_count)));
    });
  }
}

TEST_CASE("counts that are not one for each rank are refused") {
  exercise(2, [=](Communicator& communicator, DataType type) {
    Elements own(type, 4);
    const std::vector<std::size_t> three{1, 1, 1};
    CHECK(must_fail(communicator.all_gather_v(own.at(), own.at(), three, type, nullptr)).code ==
          ErrorCode::invalid_argument);
    const std::vector<std::size_t> huge{std::size_t{1} << 62, std::size_t{1} << 62};
    CHECK(must_fail(communicator.gather_v(own.at(), own.at(), huge, type, 0, nullptr)).code ==
          ErrorCode::invalid_argument);
  });
}

}  // namespace
}  // namespace muster::test
