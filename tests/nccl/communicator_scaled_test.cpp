#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "nccl/communicator_machine.h"
#include "nccl/functions.h"
#include "support/elements.h"

// Sums of elements that each rank multiplies by a factor of its own: NCCL makes an op for each of
// them. That none is left is what every test checks, in Machine.

namespace muster::test {
namespace {

constexpr std::size_t element_count = 5;

/// Runs it on the ranks of a communicator in each of NCCL's modes.
template <class Part>
void run_in_both_modes(const Part& part, bool warm_up = true) {
  for (const nccl::Mode mode : {nccl::Mode::nonblocking, nccl::Mode::blocking}) {
    CAPTURE(static_cast<int>(mode));
    nccl::Options options = doubled();
    options.mode = mode;
    options.warm_up = warm_up;
    run_communicators(team_size, options,
                      [&](Communicator& communicator, StatelessProcessGroup& group) {
                        part(communicator, group, mode);
                        must(group.barrier());
                      });
  }
}

/// A stream of a rank's device; the double's collectives read host memory.
class Stream {
 public:
  explicit Stream(const Communicator& communicator) : buffer_(communicator.rank(), 1) {}
  void* get() const { return buffer_.stream(); }
  void wait() { buffer_.values(); }

 private:
  Buffer buffer_;
};

Reduction scaled_on(const Communicator& communicator) {
  return scaled_sum(factor_of(communicator.rank()));
}

/// An all_reduce of a rank's part; gives the sums.
Result<std::vector<double>> sums_of(Communicator& communicator, Stream& stream, DataType type,
                                    Reduction reduction) {
  Elements own(type, scaled_part(communicator.rank(), element_count));
  Elements result(type, element_count);
  const auto done =
      communicator.all_reduce(own.at(), result.at(), element_count, type, reduction, stream.get());
  stream.wait();
  if (!done) return done.error();
  return result.values();
}

TEST_CASE_FIXTURE(Machine, "scaled elements of every floating-point type are added up") {
  run_in_both_modes([](Communicator& communicator, StatelessProcessGroup&, nccl::Mode) {
    Stream stream(communicator);
    const auto scaled = scaled_on(communicator);
    const int rank = communicator.rank();
    const auto sums = scaled_sums(team_size, element_count);
    for (const DataType type : float_types) {
      CAPTURE(static_cast<int>(type));
      CHECK(must(sums_of(communicator, stream, type, scaled)) == sums);
      Elements own(type, scaled_part(rank, element_count));
      must(communicator.all_reduce(own.at(), own.at(), element_count, type, scaled, stream.get()));
      stream.wait();
      CHECK(own.values() == sums);

      Elements sent(type, scaled_part(rank, element_count));
      Elements at_root(type, element_count);
      must(communicator.reduce(sent.at(), at_root.at(), element_count, type, scaled, 1,
                               stream.get()));
      stream.wait();
      CHECK(at_root.values() == (rank == 1 ? sums : std::vector<double>(element_count)));
      CHECK(sent.values() == scaled_part(rank, element_count));
    }
  });
}

TEST_CASE_FIXTURE(Machine, "scaled elements are added up, and each rank has a part") {
  run_in_both_modes([](Communicator& communicator, StatelessProcessGroup&, nccl::Mode) {
    Stream stream(communicator);
    const auto rank = static_cast<std::size_t>(communicator.rank());
    for (const DataType type : float_types) {
      CAPTURE(static_cast<int>(type));
      Elements own(type, scaled_part(communicator.rank(), team_size));
      Elements result(type, std::size_t{1});
      must(communicator.reduce_scatter(own.at(), result.at(), 1, type, scaled_on(communicator),
                                       stream.get()));
      stream.wait();
      CHECK(result.values() == scaled_sums(team_size, 1, rank));

      const std::vector<std::size_t> counts{1, 0, 2};
      Elements part(type, counts[rank]);
      must(communicator.reduce_scatter_v(own.at(), part.at(), counts, type, scaled_on(communicator),
                                         stream.get()));
      stream.wait();
      CHECK(part.values() == scaled_sums(team_size, counts[rank], rank == 0 ? 0 : 1));
      CHECK(own.values() == scaled_part(communicator.rank(), team_size));
    }
  });
}

TEST_CASE_FIXTURE(Machine, "calls of a group have each its own factor, or none") {
  run_in_both_modes([](Communicator& communicator, StatelessProcessGroup&, nccl::Mode) {
    constexpr auto type = DataType::float32;
    Stream stream(communicator);
    Elements own(type, std::vector<double>{1});
    Elements sums(type, std::size_t{3});
    const std::vector<Reduction> reductions{scaled_sum(communicator.rank() + 2), ReduceOp::sum,
                                            scaled_sum(0.25)};
    must(communicator.grouped([&]() -> Result<void> {
      std::size_t index = 0;
      for (const Reduction reduction : reductions) {
        must(communicator.all_reduce(own.at(), sums.at(index++), 1, type, reduction, stream.get()));
      }
      return {};
    }));
    stream.wait();
    CHECK(sums.values() == std::vector<double>{2 + 3 + 4, 3, 0.75});
  });
}

TEST_CASE_FIXTURE(Machine, "a factor is rounded to the type; it may be infinite, or no number") {
  run_communicators(1, doubled(), [](Communicator& communicator, StatelessProcessGroup&) {
    Stream stream(communicator);
    const auto scaled = [&](DataType type, double factor, double element) {
      Elements own(type, std::vector<double>{element});
      must(communicator.all_reduce(own.at(), own.at(), 1, type, scaled_sum(factor), stream.get()));
      stream.wait();
      return own.values().front();
    };
    CHECK(scaled(DataType::float16, 0.1, 3) == 0.2998046875);  // 0.1 is 0x2e66 there
    CHECK(scaled(DataType::float64, 0.1, 3) == 3 * 0.1);
    for (const DataType type : float_types) {
      CAPTURE(static_cast<int>(type));
      CHECK(std::isnan(scaled(type, std::nan(""), 1)));
      const double most = scaled(type, std::numeric_limits<double>::infinity(), 1);
      CHECK(most == (type == DataType::float8_e4m3   ? 448
                     : type == DataType::float8_e5m2 ? 57344
                                                     : HUGE_VAL));
    }
  });
}

TEST_CASE_FIXTURE(Machine, "a scaled sum of integers is refused, and nothing is made for it") {
  run_in_both_modes([](Communicator& communicator, StatelessProcessGroup& group, nccl::Mode) {
    Stream stream(communicator);
    must(group.barrier());
    const long before = nccl().count("made_red_ops");
    for (const DataType type : integer_types) {
      const Error error = must_fail(sums_of(communicator, stream, type, scaled_on(communicator)));
      CHECK(error.code == ErrorCode::invalid_argument);
    }
    CHECK(must_fail(communicator.grouped([&]() -> Result<void> {
            CHECK_FALSE(sums_of(communicator, stream, DataType::int32, scaled_sum(2)));
            return {};
          })).code == ErrorCode::invalid_argument);
    must(group.barrier());
    CHECK(nccl().count("made_red_ops") == before);
    CHECK_FALSE(communicator.error());
  });
}

TEST_CASE_FIXTURE(Machine, "functions without those for ops refuse a scaled sum, and go on") {
  for (const bool can_create : {true, false}) {
    nccl::Functions table = must(nccl_internal::load_nccl(std::getenv("NCCL_DOUBLE")));
    if (can_create) table.red_op_destroy = nullptr;
    if (!can_create) table.red_op_create_pre_mul_sum = nullptr;
    nccl::Options options = doubled();
    options.nccl = &table;
    const long before = nccl().count("made_red_ops");
    run_communicators(
        team_size, options, [&](Communicator& communicator, StatelessProcessGroup& group) {
          Stream stream(communicator);
          constexpr auto type = DataType::float32;
          const Error error = must_fail(sums_of(communicator, stream, type, scaled_sum(2)));
          CHECK(error.code == ErrorCode::invalid_argument);
          CHECK(error.detail.find("ncclRedOpCreatePreMulSum") != std::string::npos);
          CHECK(must_fail(communicator.grouped([&]() -> Result<void> {
                  CHECK_FALSE(sums_of(communicator, stream, type, scaled_sum(2)));
                  return {};
                })).code == ErrorCode::invalid_argument);
          CHECK_FALSE(communicator.error());
          CHECK(must(sums_of(communicator, stream, type, ReduceOp::max)).front() == 2);
          must(group.barrier());
        });
    CHECK(nccl().count("made_red_ops") == before);
  }
}

TEST_CASE_FIXTURE(Machine, "an op that NCCL refuses to make is told as a call that it refuses") {
  run_in_both_modes([](Communicator& communicator, StatelessProcessGroup& group, nccl::Mode mode) {
    constexpr auto type = DataType::float32;
    Stream stream(communicator);
    must(group.barrier());
    const long before = nccl().count("collectives");
    if (communicator.rank() == 0) {
      REQUIRE(nccl().fault("red_op:result=4@0*1") == 0);
      const Error error = must_fail(sums_of(communicator, stream, type, scaled_sum(2)));
      CHECK(error.code == ErrorCode::nccl);
      CHECK(error.actual == 4);
      CHECK(error.detail.find("ncclRedOpCreatePreMulSum") != std::string::npos);
      CHECK(communicator.error().has_value() == (mode == nccl::Mode::nonblocking));
      CHECK(nccl().group_end() == 5);  // none is open
    }
    if (communicator.rank() == 0 && mode == nccl::Mode::blocking) {
      REQUIRE(nccl().fault("red_op:result=4@0+1*1") == 0);
      CHECK(must_fail(communicator.grouped([&]() -> Result<void> {
              must(sums_of(communicator, stream, type, scaled_sum(2)));
              CHECK_FALSE(sums_of(communicator, stream, type, scaled_sum(2)));
              return {};
            })).actual == 4);
      CHECK_FALSE(communicator.error());
    }
    must(group.barrier());
    CHECK(nccl().count("collectives") == before);
    if (mode == nccl::Mode::nonblocking) return;
    CHECK(must(sums_of(communicator, stream, type, scaled_on(communicator))) ==
          scaled_sums(team_size, element_count));
  });
}

TEST_CASE_FIXTURE(Machine, "a call that is refused leaves no op behind") {
  run_in_both_modes([](Communicator& communicator, StatelessProcessGroup& group, nccl::Mode) {
    Stream stream(communicator);
    if (communicator.rank() == 0) {
      REQUIRE(nccl().fault("collective:result=5@0*1") == 0);
      const Error error =
          must_fail(sums_of(communicator, stream, DataType::float16, scaled_sum(2)));
      CHECK(error.actual == 5);
      CHECK(nccl().count("red_ops") == 0);
    }
    must(group.barrier());
  });
}

TEST_CASE_FIXTURE(Machine, "a scaled sum that waits for others leaves no op when it is aborted") {
  run_in_both_modes(
      [](Communicator& communicator, StatelessProcessGroup& group, nccl::Mode) {
        Elements own(DataType::float32, std::vector<double>{1});
        Stream stream(communicator);
        if (communicator.rank() == 0) {
          const Error error = must_fail(communicator.all_reduce(  // it has to connect
              own.at(), own.at(), 1, DataType::float32, scaled_sum(2), stream.get(), 300ms));
          CHECK(error.code == ErrorCode::timed_out);
          CHECK(nccl().count("red_ops") == 0);
        }
        must(group.barrier());
        stream.wait();
      },
      false);
}

}  // namespace
}  // namespace muster::test
