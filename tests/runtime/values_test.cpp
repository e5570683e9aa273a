#include "muster/values.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/host_pid.h"
#include "muster/codec_cereal.h"
#include "runtime/job.h"

// Values on which all ranks agree.

namespace muster::test {
namespace {

TEST_CASE("all ranks get the root's value: a flag, integers, floating-point numbers") {
  Job job(3);
  job.run([](Runtime& runtime) {
    StatelessProcessGroup& world = *runtime.world().group();
    const int rank = runtime.rank();
    CHECK(must(synchronize_value(world, rank == 0)) == true);
    CHECK(must(synchronize_value(world, rank == 0, Rank(1))) == false);
    CHECK(must(synchronize_value(world, -5 - rank)) == -5);
    CHECK(must(synchronize_value(world, std::uint8_t(200 + rank), Rank(2))) == 202);
    CHECK(must(synchronize_value(world, 0.1F + static_cast<float>(rank))) == 0.1F);
    CHECK(must(synchronize_value(world, 1e300 / (rank + 1), Rank(1))) == 5e299);
    CHECK(must(synchronize_value(world, std::numeric_limits<std::int64_t>::min())) ==
          std::numeric_limits<std::int64_t>::min());
  });
}

TEST_CASE("a root that gives a value of another type is named") {
  Job job(2);
  job.run([](Runtime& runtime) {
    StatelessProcessGroup& world = *runtime.world().group();
    if (runtime.rank() == 0) {
      CHECK(must(synchronize_value(world, 1)) == 1);
    } else {
      const Error error = must_fail(synchronize_value(world, 1.0));
      CHECK(error.code == ErrorCode::mismatch);
      CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
    }
    must(world.barrier());
  });
}

TEST_CASE("values are combined in the order of ranks, with the same bits on all") {
  Job job(4);
  job.run([](Runtime& runtime) {
    StatelessProcessGroup& world = *runtime.world().group();
    const int rank = runtime.rank();
    CHECK(must(all_reduce_value(world, rank + 1)) == 10);
    CHECK(must(all_reduce_value(world, rank + 1, ReduceOp::product)) == 24);
    CHECK(must(all_reduce_value(world, rank - 2, ReduceOp::min)) == -2);
    CHECK(must(all_reduce_value(world, std::uint64_t(1) << (60 + rank), ReduceOp::max)) ==
          std::uint64_t(1) << 63);
    CHECK(must(all_reduce_value(world, rank == 2, ReduceOp::max)) == true);
    CHECK(must(all_reduce_value(world, rank == 2, ReduceOp::min)) == false);
    CHECK(must(all_reduce_value(world, rank * 0.5, ReduceOp::average)) == 0.75);
    const float parts[] = {1e8F, 1.0F, -1e8F, 1.0F};
    float sum = 0;
    for (const float part : parts) sum += part;
    CHECK(must(all_reduce_value(world, parts[rank])) == sum);
  });
}

TEST_CASE("bits of integers and bools are combined") {
  Job job(3);
  job.run([](Runtime& runtime) {
    StatelessProcessGroup& world = *runtime.world().group();
    const int rank = runtime.rank();
    CHECK(must(all_reduce_value(world, 1 << rank, ReduceOp::bit_or)) == 7);
    CHECK(must(all_reduce_value(world, std::uint8_t(0xff - (1 << rank)), ReduceOp::bit_and)) ==
          0xf8);
    CHECK(must(all_reduce_value(world, std::int8_t(rank - 1), ReduceOp::bit_xor)) == -2);
    CHECK(must(all_reduce_value(world, -1LL - rank, ReduceOp::bit_and)) == -4);
    CHECK(must(all_reduce_value(world, ~std::uint64_t{0} << rank, ReduceOp::bit_and)) ==
          ~std::uint64_t{0} << 2);
    CHECK(must(all_reduce_value(world, rank == 2, ReduceOp::bit_or)) == true);
    CHECK(must(all_reduce_value(world, rank == 2, ReduceOp::bit_and)) == false);
    CHECK(must(all_reduce_value(world, rank > 0, ReduceOp::bit_xor)) == false);
    CHECK(must(all_reduce_value(world, rank == 1, ReduceOp::bit_xor)) == true);
  });
}

TEST_CASE("a sum or product that fits is right, whatever those of the first ranks are") {
  Job job(4);
  job.run([](Runtime& runtime) {
    StatelessProcessGroup& world = *runtime.world().group();
    const auto rank = static_cast<std::size_t>(runtime.rank());
    const auto reduced = [&](const auto& values, ReduceOp operation) {
      return must(all_reduce_value(world, values[rank], operation));
    };
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    CHECK(reduced(std::array<std::int64_t, 4>{most, most, least, least}, ReduceOp::sum) == -2);
    CHECK(reduced(std::array<std::int64_t, 4>{least, -1, 1, most}, ReduceOp::sum) == -1);
    CHECK(reduced(std::array<std::int8_t, 4>{100, 100, -100, 27}, ReduceOp::sum) == 127);
    CHECK(reduced(std::array<std::int8_t, 4>{-100, -100, 100, -28}, ReduceOp::sum) == -128);
    CHECK(reduced(std::array<std::int64_t, 4>{least, most, most, 0}, ReduceOp::product) == 0);
    CHECK(reduced(std::array<std::int8_t, 4>{64, 2, 1, -1}, ReduceOp::product) == -128);
    CHECK(reduced(std::array<std::int64_t, 4>{std::int64_t{1} << 62, 2, -1, 1},
                  ReduceOp::product) == least);
    CHECK(reduced(std::array<std::uint64_t, 4>{~std::uint64_t{0}, 7, 7, 0}, ReduceOp::product) ==
          0);
    const auto refused = [&](const auto& values, ReduceOp operation) {
      return must_fail(all_reduce_value(world, values[rank], operation)).code;
    };
    CHECK(refused(std::array<std::int64_t, 4>{least, -1, 0, 0}, ReduceOp::sum) ==
          ErrorCode::out_of_range);
    CHECK(refused(std::array<std::uint64_t, 4>{~std::uint64_t{0}, 1, 0, 0}, ReduceOp::sum) ==
          ErrorCode::out_of_range);
    CHECK(refused(std::array<std::int64_t, 4>{most, most, most, most}, ReduceOp::product) ==
          ErrorCode::out_of_range);
  });
}

TEST_CASE("a rank that alone has another operation, or type, is named to all, and to itself") {
  Job job(3);
  job.run([](Runtime& runtime) {
    StatelessProcessGroup& world = *runtime.world().group();
    for (int wrong = 0; wrong < 3; ++wrong) {
      for (const auto operation : {ReduceOp::average, ReduceOp::max, static_cast<ReduceOp>(0xfe)}) {
        const bool is_wrong = runtime.rank() == wrong;
        const Error error =
            must_fail(all_reduce_value(world, 1, is_wrong ? operation : ReduceOp::sum));
        CHECK(error.code == ErrorCode::mismatch);
        CHECK(error.rank_ranges == std::vector<RankRange>{{wrong, wrong}});
        REQUIRE(error.ranks.size() == 1);
        CHECK(error.ranks[0].joined);
        CHECK(error.ranks[0].process.pid == base::host_pid());
      }
      const auto reduced = runtime.rank() == wrong
                               ? must_fail(all_reduce_value(world, 1.0, ReduceOp::bit_or))
                               : must_fail(all_reduce_value(world, 1, ReduceOp::bit_or));
      CHECK(reduced.code == ErrorCode::mismatch);
      CHECK(reduced.rank_ranges == std::vector<RankRange>{{wrong, wrong}});
    }
    must(world.barrier());
  });
}

TEST_CASE("what does not fit, or is not defined, is an error on all ranks") {
  Job job(2);
  job.run([](Runtime& runtime) {
    StatelessProcessGroup& world = *runtime.world().group();
    CHECK(must_fail(all_reduce_value(world, std::int8_t(100))).code == ErrorCode::out_of_range);
    CHECK(must_fail(all_reduce_value(world, std::numeric_limits<std::uint64_t>::max())).code ==
          ErrorCode::out_of_range);
    CHECK(must_fail(all_reduce_value(world, 1, ReduceOp::average)).code ==
          ErrorCode::invalid_argument);
    CHECK(must_fail(all_reduce_value(world, true)).code == ErrorCode::invalid_argument);
    CHECK(must_fail(all_reduce_value(world, true, ReduceOp::average)).code ==
          ErrorCode::invalid_argument);
    CHECK(must_fail(all_reduce_value(world, 1.5, ReduceOp::bit_or)).code ==
          ErrorCode::invalid_argument);
    CHECK(must_fail(all_reduce_value(world, 1, static_cast<ReduceOp>(8))).code ==
          ErrorCode::invalid_argument);
    const auto operation = runtime.rank() == 0 ? ReduceOp::sum : ReduceOp::max;
    CHECK(must_fail(all_reduce_value(world, 1, operation)).code == ErrorCode::mismatch);
  });
}

TEST_CASE("O1: all ranks get the root's objects") {
  Job job(2);
  job.run([](Runtime& runtime) {
    StatelessProcessGroup& world = *runtime.world().group();
    using Pair = std::pair<std::string, std::string>;
    const Pair own("abc", runtime.rank() == 0 ? "def" : "abc");
    CHECK(must(world.broadcast_obj(own, Rank(0))) == Pair("abc", "def"));
  });
}

TEST_CASE("lists are broadcast where they are of one length; else it is an error and no hang") {
  Job job(2);
  job.run([](Runtime& runtime) {
    StatelessProcessGroup& world = *runtime.world().group();
    const int rank = runtime.rank();
    const std::vector<std::string> own = {std::to_string(rank), "b"};
    CHECK(must(broadcast_list(world, own)) == std::vector<std::string>{"0", "b"});
    auto list = broadcast_list(world, std::vector<int>(static_cast<std::size_t>(rank + 1)));
    if (rank == 0) {
      CHECK(list.has_value());
    } else {
      const Error error = must_fail(list);
      CHECK(error.code == ErrorCode::mismatch);
      CHECK(error.expected == 2);
      CHECK(error.actual == 1);
    }
  });
}

TEST_CASE("M2: a value goes over several groups, one after the other") {
  Job job(4);
  const Mesh mesh = must(Mesh::create({{"data", 2}, {"tensor", 2}}));
  job.run([&](Runtime& runtime) {
    auto data = must(runtime.subgroup(mesh, "data"));
    auto tensor = must(runtime.subgroup(mesh, "tensor"));
    StatelessProcessGroup* const groups[] = {data.group(), nullptr, tensor.group()};
    const auto first = [](const std::vector<std::string>& all) {
      for (const std::string& one : all)
        if (!one.empty()) return one;
      return std::string();
    };
    const std::string own = runtime.rank() == 0 ? "of rank 0" : "";
    const Span<StatelessProcessGroup* const> all(groups, 3);
    CHECK(must(synchronize_over(all, own, first)) == "of rank 0");
    must(runtime.world().group()->barrier());
  });
}

}  // namespace
}  // namespace muster::test
