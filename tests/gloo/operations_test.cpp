#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gloo/elements.h"

// Every operation on every type, against values that are computed here.

namespace muster::test {
namespace {

/// Of all ranks' elements at these places.
std::vector<double> reduced(ReduceOp operation, int world_size, DataType type,
                            std::size_t first = 0) {
  std::vector<double> values = part(0, first);
  for (int rank = 1; rank < world_size; ++rank) {
    const auto other = part(rank, first);
    for (std::size_t index = 0; index < count; ++index) {
      double& own = values[index];
      switch (operation) {
        case ReduceOp::sum:
        case ReduceOp::average: own += other[index]; break;
        case ReduceOp::product: own *= other[index]; break;
        case ReduceOp::max: own = std::max(own, other[index]); break;
        case ReduceOp::min: own = std::min(own, other[index]); break;
        case ReduceOp::bit_and:
        case ReduceOp::bit_or:
        case ReduceOp::bit_xor: break;  // no communicator has them
      }
    }
  }
  if (operation != ReduceOp::average) return values;
  for (double& own : values) {
    Elements rounded(type, std::vector<double>{own / world_size});  // integers: the whole part
    own = rounded.values().front();
  }
  return values;
}

TEST_CASE("elements are reduced on all ranks") {
  for (const int world_size : world_sizes) {
    exercise(world_size, [=](Communicator& communicator, DataType type) {
      for (const ReduceOp operation : all_operations) {
        CAPTURE(static_cast<int>(type));
        CAPTURE(static_cast<int>(operation));
        Elements own(type, part(communicator.rank()));
        Elements result(type, count);
        must(communicator.all_reduce(own.at(), result.at(), count, type, operation, nullptr));
        CHECK(result.values() == reduced(operation, world_size, type));
        CHECK(own.values() == part(communicator.rank()));
        must(communicator.all_reduce(own.at(), own.at(), count, type, operation, nullptr));
        CHECK(own.values() == result.values());
      }
    });
  }
}

TEST_CASE("elements are reduced at each root") {
  for (const int world_size : world_sizes) {
    exercise(world_size, [=](Communicator& communicator, DataType type) {
      for (int root = 0; root < world_size; ++root) {
        const bool is_root = communicator.rank() == root;
        for (const ReduceOp operation : all_operations) {
          Elements own(type, part(communicator.rank()));
          Elements result(type, count);
          must(communicator.reduce(own.at(), is_root ? result.at() : nullptr, count, type,
                                   operation, root, nullptr));
          if (is_root) CHECK(result.values() == reduced(operation, world_size, type));
          CHECK(own.values() == part(communicator.rank()));
          must(communicator.reduce(own.at(), is_root ? own.at() : nullptr, count, type, operation,
                                   root, nullptr));
          if (is_root) CHECK(own.values() == result.values());
        }
      }
    });
  }
}

TEST_CASE("elements are reduced, and each rank has a part") {
  for (const int world_size : world_sizes) {
    exercise(world_size, [=](Communicator& communicator, DataType type) {
      const auto own_first = static_cast<std::size_t>(communicator.rank()) * count;
      for (const ReduceOp operation : all_operations) {
        Elements own(type, joined(world_size, [&](int rank) {
                       return part(communicator.rank(), static_cast<std::size_t>(rank) * count);
                     }));
        Elements result(type, count);
        must(communicator.reduce_scatter(own.at(), result.at(), count, type, operation, nullptr));
        CHECK(result.values() == reduced(operation, world_size, type, own_first));
        must(communicator.reduce_scatter(own.at(), own.at(own_first), count, type, operation,
                                         nullptr));
        Elements in_place(type, count);
        std::memcpy(in_place.at(), own.at(own_first), count * size_of(type));
        CHECK(in_place.values() == result.values());
      }
    });
  }
}

TEST_CASE("a root's elements come to all ranks") {
  for (const int world_size : world_sizes) {
    exercise(world_size, [=](Communicator& communicator, DataType type) {
      for (int root = 0; root < world_size; ++root) {
        const bool is_root = communicator.rank() == root;
        Elements own(type, part(communicator.rank()));
        Elements result(type, count);
        must(communicator.broadcast(is_root ? own.at() : nullptr, result.at(), count, type, root,
                                    nullptr));
        CHECK(result.values() == part(root));
        must(communicator.broadcast(own.at(), own.at(), count, type, root, nullptr));
        CHECK(own.values() == part(root));
      }
    });
  }
}

TEST_CASE("all ranks' elements come to all ranks") {
  for (const int world_size : world_sizes) {
    exercise(world_size, [=](Communicator& communicator, DataType type) {
      const auto total = static_cast<std::size_t>(world_size) * count;
      const auto expected = joined(world_size, [](int rank) { return part(rank); });
      Elements own(type, part(communicator.rank()));
      Elements result(type, total);
      must(communicator.all_gather(own.at(), result.at(), count, type, nullptr));
      CHECK(result.values() == expected);
      Elements in_place(type, total);
      void* const place = in_place.at(static_cast<std::size_t>(communicator.rank()) * count);
      std::memcpy(place, own.at(), count * size_of(type));
      must(communicator.all_gather(place, in_place.at(), count, type, nullptr));
      CHECK(in_place.values() == expected);
    });
  }
}

TEST_CASE("elements are gathered at each root, and scattered from it") {
  for (const int world_size : world_sizes) {
    exercise(world_size, [=](Communicator& communicator, DataType type) {
      const auto total = static_cast<std::size_t>(world_size) * count;
      for (int root = 0; root < world_size; ++root) {
        const bool is_root = communicator.rank() == root;
        Elements own(type, part(communicator.rank()));
        Elements all(type, total);
        must(communicator.gather(own.at(), is_root ? all.at() : nullptr, count, type, root,
                                 nullptr));
        if (is_root) {
          CHECK(all.values() == joined(world_size, [](int rank) { return part(rank); }));
        }
        Elements back(type, count);
        must(communicator.scatter(is_root ? all.at() : nullptr, back.at(), count, type, root,
                                  nullptr));
        CHECK(back.values() == own.values());
      }
    });
  }
}

TEST_CASE("each rank sends each other its part") {
  for (const int world_size : world_sizes) {
    exercise(world_size, [=](Communicator& communicator, DataType type) {
      const auto of = [](int from, int to) { return part(from, static_cast<std::size_t>(to)); };
      Elements own(type, joined(world_size, [&](int to) { return of(communicator.rank(), to); }));
      Elements result(type, static_cast<std::size_t>(world_size) * count);
      must(communicator.all_to_all(own.at(), result.at(), count, type, nullptr));
      CHECK(result.values() ==
            joined(world_size, [&](int from) { return of(from, communicator.rank()); }));
    });
  }
}

TEST_CASE("all_to_all in place is refused where it would overwrite what is not sent yet") {
  for (const int world_size : {1, 2, 3}) {
    exercise(world_size, [=](Communicator& communicator, DataType type) {
      const auto total = static_cast<std::size_t>(world_size) * count;
      Elements own(type, std::vector<double>(total, 1));
      const auto done = communicator.all_to_all(own.at(), own.at(), count, type, nullptr);
      CHECK(done.has_value() == (world_size == 1));
      if (!done) {
        CHECK(done.error().code == ErrorCode::invalid_argument);
        CHECK(done.error().operation == "all_to_all");
        CHECK(done.error().detail == "send and receive: not the same buffer");
      }
      CHECK(own.values() == std::vector<double>(total, 1));
      must(communicator.all_to_all(own.at(), own.at(), 0, type, nullptr));
    });
  }
}

TEST_CASE("elements go around a ring, of which no rank waits for another to begin") {
  for (const int world_size : {2, 3, 4}) {
    exercise(world_size, [=](Communicator& communicator, DataType type) {
      const int rank = communicator.rank();
      const int next = (rank + 1) % world_size;
      const int last = (rank + world_size - 1) % world_size;
      Elements own(type, part(rank));
      Elements result(type, count);
      must(communicator.grouped([&] {
        if (auto sent = communicator.send(own.at(), count, type, next, nullptr); !sent) {
          return sent;
        }
        return communicator.recv(result.at(), count, type, last, nullptr);
      }));
      CHECK(result.values() == part(last));
    });
  }
}

TEST_CASE("sends of one rank arrive at another in order") {
  exercise(2, [](Communicator& communicator, DataType type) {
    Elements buffer(type, count);
    for (int turn = 0; turn < 5; ++turn) {
      if (communicator.rank() == 0) {
        Elements own(type, part(turn));
        must(communicator.send(own.at(), count, type, 1, nullptr));
      } else {
        must(communicator.recv(buffer.at(), count, type, 0, nullptr));
        CHECK(buffer.values() == part(turn));
      }
    }
  });
}

TEST_CASE("long buffers are reduced in pieces that end between elements") {
  constexpr std::size_t long_count = 3'000'001;
  auto server = start_server();
  run_ranks(3, [&](int rank) {
    auto store = connect(server);
    auto group = join(store, "g", rank, 3);
    auto communicator = must(gloo::create(group));
    std::vector<std::int32_t> values(long_count);
    std::iota(values.begin(), values.end(), rank);
    must(communicator.all_reduce(values.data(), values.data(), long_count, DataType::int32,
                                 ReduceOp::sum, nullptr));
    bool is_right = true;
    for (std::size_t index = 0; index < long_count; ++index) {
      is_right = is_right && values[index] == static_cast<std::int32_t>(3 * index + 3);
    }
    CHECK(is_right);
    must(communicator.close());
  });
}

/// More than one piece of what ranks reduce at a time.
constexpr std::size_t rounded_count = 50'001;

/// Numbers of very different sizes: what is added first decides what is rounded away.
std::vector<double> rounded_part(int rank) {
  std::vector<double> values;
  for (std::size_t index = 0; index < rounded_count; ++index) {
    const auto place = static_cast<double>(index * 4 + static_cast<std::size_t>(rank));
    values.push_back(std::sin(place) * std::exp2(10 * std::sin(place * 0.7)));
  }
  return values;
}

/// Of these ranks' numbers in this order, each sum rounded.
std::vector<double> summed(DataType type, const std::vector<int>& ranks) {
  std::vector<double> sums(rounded_count);
  for (const int rank : ranks) {
    auto own = Elements(type, rounded_part(rank)).values();
    for (std::size_t index = 0; index < rounded_count; ++index) own[index] += sums[index];
    sums = Elements(type, own).values();
  }
  return sums;
}

TEST_CASE("a sum that is rounded is the same on all ranks, bit for bit") {
  for (const int world_size : {3, 4}) {
    auto server = start_server();
    run_ranks(world_size, [&](int rank) {
      auto store = connect(server);
      auto group = join(store, "g", rank, world_size);
      auto communicator = must(gloo::create(group));
      for (const DataType type : {DataType::float32, DataType::bfloat16}) {
        for (const ReduceOp operation : {ReduceOp::sum, ReduceOp::product, ReduceOp::average}) {
          CAPTURE(static_cast<int>(type));
          CAPTURE(static_cast<int>(operation));
          Elements own(type, rounded_part(rank));
          must(
              communicator.all_reduce(own.at(), own.at(), rounded_count, type, operation, nullptr));
          const std::size_t bytes = rounded_count * size_of(type);
          const auto* const bits = static_cast<const char*>(own.at());
          const auto all = must(group.all_gather_bytes(std::string(bits, bytes), 1));
          for (const std::string& other : all) CHECK(other == all.front());
        }
      }
      must(communicator.close());
    });
  }
}

TEST_CASE("the order of the sums above matters") {
  for (const DataType type : {DataType::float32, DataType::bfloat16}) {
    CHECK(summed(type, {0, 1, 2}) != summed(type, {2, 1, 0}));
  }
}

TEST_CASE("nothing is moved where there are no elements") {
  exercise(2, [](Communicator& communicator, DataType type) {
    must(communicator.all_reduce(nullptr, nullptr, 0, type, ReduceOp::sum, nullptr));
    must(communicator.broadcast(nullptr, nullptr, 0, type, 0, nullptr));
    must(communicator.all_to_all(nullptr, nullptr, 0, type, nullptr));
  });
}

}  // namespace
}  // namespace muster::test
