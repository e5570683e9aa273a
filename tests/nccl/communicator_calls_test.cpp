#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "nccl/communicator_machine.h"
#include "nccl/functions.h"

// What each call of a communicator does with memory, and what it refuses.

namespace muster::test {
namespace {

using Values = std::vector<std::int32_t>;

constexpr auto int32 = DataType::int32;

std::int32_t value_of(int rank, int part) { return 10 * rank + part + 1; }

Values parts_of(int rank) {
  Values values;
  for (int part = 0; part < team_size; ++part) values.push_back(value_of(rank, part));
  return values;
}

void check_reductions(Communicator& communicator, Buffer& from, Buffer& to) {
  const int rank = communicator.rank();
  const auto reduced = [&](ReduceOp operation) {
    from.fill({rank + 1});
    to.fill({0});
    must(communicator.all_reduce(from.at(), to.at(), 1, int32, operation, to.stream()));
    return to.values().front();
  };
  CHECK(reduced(ReduceOp::sum) == 6);
  CHECK(reduced(ReduceOp::product) == 6);
  CHECK(reduced(ReduceOp::max) == 3);
  CHECK(reduced(ReduceOp::min) == 1);
  CHECK(reduced(ReduceOp::average) == 2);

  to.fill({0});
  must(communicator.reduce(from.at(), to.at(), 1, int32, ReduceOp::sum, 1, to.stream()));
  CHECK(to.values().front() == (rank == 1 ? 6 : 0));

  from.fill(parts_of(rank));
  must(communicator.reduce_scatter(from.at(), to.at(), 1, int32, ReduceOp::sum, to.stream()));
  CHECK(to.values().front() == value_of(0, rank) + value_of(1, rank) + value_of(2, rank));
}

void check_moves(Communicator& communicator, Buffer& from, Buffer& to) {
  const int rank = communicator.rank();
  Values of_all;
  Values for_this;
  for (int other = 0; other < team_size; ++other) {
    of_all.push_back(value_of(other, 0));
    for_this.push_back(value_of(other, rank));
  }
  from.fill(parts_of(rank));
  to.fill({0, 0, 0});
  must(communicator.broadcast(from.at(), to.at(), 3, int32, 2, to.stream()));
  CHECK(to.values() == parts_of(2));
  must(communicator.all_gather(from.at(), to.at(), 1, int32, to.stream()));
  CHECK(to.values() == of_all);
  must(communicator.all_to_all(from.at(), to.at(), 1, int32, to.stream()));
  CHECK(to.values() == for_this);
  to.fill({0, 0, 0});
  must(communicator.gather(from.at(), to.at(), 1, int32, 1, to.stream()));
  CHECK(to.values() == (rank == 1 ? of_all : Values{0, 0, 0}));
  to.fill({0, 0, 0});
  must(communicator.scatter(from.at(), to.at(), 1, int32, 2, to.stream()));
  CHECK(to.values() == Values{value_of(2, rank), 0, 0});

  const int next = (rank + 1) % team_size;
  const int last = (rank + team_size - 1) % team_size;
  must(communicator.grouped([&]() -> Result<void> {
    must(communicator.send(from.at(), 1, int32, next, to.stream()));
    return communicator.recv(to.at(), 1, int32, last, to.stream());
  }));
  CHECK(to.values().front() == value_of(last, 0));
}

TEST_CASE_FIXTURE(Machine,
                  "every collective gives what it should, also where the library has few") {
  nccl::Functions table = must(nccl_internal::load_nccl(std::getenv("NCCL_DOUBLE")));
  for (const bool has_all : {true, false}) {
    if (!has_all) table.all_to_all = nullptr;
    if (!has_all) table.gather = table.scatter = nullptr;
    nccl::Options options = doubled();
    options.nccl = &table;
    for (const nccl::Mode mode : {nccl::Mode::nonblocking, nccl::Mode::blocking}) {
      options.mode = mode;
      run_communicators(team_size, options,
                        [](Communicator& communicator, StatelessProcessGroup& group) {
                          Buffer from(communicator.rank(), team_size);
                          Buffer to(communicator.rank(), team_size);
                          check_reductions(communicator, from, to);
                          check_moves(communicator, from, to);
                          must(group.barrier());
                        });
    }
  }
}

TEST_CASE_FIXTURE(Machine, "parts of different sizes are gathered, scattered and reduced") {
  for (const nccl::Mode mode : {nccl::Mode::nonblocking, nccl::Mode::blocking}) {
    nccl::Options options = doubled();
    options.mode = mode;
    run_communicators(
        team_size, options, [](Communicator& communicator, StatelessProcessGroup& group) {
          const int rank = communicator.rank();
          const std::vector<std::size_t> counts{1, 0, 2};
          const Values all{10, 30, 31};
          const Values own = rank == 0 ? Values{10} : rank == 1 ? Values{} : Values{30, 31};
          Buffer part(rank, 2);
          Buffer whole(rank, 3);
          part.fill(own);
          must(communicator.all_gather_v(part.at(), whole.at(), counts, int32, whole.stream()));
          CHECK(whole.values() == all);
          whole.fill({0, 0, 0});
          must(communicator.gather_v(part.at(), whole.at(), counts, int32, 2, whole.stream()));
          CHECK(whole.values() == (rank == 2 ? all : Values{0, 0, 0}));
          part.fill({0, 0});
          must(communicator.scatter_v(whole.at(), part.at(), counts, int32, 2, part.stream()));
          CHECK(part.values() == (rank == 2 ? own : rank == 0 ? Values{10, 0} : Values{0, 0}));
          whole.fill({1, 2, 3});
          part.fill({0, 0});
          must(communicator.reduce_scatter_v(whole.at(), part.at(), counts, int32, ReduceOp::sum,
                                             part.stream()));
          CHECK(part.values() == (rank == 2   ? Values{6, 9}
                                  : rank == 0 ? Values{3, 0}
                                              : Values{0, 0}));
          must(group.barrier());
        });
  }
}

TEST_CASE_FIXTURE(Machine, "NCCL is called from 2.18 on, and for float8 from 2.24 on") {
  for (const int version : {21800, 22300, 22400}) {
    CAPTURE(version);
    nccl().set_version(version);
    run_communicators(
        team_size, doubled(), [version](Communicator& communicator, StatelessProcessGroup& group) {
          Buffer buffer(communicator.rank(), 1);
          buffer.fill({0x40});  // 2, as a float8 with 4 bits of exponent
          const auto reduced = reduce(communicator, buffer, default_timeout, DataType::float8_e4m3);
          CHECK(reduced.has_value() == (version >= 22400));
          if (!reduced) {
            CHECK(reduced.error().code == ErrorCode::invalid_argument);
            CHECK(reduced.error().detail.find("has no float8") != std::string::npos);
            CHECK_FALSE(communicator.error());
            must(reduce(communicator, buffer));
          }
          CHECK(buffer.values().front() ==
                (version >= 22400 ? 0x4c : 3 * 0x40));  // 6, if it was added
          must(group.barrier());
        });
  }
  nccl().set_version(22809);
}

TEST_CASE_FIXTURE(Machine, "what no call can mean is refused, and nothing is issued for it") {
  run_communicators(
      team_size, doubled(), [](Communicator& communicator, StatelessProcessGroup& group) {
        Buffer buffer(communicator.rank(), team_size);
        const auto all_reduce = [&](DataType type, ReduceOp operation, std::size_t count,
                                    Duration timeout = default_timeout) {
          return must_fail(communicator.all_reduce(buffer.at(), buffer.at(), count, type, operation,
                                                   buffer.stream(), timeout))
              .code;
        };
        constexpr auto refused = ErrorCode::invalid_argument;
        must(group.barrier());
        const long before = nccl().count("collectives");
        CHECK(all_reduce(static_cast<DataType>(99), ReduceOp::sum, 1) == refused);
        CHECK(all_reduce(int32, static_cast<ReduceOp>(99), 1) == refused);
        CHECK(all_reduce(int32, ReduceOp::sum, std::numeric_limits<std::size_t>::max()) == refused);
        CHECK(all_reduce(int32, ReduceOp::sum, 1, Duration(-5)) == refused);
        for (const int root : {-1, team_size}) {
          const auto sent =
              communicator.broadcast(buffer.at(), buffer.at(), 1, int32, root, buffer.stream());
          CHECK(must_fail(sent).code == refused);
        }
        CHECK(must_fail(nccl::native_handle(communicator)).code == refused);
        must(group.barrier());
        CHECK(nccl().count("collectives") == before);
        CHECK_FALSE(communicator.error());

        Communicator moved = std::move(communicator);
        CHECK(all_reduce(int32, ReduceOp::sum, 1) == ErrorCode::closed);
        CHECK(must_fail(communicator.close()).code == ErrorCode::closed);
        CHECK(communicator.rank() == -1);
        Communicator::abort_all({nullptr, &communicator});
        must(group.barrier());
      });
}

TEST_CASE_FIXTURE(
    Machine,
    "a group that is left by an exception is closed, and the caller's device is as it was") {
  run_communicators(
      team_size, doubled(), [](Communicator& communicator, StatelessProcessGroup& group) {
        Buffer buffer(communicator.rank(), 1);
        const CurrentDevice other((communicator.rank() + 1) % device_count);
        const auto is_as_it_was = [&] {
          int device = -1;
          cuda().current_device(&device);
          return device == (communicator.rank() + 1) % device_count;
        };
        CHECK_THROWS_AS(
            (void)communicator.grouped([]() -> Result<void> { throw std::runtime_error("no"); }),
            std::runtime_error);
        CHECK(nccl().group_end() != 0);  // there is none
        CHECK(is_as_it_was());
        buffer.fill({1});
        must(communicator.all_reduce(buffer.at(), buffer.at(), 1, int32, ReduceOp::sum,
                                     buffer.stream()));
        CHECK(is_as_it_was());
        CHECK(buffer.values().front() == team_size);
        must(group.barrier());
        must(communicator.close());
        CHECK(is_as_it_was());
        must(group.barrier());
      });
}

/// What a host may do wrong inside `grouped`, after NCCL has taken a call of it.
struct Misstep {
  const char* what;
  std::function<Result<void>(Communicator& communicator, Buffer& buffer)> work;
  bool throws = false;
  ErrorCode told = ErrorCode::aborted;
};

const std::vector<Misstep>& missteps() {
  static const std::vector<Misstep> all{
      {"throws", [](Communicator&, Buffer&) -> Result<void> { throw std::runtime_error("no"); },
       true, ErrorCode::aborted},
      {"fails",
       [](Communicator&, Buffer&) -> Result<void> {
         Error error;
         error.code = ErrorCode::busy;
         return error;
       },
       false, ErrorCode::busy},
      {"passes over a call that cannot be meant",
       [](Communicator& communicator, Buffer& buffer) -> Result<void> {
         CHECK_FALSE(reduce(communicator, buffer, default_timeout, static_cast<DataType>(99)));
         return {};
       },
       false, ErrorCode::invalid_argument},
      {"passes over a call that NCCL refuses",
       [](Communicator& communicator, Buffer& buffer) -> Result<void> {
         REQUIRE(nccl().fault("collective:result=4@0*1") == 0);
         CHECK_FALSE(reduce(communicator, buffer));
         return {};
       },
       false, ErrorCode::nccl},
  };
  return all;
}

TEST_CASE_FIXTURE(Machine, "a group in which something fails issues nothing, and is told of it") {
  for (const Misstep& misstep : missteps()) {
    CAPTURE(misstep.what);
    nccl::Options options = doubled();
    options.warm_up = true;
    run_communicators(team_size, options,
                      [&](Communicator& communicator, StatelessProcessGroup& group) {
                        Buffer buffer(communicator.rank(), 1);
                        buffer.fill({5});
                        must(group.barrier());
                        const long before = nccl().count("collectives");
                        if (communicator.rank() == 0) {
                          const auto grouped = [&] {
                            return communicator.grouped([&]() -> Result<void> {
                              must(reduce(communicator, buffer));
                              return misstep.work(communicator, buffer);
                            });
                          };
                          if (misstep.throws) CHECK_THROWS_AS((void)grouped(), std::runtime_error);
                          if (!misstep.throws) CHECK(must_fail(grouped()).code == misstep.told);
                          const auto ended = communicator.error();
                          REQUIRE(ended.has_value());
                          if (misstep.told != ErrorCode::nccl)
                            CHECK(ended->code == ErrorCode::aborted);
                          CHECK(must_fail(reduce(communicator, buffer)).code == ended->code);
                          CHECK(nccl().group_end() == 5);  // none is open
                        }
                        must(group.barrier());
                        CHECK(nccl().count("collectives") == before);
                        CHECK(buffer.values().front() == 5);
                        must(group.barrier());
                      });
  }
}

TEST_CASE_FIXTURE(Machine, "a group that fails before NCCL has taken a call leaves all as it was") {
  nccl::Options options = doubled();
  run_communicators(
      team_size, options, [&](Communicator& communicator, StatelessProcessGroup& group) {
        Buffer buffer(communicator.rank(), 1);
        CHECK(must_fail(communicator.grouped([&]() -> Result<void> {
                return reduce(communicator, buffer, default_timeout, static_cast<DataType>(99));
              })).code == ErrorCode::invalid_argument);
        CHECK_FALSE(communicator.error());
        buffer.fill({1});
        must(communicator.grouped([&]() -> Result<void> {
          return communicator.grouped([&] { return reduce(communicator, buffer); });
        }));
        CHECK(buffer.values().front() == team_size);
        must(group.barrier());
      });
}

TEST_CASE_FIXTURE(Machine, "what fails in a group within a group fails that, too") {
  nccl::Options options = doubled();
  options.warm_up = true;
  run_communicators(
      team_size, options, [&](Communicator& communicator, StatelessProcessGroup& group) {
        Buffer buffer(communicator.rank(), 1);
        buffer.fill({5});
        if (communicator.rank() == 0) {
          const auto grouped = communicator.grouped([&]() -> Result<void> {
            must(reduce(communicator, buffer));
            CHECK_FALSE(communicator.grouped([&]() -> Result<void> {
              return reduce(communicator, buffer, default_timeout, static_cast<DataType>(99));
            }));
            return {};
          });
          CHECK(must_fail(grouped).code == ErrorCode::invalid_argument);  // the first failure
          CHECK(communicator.error()->code == ErrorCode::aborted);
        }
        must(group.barrier());
        CHECK(buffer.values().front() == 5);
        must(group.barrier());
      });
}

TEST_CASE_FIXTURE(Machine,
                  "a group within a group that fails before NCCL has taken a call ends nothing") {
  run_communicators(
      team_size, doubled(), [](Communicator& communicator, StatelessProcessGroup& group) {
        Buffer buffer(communicator.rank(), 1);
        const auto grouped = communicator.grouped([&]() -> Result<void> {
          must(communicator.grouped([]() -> Result<void> { return {}; }));
          return communicator.grouped([&] {
            return reduce(communicator, buffer, default_timeout, static_cast<DataType>(99));
          });
        });
        CHECK(must_fail(grouped).code == ErrorCode::invalid_argument);
        CHECK_FALSE(communicator.error());
        buffer.fill({1});
        must(reduce(communicator, buffer));
        CHECK(buffer.values().front() == team_size);
        must(group.barrier());
      });
}

TEST_CASE_FIXTURE(Machine,
                  "an exception of who has NCCL's own handle leaves the communicator in order") {
  run_communicators(
      team_size, doubled(), [](Communicator& communicator, StatelessProcessGroup& group) {
        Buffer buffer(communicator.rank(), 1);
        buffer.fill({1});
        CHECK_THROWS_AS((void)nccl::with_native(communicator,
                                                [&](nccl::Handle handle) -> Result<void> {
                                                  CHECK(begins(nccl().all_reduce(
                                                      buffer.at(), buffer.at(), 1, int32_type, 0,
                                                      handle, buffer.stream())));
                                                  throw std::runtime_error("no");
                                                }),
                        std::runtime_error);
        must(reduce(communicator, buffer));
        CHECK(buffer.values().front() == team_size * team_size);
        must(group.barrier());
      });
}

TEST_CASE_FIXTURE(Machine,
                  "NCCL's own handle is lent, and given to who ends the communicator itself") {
  nccl::Options options = doubled();
  std::atomic<int> told_count{0};
  options.on_loss = OnLoss::notify;
  options.on_end = [&](const Error& error) {
    if (error.rank_ranges == std::vector<RankRange>{{2, 2}}) ++told_count;
  };
  run_communicators(
      team_size, options, [&](Communicator& communicator, StatelessProcessGroup& group) {
        must(nccl::with_native(communicator, [&](nccl::Handle handle) -> Result<void> {
          int rank = -1;
          CHECK(nccl().rank(handle, &rank) == 0);
          CHECK(rank == communicator.rank());
          CHECK(handle == must(nccl::native_handle(communicator)));
          return {};
        }));
        const auto refused = nccl::with_native(communicator, [](nccl::Handle) -> Result<void> {
          Error error;
          error.code = ErrorCode::busy;
          return error;
        });
        CHECK(must_fail(refused).code == ErrorCode::busy);
        must(group.barrier());
        if (communicator.rank() == 2) {
          must(group.leave());
          return;
        }
        await([&] { return told_count >= 2; });
        CHECK_FALSE(communicator.error());
        communicator.abort();
        CHECK(communicator.error()->code == ErrorCode::aborted);
        CHECK(must_fail(nccl::native_handle(communicator)).code == ErrorCode::aborted);
      });
  CHECK(told_count == 2);
}

TEST_CASE_FIXTURE(Machine, "a host's handler hears nothing of a communicator that has gone") {
  auto server = start_server();
  std::atomic<int> told_count{0};
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    nccl::Options options = doubled();
    options.on_end = [&](const Error&) {
      ++told_count;
      throw std::runtime_error("goes nowhere");
    };
    {
      auto communicator = must(nccl::create(group, rank, options));
      must(group.barrier());
    }
    CHECK(told_count <= 2);
    must(group.barrier());
    const int before = told_count;
    if (rank == 1) must(group.leave());
    if (rank == 0) await([&] { return !group.barrier(1s).has_value(); });
    CHECK(told_count == before);
  });
}

TEST_CASE_FIXTURE(Machine,
                  "tables of the host's own that lack something are named for what they lack") {
  nccl::Functions table = must(nccl_internal::load_nccl(std::getenv("NCCL_DOUBLE")));
  table.comm_abort = nullptr;
  nccl::CudaFunctions driver = must(nccl_internal::load_cuda(std::getenv("CUDA_DOUBLE")));
  driver.mem_free = nullptr;
  auto server = start_server();
  run_ranks(2, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 2);
    nccl::Options options = doubled();
    if (rank == 1) options.nccl = &table;
    Error error = must_fail(nccl::create(group, rank, options));
    CHECK(error.code == ErrorCode::library_missing);
    CHECK(error.rank_ranges == std::vector<RankRange>{{1, 1}});
    CHECK(error.detail.find("ncclCommAbort") != std::string::npos);
    options = doubled();
    if (rank == 0) options.cuda = &driver;
    error = must_fail(nccl::create(group, rank, options));
    CHECK(error.code == ErrorCode::library_missing);
    CHECK(error.detail.find("cuMemFree") != std::string::npos);
  });
}

}  // namespace
}  // namespace muster::test
