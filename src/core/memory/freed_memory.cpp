#include "core/memory/freed_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace muster::core {

/// Stands in the memory that it tells of.
struct FreedMemory::Block {
  Block* before;
  std::size_t bytes;
};

FreedMemory::~FreedMemory() { give_back(SIZE_MAX); }

void FreedMemory::add(char* memory, std::size_t bytes) { last_ = new (memory) Block{last_, bytes}; }

std::size_t FreedMemory::give_back(std::size_t bytes_max) {
  std::size_t left_bytes = bytes_max;
  while (last_ != nullptr && left_bytes >= last_->bytes) {
    left_bytes -= last_->bytes;
    Block* const before = last_->before;
    std::free(last_);
    last_ = before;
  }
  if (last_ == nullptr || left_bytes == 0) return bytes_max - left_bytes;
  // Shortens the last block; frees all of it if that cannot be done.
  const std::size_t kept_bytes = std::max(last_->bytes - left_bytes, sizeof(Block));
  const Block was = *last_;
  void* const kept = std::realloc(last_, kept_bytes);
  if (kept != nullptr) {
    last_ = new (kept) Block{was.before, kept_bytes};
  } else {
    std::free(last_);
    last_ = was.before;
  }
  return bytes_max;
}

}  // namespace muster::core
