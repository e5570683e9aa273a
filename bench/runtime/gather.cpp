#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "muster/shared.h"
#include "runtime/questions.h"

// What a gather through shared memory has to do at least: all ranks but the first one, which keeps
// its own tensor, copy theirs into memory that is new, at the same time.

namespace muster::bench {
namespace {

/// New memory of the kind that a gather uses: a file without a name in a tmpfs.
class NewMemory {
 public:
  explicit NewMemory(std::size_t bytes)
      : bytes_(bytes), file_(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
    if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(bytes)) != 0)
      throw std::runtime_error("/dev/shm has no room for a file");
    begin_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (begin_ == MAP_FAILED) throw std::runtime_error("no memory to map");
  }
  ~NewMemory() {
    ::munmap(begin_, bytes_);
    ::close(file_);
  }
  NewMemory(const NewMemory&) = delete;
  NewMemory& operator=(const NewMemory&) = delete;

  void* begin() const { return begin_; }

 private:
  const std::size_t bytes_;
  const int file_;
  void* begin_ = nullptr;
};

double memcpy_us(BenchRank& rank, const std::vector<float>& numbers) {
  std::optional<NewMemory> memory;  // freed when all have copied
  return rank.once_us([&] {
    if (rank.rank() == 0) return 0.0;
    const std::size_t bytes = numbers.size() * sizeof(float);
    memory.emplace(bytes);
    std::memcpy(memory->begin(), numbers.data(), bytes);
    return now_us();
  });
}

void check(const std::vector<float>& own, Span<const TensorView> tensors, int ranks) {
  if (tensors.size() != static_cast<std::size_t>(ranks))
    throw std::runtime_error("not all tensors");
  for (std::size_t rank = 0; rank < tensors.size(); ++rank) {
    const TensorView& tensor = tensors.data()[rank];
    const auto* const numbers =
        reinterpret_cast<const float*>(static_cast<const char*>(tensor.data) + tensor.byte_offset);
    const auto expected = static_cast<float>(rank);
    const bool is_right = tensor.element_count() == own.size() && !(numbers[0] < expected) &&
                          !(numbers[0] > expected) && !(numbers[own.size() - 1] < expected);
    if (!is_right) throw std::runtime_error("a tensor has other numbers");
  }
}

double gather_us(BenchRank& rank, RankGroup& world, const std::vector<float>& numbers) {
  return rank.once_us([&] {
    double has_all_us = 0;
    must(with_gathered_tensors(world, tensor_of(numbers), [&](Span<const TensorView> tensors) {
      if (rank.rank() != 0) return;
      has_all_us = now_us();
      check(numbers, tensors, rank.size());
    }));
    return has_all_us;
  });
}

void measure_gather_of(BenchRank& rank, Runtime& runtime, std::uint64_t bytes, const Asked& asked) {
  const std::uint64_t own_bytes = bytes / static_cast<std::uint64_t>(rank.size());
  const std::vector<float> numbers(own_bytes / sizeof(float), static_cast<float>(rank.rank()));
  take_turns(asked.rounds, 2, [&](std::size_t index) {
    const std::string subject = index == 0 ? "shared_memory" : "memcpy";
    if (!asked.wants(subject)) return;
    const double took_us =
        index == 0 ? gather_us(rank, runtime.world(), numbers) : memcpy_us(rank, numbers);
    const double written = static_cast<double>(own_bytes) * (rank.size() - 1);
    const Json found = {{"wall_ms", took_us / 1e3}, {"written_gb_per_s", written / took_us / 1e3}};
    if (rank.rank() == 0)
      record("gather", {{"ranks", rank.size()}, {"bytes", bytes}}, subject, found);
  });
}

}  // namespace

void measure_gather(const BenchServer& server, const Asked& asked) {
  const std::uint64_t gibibyte = std::uint64_t{1} << 30;
  for (const int ranks : asked.ranks.empty() ? std::vector<int>{8} : asked.ranks) {
    run_as_processes(ranks, server.pid(), [&](BenchRank& rank) {
      Runtime runtime(environment_of(rank, server.address()));
      init(runtime, "");
      for (const std::uint64_t bytes : asked.bytes.empty() ? std::vector{gibibyte} : asked.bytes)
        measure_gather_of(rank, runtime, bytes, asked);
      must(runtime.shutdown());
    });
  }
}

}  // namespace muster::bench
