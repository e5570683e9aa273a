#include <algorithm>
#include <stdexcept>

#include "muster/tensor.h"
#include "runtime/questions.h"

namespace muster::bench {
namespace {

const std::vector<std::uint64_t> sizes_bytes = {
    std::uint64_t{1} << 10,  std::uint64_t{4} << 10,   std::uint64_t{16} << 10,
    std::uint64_t{64} << 10, std::uint64_t{256} << 10, std::uint64_t{1} << 20,
    std::uint64_t{4} << 20,  std::uint64_t{16} << 20,  std::uint64_t{64} << 20};

/// How a rank combines its numbers with those of the others, in place.
struct ReduceWay {
  std::string_view subject;
  std::uint64_t count_max;  ///< so many in a row take long enough to be measured
  std::function<void(std::vector<float>& numbers)> all_reduce;
};

std::vector<ReduceWay> reduce_ways_of(Runtime& runtime, const Asked& asked) {
  std::vector<ReduceWay> ways;
  if (asked.wants("shared_memory")) {
    ways.push_back(
        {"shared_memory", 500, [&runtime](std::vector<float>& numbers) {
           TensorOptions options;
           options.way = TensorWay::shared_memory;
           must(all_reduce_tensor(runtime.world(), tensor_of(numbers), ReduceOp::sum, options));
         }});
  }
  Communicator* const gloo = runtime.world().communicator("cpu");
  if (gloo != nullptr && asked.wants("gloo")) {
    ways.push_back({"gloo", 100, [gloo](std::vector<float>& numbers) {
                      must(gloo->all_reduce(numbers.data(), numbers.data(), numbers.size(),
                                            DataType::float32, ReduceOp::sum, nullptr));
                    }});
  }
  return ways;
}

int count_for(const ReduceWay& way, std::uint64_t bytes) {
  constexpr std::uint64_t all_bytes = std::uint64_t{96} << 20;
  return static_cast<int>(std::clamp<std::uint64_t>(all_bytes / bytes, 3, way.count_max));
}

/// That it does what it should; and memory that is new is so no more.
void check(const BenchRank& rank, const ReduceWay& way, std::vector<float>& numbers) {
  std::fill(numbers.begin(), numbers.end(), static_cast<float>(rank.rank() + 1));
  way.all_reduce(numbers);
  const int sum = rank.size() * (rank.size() + 1) / 2;
  const bool is_right = std::all_of(numbers.begin(), numbers.end(), [sum](float number) {
    return static_cast<int>(number) == sum;
  });
  if (!is_right) throw std::runtime_error(std::string(way.subject) + " has combined wrongly");
  // What is measured adds zeros: sums of others would grow without end.
  std::fill(numbers.begin(), numbers.end(), 0.0F);
}

void measure_size(BenchRank& rank, const std::vector<ReduceWay>& ways, std::uint64_t bytes,
                  int rounds) {
  const Json parameters = {{"ranks", rank.size()}, {"bytes", bytes}};
  std::vector<float> numbers(bytes / sizeof(float));
  for (const ReduceWay& way : ways) check(rank, way, numbers);
  take_turns(rounds, ways.size(), [&](std::size_t index) {
    const ReduceWay& way = ways[index];
    const Json found =
        rank.back_to_back(count_for(way, bytes), [&](int) { way.all_reduce(numbers); });
    if (rank.rank() == 0) record("all_reduce", parameters, way.subject, found);
  });
}

}  // namespace

void measure_all_reduce(const BenchServer& server, const Asked& asked) {
  for (const int ranks : asked.ranks.empty() ? std::vector<int>{2, 4} : asked.ranks) {
    run_as_processes(ranks, server.pid(), [&](BenchRank& rank) {
      Runtime runtime(environment_of(rank, server.address()));
      init(runtime, asked.wants("gloo") ? cpu_communicators : "");
      const std::vector<ReduceWay> ways = reduce_ways_of(runtime, asked);
      for (const std::uint64_t bytes : asked.bytes.empty() ? sizes_bytes : asked.bytes) {
        measure_size(rank, ways, bytes, asked.rounds);
      }
      must(runtime.shutdown());
    });
  }
}

}  // namespace muster::bench
