#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>

#include <doctest/doctest.h>

#include "nccl/doubles/world.h"

TEST_SUITE_BEGIN("nccl_doubles_data");

namespace muster::test {
namespace {

enum Reduction : int { sum, product, maximum, minimum, average };

/// An all-reduce of one element per rank: what rank 2 gets of ranks that have 2, 3 and 4.
template <class Element>
Element reduced(const World& world, int type, int reduction, const std::array<Element, 3>& in) {
  std::array<Element, 3> out{};
  for (int rank = 0; rank < 3; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    REQUIRE(begins(nccl().all_reduce(&in[index], &out[index], 1, type, reduction, world[rank],
                                     world.stream(rank))));
  }
  world.synchronize();
  CHECK(out[0] == out[2]);
  CHECK(out[1] == out[2]);
  return out[2];
}

template <class Element>
void check_reductions(const World& world, int type) {
  CAPTURE(type);
  const std::array<Element, 3> in{2, 3, 4};
  CHECK(reduced<Element>(world, type, sum, in) == 9);
  CHECK(reduced<Element>(world, type, product, in) == 24);
  CHECK(reduced<Element>(world, type, maximum, in) == 4);
  CHECK(reduced<Element>(world, type, minimum, in) == 2);
  CHECK(reduced<Element>(world, type, average, in) == 3);
}

TEST_CASE("every type is reduced by every operation") {
  const CleanDoubles clean;
  World world(3);
  world.start();
  check_reductions<std::int8_t>(world, 0);
  check_reductions<std::uint8_t>(world, 1);
  check_reductions<std::int32_t>(world, 2);
  check_reductions<std::uint32_t>(world, 3);
  check_reductions<std::int64_t>(world, 4);
  check_reductions<std::uint64_t>(world, 5);
  check_reductions<float>(world, 7);
  check_reductions<double>(world, 8);
  using Half = std::uint16_t;
  const std::array<Half, 3> halves{0x4000, 0x4200, 0x4400};  // 2, 3, 4
  CHECK(reduced<Half>(world, 6, sum, halves) == 0x4880);     // 9
  CHECK(reduced<Half>(world, 6, average, halves) == 0x4200);
  CHECK(reduced<Half>(world, 6, sum, {0x0001, 0x0001, 0x8000}) == 0x0002);  // below 2^-14
  CHECK(reduced<Half>(world, 6, sum, {0x7bff, 0x7bff, 0}) == 0x7c00);       // beyond: infinity
  CHECK(reduced<Half>(world, 6, sum, {0x3c00, 0x1000, 0}) == 0x3c00);       // 1 + 2^-11: to even
  using Byte = std::uint8_t;
  const std::array<Byte, 3> bytes{0x40, 0x44, 0x48};        // 2, 3, 4
  CHECK(reduced<Byte>(world, 10, sum, bytes) == 0x51);      // 9
  CHECK(reduced<Byte>(world, 10, product, bytes) == 0x5c);  // 24
  CHECK(reduced<Byte>(world, 10, sum, {0x7e, 0x7e, 0}) == 0x7e);
  CHECK(reduced<Byte>(world, 11, maximum, {0x40, 0x42, 0xc4}) == 0x42);
  CHECK(reduced<Byte>(world, 11, sum, {0x7b, 0x7b, 0}) == 0x7b);
  const std::array<Half, 3> brains{0x4000, 0x4040, 0x4080};   // 2, 3, 4
  CHECK(reduced<Half>(world, 9, sum, brains) == 0x4110);      // 9
  CHECK(reduced<Half>(world, 9, product, brains) == 0x41c0);  // 24
}

TEST_CASE("all collectives move what they should, in place, too, and more than sockets hold") {
  const CleanDoubles clean;
  constexpr std::size_t count = 600'000;
  World world(3);
  world.start();
  std::array<std::vector<int>, 3> in;
  std::array<std::vector<int>, 3> out;
  const auto prepare = [&](std::size_t in_size, std::size_t out_size) {
    for (std::size_t rank = 0; rank < 3; ++rank) {
      in[rank].resize(in_size);
      std::iota(in[rank].begin(), in[rank].end(), static_cast<int>(rank) * 1000);
      out[rank].assign(out_size, -1);
    }
  };
  const auto on_each_rank = [&](const auto& call) {
    for (int rank = 0; rank < 3; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      REQUIRE(begins(call(in[index].data(), out[index].data(), world[rank], world.stream(rank))));
    }
    world.synchronize();
  };
  prepare(count, 3 * count);
  on_each_rank([](const int* from, int* to, void* own, void* stream) {
    return nccl().all_gather(from, to, count, int32_type, own, stream);
  });
  for (const auto& all : out) {
    for (std::size_t rank = 0; rank < 3; ++rank) {
      REQUIRE(std::memcmp(&all[rank * count], in[rank].data(), count * sizeof(int)) == 0);
    }
  }
  prepare(3 * count, count);
  on_each_rank([](const int* from, int* to, void* own, void* stream) {
    return nccl().reduce_scatter(from, to, count, int32_type, sum, own, stream);
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(out[rank].front() == 3 * static_cast<int>(rank * count) + 3000);
    CHECK(out[rank].back() == 3 * static_cast<int>(rank * count + count - 1) + 3000);
  }
  prepare(count, count);
  on_each_rank([](const int* from, int* to, void* own, void* stream) {
    return nccl().broadcast(from, to, count, int32_type, 1, own, stream);
  });
  for (const auto& all : out) CHECK(all == in[1]);
  prepare(count, count);
  on_each_rank([](const int* from, int* to, void* own, void* stream) {
    return nccl().reduce(from, to, count, int32_type, maximum, 2, own, stream);
  });
  CHECK(out[2] == in[2]);
  CHECK(out[0].front() == -1);
  prepare(count, 0);
  on_each_rank([&](const int* from, int*, void* own, void* stream) {
    return nccl().all_reduce(from, const_cast<int*>(from), count, int32_type, sum, own, stream);
  });
  CHECK(in[0].back() == 3 * static_cast<int>(count - 1) + 3000);
}

TEST_CASE("sends and receives of a group do not wait for each other") {
  const CleanDoubles clean;
  constexpr std::size_t count = 1'000'000;
  World world(3);
  world.start();
  // Each to each, itself included, and all receive before they send.
  std::vector<std::vector<int>> in(9, std::vector<int>(count, -1));
  std::vector<std::vector<int>> out;
  for (int i = 0; i < 9; ++i) out.emplace_back(count, i);
  for (int rank = 0; rank < 3; ++rank) {
    REQUIRE(nccl().group_start() == 0);
    for (int peer = 0; peer < 3; ++peer) {
      REQUIRE(begins(nccl().receive(in[static_cast<std::size_t>(3 * rank + peer)].data(), count,
                                    int32_type, peer, world[rank], world.stream(rank))));
    }
    for (int peer = 0; peer < 3; ++peer) {
      REQUIRE(begins(nccl().send(out[static_cast<std::size_t>(3 * peer + rank)].data(), count,
                                 int32_type, peer, world[rank], world.stream(rank))));
    }
    REQUIRE(begins(nccl().group_end()));
  }
  world.synchronize();
  CHECK(in == out);
}

TEST_CASE("operations of one communicator take turns, on whatever streams") {
  const CleanDoubles clean;
  World world(2);
  world.start();
  std::array<int, 2> values{1, 2};
  for (int round = 0; round < 20; ++round) {
    for (int rank = 0; rank < 2; ++rank) {
      int& value = values[static_cast<std::size_t>(rank)];
      REQUIRE(begins(nccl().all_reduce(&value, &value, 1, int32_type, maximum, world[rank],
                                       world.stream((rank + round) % 2))));
    }
    world.synchronize();
  }
  CHECK(values == std::array<int, 2>{2, 2});
}

TEST_CASE("ranks that call different things hang until an abort, and the test is told why") {
  const CleanDoubles clean;
  std::array<int, 8> memory{};
  const auto stuck_after = [&](const auto& one, const auto& other) {
    World world(2);
    world.start();
    REQUIRE(begins(one(world[0], world.stream(0))));
    REQUIRE(begins(other(world[1], world.stream(1))));
    await([] { return nccl().count("stuck") > 0; });
    CHECK(world.settled(0) == 0);
    CHECK(world.settled(1) == 0);
    CHECK(cuda().query_stream(world.stream(1)) == 600);
    CHECK(world.abort(0) == 0);
    CHECK(world.abort(1) == 0);
    world.synchronize();
    return std::string(nccl().last_mismatch());
  };
  const auto reduce = [&](std::size_t count, int type, int reduction) {
    return [=, &memory](void* own, void* stream) {
      return nccl().all_reduce(&memory[0], &memory[4], count, type, reduction, own, stream);
    };
  };
  const auto gather = [&](void* own, void* stream) {
    return nccl().all_gather(&memory[0], &memory[2], 1, int32_type, own, stream);
  };
  CHECK(stuck_after(reduce(1, int32_type, sum), gather).find("all_gather") != std::string::npos);
  const auto first = reduce(1, int32_type, sum);
  CHECK(stuck_after(first, reduce(2, int32_type, sum)).find("of 2") != std::string::npos);
  CHECK(stuck_after(first, reduce(1, float32_type, sum)).find("type 7") != std::string::npos);
  CHECK(stuck_after(first, reduce(1, int32_type, product)).find("reduction 1") !=
        std::string::npos);
  const auto send = [&](void* own, void* stream) {
    return nccl().send(&memory[0], 2, int32_type, 1, own, stream);
  };
  const auto receive = [&](void* own, void* stream) {
    return nccl().receive(&memory[4], 1, int32_type, 0, own, stream);
  };
  CHECK_FALSE(stuck_after(send, receive).empty());
}

TEST_CASE("what is queued behind an aborted operation does nothing, and the stream goes on") {
  const CleanDoubles clean;
  World world(2);
  world.start().connect();
  std::array<int, 2> values{1, 2};
  for (int count = 0; count < 2; ++count) {
    REQUIRE(begins(
        nccl().all_reduce(&values[0], &values[0], 1, int32_type, sum, world[0], world.stream(0))));
    CHECK(world.settled(0) == 0);
  }
  CHECK(cuda().query_stream(world.stream(0)) == 600);
  CHECK(world.abort(0) == 0);
  CHECK(cuda().synchronize_stream(world.stream(0)) == 0);
  CHECK(values[0] == 1);
}

TEST_CASE("faults of collectives: later, an error, and an end of the peer") {
  const CleanDoubles clean;
  World world(2);
  world.start();
  std::array<int, 2> values{1, 2};
  const auto reduce = [&](int rank) {
    int& value = values[static_cast<std::size_t>(rank)];
    return nccl().all_reduce(&value, &value, 1, int32_type, sum, world[rank], world.stream(rank));
  };
  REQUIRE(nccl().fault("collective:later=20@0*1") == 0);
  CHECK(reduce(0) == 7);
  CHECK(begins(reduce(1)));
  world.synchronize();
  CHECK(values == std::array<int, 2>{3, 3});
  REQUIRE(nccl().fault("collective:async=3@0*1") == 0);
  CHECK(begins(reduce(0)));
  await([&] { return async_error(world[0]) == 3; });
  CHECK(begins(reduce(1)));
  CHECK(world.settled(1) == 0);
  CHECK(world.abort(0) == 0);  // its neighbour sees the connection end
  await([&] { return async_error(world[1]) == 6; });
  CHECK(cuda().query_stream(world.stream(1)) == 600);
  CHECK(reduce(1) == 6);
}

}  // namespace
}  // namespace muster::test
