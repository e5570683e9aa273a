#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "gloo/elements.h"

// Sums of elements that each rank multiplies by a factor of its own.

namespace muster::test {
namespace {

/// Runs it on all ranks, on all floating-point types.
void exercise_floats(int world_size, const Exercise& each) {
  exercise(world_size, each, float_types);
}

TEST_CASE("scaled elements are added up on all ranks, and what is sent stays as it is") {
  for (const int world_size : world_sizes) {
    exercise_floats(world_size, [=](Communicator& communicator, DataType type) {
      const auto scaled = scaled_sum(factor_of(communicator.rank()));
      Elements own(type, scaled_part(communicator.rank(), count));
      Elements result(type, count);
      must(communicator.all_reduce(own.at(), result.at(), count, type, scaled, nullptr));
      CHECK(result.values() == scaled_sums(world_size, count));
      CHECK(own.values() == scaled_part(communicator.rank(), count));
      must(communicator.all_reduce(own.at(), own.at(), count, type, scaled, nullptr));
      CHECK(own.values() == result.values());
    });
  }
}

TEST_CASE("scaled elements are added up at each root") {
  for (const int world_size : world_sizes) {
    exercise_floats(world_size, [=](Communicator& communicator, DataType type) {
      const auto scaled = scaled_sum(factor_of(communicator.rank()));
      for (int root = 0; root < world_size; ++root) {
        const bool is_root = communicator.rank() == root;
        Elements own(type, scaled_part(communicator.rank(), count));
        Elements result(type, count);
        must(communicator.reduce(own.at(), is_root ? result.at() : nullptr, count, type, scaled,
                                 root, nullptr));
        if (is_root) CHECK(result.values() == scaled_sums(world_size, count));
        CHECK(own.values() == scaled_part(communicator.rank(), count));
        must(communicator.reduce(own.at(), is_root ? own.at() : nullptr, count, type, scaled, root,
                                 nullptr));
        if (is_root) CHECK(own.values() == result.values());
      }
    });
  }
}

TEST_CASE("scaled elements are added up, and each rank has a part") {
  for (const int world_size : world_sizes) {
    exercise_floats(world_size, [=](Communicator& communicator, DataType type) {
      const auto rank = static_cast<std::size_t>(communicator.rank());
      const auto total = static_cast<std::size_t>(world_size) * count;
      const auto scaled = scaled_sum(factor_of(communicator.rank()));
      Elements own(type, scaled_part(communicator.rank(), total));
      Elements result(type, count);
      must(communicator.reduce_scatter(own.at(), result.at(), count, type, scaled, nullptr));
      CHECK(result.values() == scaled_sums(world_size, count, rank * count));
      CHECK(own.values() == scaled_part(communicator.rank(), total));
      must(communicator.reduce_scatter(own.at(), own.at(rank * count), count, type, scaled,
                                       nullptr));
      auto left = own.values();
      left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(rank * count));
      left.resize(count);
      CHECK(left == result.values());

      // Of rank 0 one element, of rank 1 two, and so on.
      std::vector<std::size_t> counts;
      std::size_t first = 0;
      std::size_t uneven_total = 0;
      for (std::size_t each = 0; each < static_cast<std::size_t>(world_size); ++each) {
        if (each < rank) first += each + 1;
        uneven_total += each + 1;
        counts.push_back(each + 1);
      }
      Elements uneven(type, scaled_part(communicator.rank(), uneven_total));
      Elements part_of_sum(type, rank + 1);
      must(communicator.reduce_scatter_v(uneven.at(), part_of_sum.at(), counts, type, scaled,
                                         nullptr));
      CHECK(part_of_sum.values() == scaled_sums(world_size, rank + 1, first));
      CHECK(uneven.values() == scaled_part(communicator.rank(), uneven_total));
    });
  }
}

TEST_CASE("a scaled sum inside of grouped is one as outside") {
  exercise_floats(2, [](Communicator& communicator, DataType type) {
    Elements own(type, scaled_part(communicator.rank(), count));
    Elements result(type, count);
    must(communicator.grouped([&] {
      return communicator.all_reduce(own.at(), result.at(), count, type,
                                     scaled_sum(factor_of(communicator.rank())), nullptr);
    }));
    CHECK(result.values() == scaled_sums(2, count));
  });
}

TEST_CASE("factors that are infinite or no numbers are multiplied by like others") {
  exercise_floats(2, [](Communicator& communicator, DataType type) {
    Elements own(type, std::vector<double>{1, 0});
    Elements result(type, 2);
    const auto reduced = [&](double factor) {
      must(communicator.all_reduce(own.at(), result.at(), 2, type, scaled_sum(factor), nullptr));
      return result.values();
    };
    CHECK(std::isnan(reduced(std::nan("")).front()));
    const auto infinite = reduced(std::numeric_limits<double>::infinity());
    if (size_of(type) > 1) CHECK(std::isinf(infinite.front()));
    if (size_of(type) > 1) CHECK(std::isnan(infinite.back()));
    CHECK(reduced(0) == std::vector<double>{0, 0});
  });
}

TEST_CASE("a scaled sum of integers is refused, and nothing happens") {
  exercise_floats(2, [](Communicator& communicator, DataType type) {
    Elements integers(DataType::int64, std::vector<double>{5});
    for (const DataType integer : integer_types) {
      const Error error = must_fail(communicator.all_reduce(integers.at(), integers.at(), 1,
                                                            integer, scaled_sum(2), nullptr));
      CHECK(error.code == ErrorCode::invalid_argument);
      CHECK(error.operation == "all_reduce");
    }
    CHECK(integers.values() == std::vector<double>{5});
    CHECK_FALSE(communicator.error());
    Elements none(type, std::size_t{0});
    must(communicator.all_reduce(none.at(), none.at(), 0, type, scaled_sum(2), nullptr));
  });
}

}  // namespace
}  // namespace muster::test
