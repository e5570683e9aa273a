#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "core/payload.h"

namespace muster::core {

/// Memory that requests come in piece by piece, charged to the server's quota. It grows with what
/// has come, where it lies if it can; whoever keeps a long value of a request takes all of it over
/// instead of a copy.
class ChargedMemory {
 public:
  /// The quota outlives the memory.
  explicit ChargedMemory(Quota& quota) : quota_(quota) {}
  ~ChargedMemory() { release(); }
  ChargedMemory(const ChargedMemory&) = delete;
  ChargedMemory& operator=(const ChargedMemory&) = delete;

  char* begin() { return memory_.get(); }
  const char* begin() const { return memory_.get(); }
  std::size_t capacity_bytes() const { return capacity_bytes_; }

  /// What is in it stays. False: the quota refuses, or the system, and all is as before. What is
  /// charged always throws std::bad_alloc instead.
  bool grow(std::size_t capacity_bytes, Charging charging);
  void release();

  /// Whether little of it is not `bytes`.
  bool is_mostly(std::string_view bytes) const;
  /// `bytes` of it as a payload, which holds all of it; then this is empty. Null when the quota
  /// refuses, or the system: then it is as before.
  Payload take_over(Quota& quota, std::string_view bytes);

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<char, Free>;
  class Block;

  Quota& quota_;
  Memory memory_;
  std::size_t capacity_bytes_ = 0;
};

}  // namespace muster::core
