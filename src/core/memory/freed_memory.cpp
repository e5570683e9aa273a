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
  Instant since;
};

FreedMemory::~FreedMemory() { give_all_back(); }

void FreedMemory::add(char* memory, std::size_t bytes) {
  last_ = new (memory) Block{last_, bytes, now_};
  bytes_ += bytes;
}

void FreedMemory::add_to_keep(char* memory, std::size_t bytes) {
  if (bytes < kept_bytes_min || bytes > kept_bytes_max_ - kept_bytes_) return add(memory, bytes);
  kept_ = new (memory) Block{kept_, bytes, now_};
  bytes_ += bytes;
  kept_bytes_ += bytes;
}

FreedMemory::Taken FreedMemory::take(std::size_t bytes) {
  for (Block** place = &kept_; *place != nullptr; place = &(*place)->before) {
    Block* const block = *place;
    if (block->bytes < bytes || block->bytes - bytes > bytes / 8) continue;
    *place = block->before;
    kept_bytes_ -= block->bytes;
    bytes_ -= block->bytes;
    return {reinterpret_cast<char*>(block), block->bytes};
  }
  return {};
}

void FreedMemory::advance(Instant now) {
  now_ = now;
  Block** place = &kept_;
  while (*place != nullptr) {
    Block* const block = *place;
    if (now - block->since < kept_for) {
      place = &block->before;
      continue;
    }
    *place = block->before;
    kept_bytes_ -= block->bytes;
    block->before = last_;
    last_ = block;
  }
}

void FreedMemory::let_go_of_kept() {
  while (kept_ != nullptr) {
    Block* const block = kept_;
    kept_ = block->before;
    block->before = last_;
    last_ = block;
  }
  kept_bytes_ = 0;
}

void FreedMemory::give_all_back() {
  let_go_of_kept();
  give_back(SIZE_MAX);
}

std::size_t FreedMemory::give_back(std::size_t bytes_max) {
  std::size_t left_bytes = bytes_max;
  while (last_ != nullptr && left_bytes >= last_->bytes) {
    left_bytes -= last_->bytes;
    bytes_ -= last_->bytes;
    Block* const before = last_->before;
    std::free(last_);
    last_ = before;
  }
  if (last_ == nullptr || left_bytes == 0) return bytes_max - left_bytes;
  // Shortens the last block; frees all of it if that cannot be done.
  const std::size_t kept_bytes = std::max(last_->bytes - left_bytes, sizeof(Block));
  const Block was = *last_;
  void* const kept = std::realloc(last_, kept_bytes);
  bytes_ -= was.bytes;
  if (kept != nullptr) {
    bytes_ += kept_bytes;
    last_ = new (kept) Block{was.before, kept_bytes, was.since};
  } else {
    std::free(last_);
    last_ = was.before;
  }
  return bytes_max;
}

}  // namespace muster::core
