#pragma once

#include <sys/types.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "measure.h"
#include "muster/runtime.h"
#include "support/process.h"

// The ranks of a job on this host, each a process. They meet, outside of what is measured, on a
// board: memory that they share from their parent.

namespace muster::bench {

/// Throws what the error says.
template <class T>
T must(Result<T> result) {
  if (!result.has_value()) throw std::runtime_error(result.error().message());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

struct Board;

/// One rank, inside its process.
class BenchRank {
 public:
  /// server  the process of musterd
  BenchRank(Board& board, int rank, int size, pid_t server)
      : board_(board), rank_(rank), size_(size), server_(server) {}

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Returns when all ranks have called it. Costs no connection.
  void meet();

  using Work = std::function<void(int index)>;

  /// All ranks run the work `count` times, one right after the other.
  ///
  /// returns  on rank 0: round_us (the time that passed, for each), p50_us and p99_us (between the
  ///          ends of two rounds at the ranks that were last), cpu_us (of all ranks and the server,
  ///          for each), operations
  Json back_to_back(int count, const Work& work);

  /// Rank 0 runs the work when all others wait in theirs, `count` times.
  ///
  /// returns  on rank 0: alone_p50_us and alone_p99_us, from rank 0's call until the last rank has
  ///          returned
  Json alone(int count, const Work& work);

  /// One work of all ranks, which returns when this rank's part of it ended.
  ///
  /// returns  on rank 0: microseconds from the first beginning to the last end
  double once_us(const std::function<double()>& work);

 private:
  double processor_us() const;
  /// On rank 0, of all ranks: the sum, the least, the greatest of what stands on the board.
  std::vector<double> last_ends(int count) const;

  Board& board_;
  const int rank_;
  const int size_;
  const pid_t server_;
};

/// Now, as all processes of this host count it.
double now_us();

/// A musterd of its own for the ranks.
class BenchServer {
 public:
  explicit BenchServer(const std::string& program);

  pid_t pid() const { return process_.pid(); }
  const std::string& address() const { return address_; }

 private:
  test::Process process_;
  std::string address_;
};

/// Runs the part in so many processes, and returns when all have ended. Throws if one has failed;
/// the others are ended then. This process has no other thread.
void run_as_processes(int count, pid_t server, const std::function<void(BenchRank& rank)>& part);

/// Initializes the runtime of a rank. communicators: as RuntimeOptions.
void init(Runtime& runtime, const std::string& communicators);
/// What a launcher would tell a rank.
Environment environment_of(const BenchRank& rank, const std::string& address);

}  // namespace muster::bench
