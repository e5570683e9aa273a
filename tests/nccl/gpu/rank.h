#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "muster/nccl.h"
#include "muster/process_group.h"
#include "muster/store.h"
#include "nccl/gpu/driver.h"

namespace muster::test::gpu {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// Longer than this nothing takes that is to come to an end.
constexpr auto patience = 60s;

/// How long something took, many times.
class Times {
 public:
  void add(Clock::duration time);
  std::size_t count() const { return us_.size(); }
  double median_us() const { return at(0.5); }
  /// Of a hundred, one is longer.
  double long_us() const { return at(0.99); }
  double longest_us() const { return at(1); }

 private:
  double at(double part) const;
  std::vector<double> us_;
};

double ms_since(Clock::time_point began);

/// The value, or a Failure with the error's message.
template <class T>
T require(Result<T> result) {
  if (!result.has_value()) throw Failure(result.error().message());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// One process of a check, as its arguments tell: NAME=VALUE each. What it finds it prints, a line
/// for each: `fails|WHAT`, `figure|NAME|VALUE|UNIT`, `short|` where time was up before all was
/// done.
class Rank {
 public:
  explicit Rank(std::map<std::string, std::string> settings);

  const std::string& text(const std::string& name) const;
  long number(const std::string& name) const;
  std::size_t bytes() const { return static_cast<std::size_t>(number("bytes")); }
  Milliseconds ms(const std::string& name) const { return Milliseconds(number(name)); }

  int index() const { return index_; }
  int size() const { return size_; }
  int device() const { return device_; }
  nccl::Mode mode() const;
  Store& store() { return store_; }
  const Driver& driver() const { return driver_; }

  /// A group of all, or of some, in which this process has another rank.
  StatelessProcessGroup join(const std::string& name) { return join(name, index_, size_); }
  StatelessProcessGroup join(const std::string& name, int rank, int size);
  nccl::Options options() const;
  Communicator create(StatelessProcessGroup& group) { return create(group, options()); }
  Communicator create(StatelessProcessGroup& group, const nccl::Options& options);

  /// Where it is: for the log of a rank that does not go on.
  void note(const std::string& what) const;
  /// Says so if it does not hold.
  void expect(bool holds, const std::string& what);
  void figure(const std::string& name, double value, const std::string& unit);

  /// Rank 0's number, at all ranks.
  long agreed(long number);
  /// Whether there is more to do, as rank 0 decides, and time for it.
  bool has_more(bool is_wanted);
  bool holds() const { return holds_; }

 private:
  const std::map<std::string, std::string> settings_;
  const int index_;
  const int size_;
  const int device_;
  const Clock::time_point until_;
  long times_ = 0;  ///< that `has_more` was asked
  const Driver& driver_;
  Store store_;
  int agreements_ = 0;
  bool holds_ = true;
};

}  // namespace muster::test::gpu
