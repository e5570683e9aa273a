#pragma once

#include <cstddef>
#include <string_view>

#include "core/memory/payload.h"

namespace muster::core {

/// Memory that requests come in piece by piece, charged to the quota of who sends them. It grows
/// with what has come; whoever keeps a long value of a request takes all of it over instead of a
/// copy.
class ChargedMemory {
 public:
  /// The quota outlives the memory.
  explicit ChargedMemory(Quota& quota) : quota_(&quota) {}
  ~ChargedMemory() { release(); }
  ChargedMemory(const ChargedMemory&) = delete;
  ChargedMemory& operator=(const ChargedMemory&) = delete;

  /// From now on it is charged to another quota, all of it.
  void charge_to(Quota& quota);

  char* begin() { return memory_; }
  const char* begin() const { return memory_; }
  /// That may be used, and are charged.
  std::size_t size_bytes() const { return size_bytes_; }

  /// Makes it longer; what is in it stays. When it has to move, it moves to where it can grow to
  /// `later_bytes` without being copied again: those that are not used are no memory of the
  /// system's. It may become longer than asked for, since what was in use before is charged whole.
  /// False: the quota refuses, or the system, and all is as before. What is charged always throws
  /// std::bad_alloc instead.
  bool grow(std::size_t size_bytes, std::size_t later_bytes, Charging charging);
  void release();

  std::string_view all() const { return {memory_, size_bytes_}; }
  /// Whether `bytes` lie in it.
  bool has(std::string_view bytes) const;
  /// Whether little of it is not `bytes`.
  bool is_mostly(std::string_view bytes) const;
  /// `bytes` of it as a payload, which holds all of it; then this is empty. Null when the quota
  /// refuses, or the system: then it is as before.
  Payload take_over(Quota& quota, std::string_view bytes, Charging charging);

 private:
  static char* reallocate(char* memory, std::size_t bytes, Charging charging);
  bool grow_into_freed(std::size_t bytes);

  Quota* quota_;            ///< used only while something is charged
  char* memory_ = nullptr;  ///< of std::malloc's
  std::size_t size_bytes_ = 0;
  std::size_t allocated_bytes_ = 0;
};

}  // namespace muster::core
