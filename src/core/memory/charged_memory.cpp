#include "core/memory/charged_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <utility>

#include "core/memory/long_bytes.h"

namespace muster::core {

/// Null, or throws, when the system refuses.
char* ChargedMemory::reallocate(char* memory, std::size_t bytes, Charging charging) {
  for (;;) {
    if (void* const grown = std::realloc(memory, bytes)) return static_cast<char*>(grown);
    if (charging != Charging::always) return nullptr;
    const std::new_handler make_room = std::get_new_handler();  // as operator new does
    if (make_room == nullptr) throw std::bad_alloc();
    make_room();
  }
}

/// Into memory that was in use before, if there is some of that length: it is the system's already,
/// used or not, so all of it is charged.
bool ChargedMemory::grow_into_freed(std::size_t bytes) {
  const FreedMemory::Taken taken = quota_->take_freed(bytes);
  if (taken.memory == nullptr) return false;
  if (!quota_->charge(taken.bytes - size_bytes_)) {
    quota_->give_back(taken.memory, taken.bytes);
    return false;
  }
  if (memory_ != nullptr) {
    std::memcpy(taken.memory, memory_, size_bytes_);
    std::free(memory_);
  }
  memory_ = taken.memory;
  size_bytes_ = allocated_bytes_ = taken.bytes;
  return true;
}

bool ChargedMemory::grow(std::size_t size_bytes, std::size_t later_bytes, Charging charging) {
  const std::size_t most_bytes = std::max(size_bytes, later_bytes);
  const bool has_to_move = size_bytes > allocated_bytes_;
  if (has_to_move && most_bytes >= FreedMemory::kept_bytes_min && grow_into_freed(most_bytes)) {
    return true;
  }
  const std::size_t added_bytes = size_bytes - size_bytes_;
  if (!quota_->charge(added_bytes, charging)) return false;
  if (has_to_move) {
    char* grown = nullptr;
    try {
      grown = reallocate(memory_, most_bytes, charging);
    } catch (...) {
      quota_->release(added_bytes);
      throw;
    }
    if (grown == nullptr) {
      quota_->release(added_bytes);
      quota_->set_short(true);
      return false;
    }
    memory_ = grown;
    allocated_bytes_ = most_bytes;
  }
  size_bytes_ = size_bytes;
  return true;
}

void ChargedMemory::charge_to(Quota& quota) {
  if (size_bytes_ != 0) {
    quota_->release(size_bytes_);
    quota.charge_always(size_bytes_);
  }
  quota_ = &quota;
}

void ChargedMemory::release() {
  if (memory_ == nullptr) return;
  quota_->release(size_bytes_);
  quota_->give_back(std::exchange(memory_, nullptr), size_bytes_);
  size_bytes_ = allocated_bytes_ = 0;
}

bool ChargedMemory::has(std::string_view bytes) const {
  const std::less_equal<const char*> is_not_after;
  return size_bytes_ != 0 && is_not_after(begin(), bytes.data()) &&
         is_not_after(bytes.data() + bytes.size(), begin() + size_bytes_);
}

bool ChargedMemory::is_mostly(std::string_view bytes) const {
  return has(bytes) && bytes.size() >= allocated_bytes_ - allocated_bytes_ / 8;
}

Payload ChargedMemory::take_over(Quota& quota, std::string_view bytes, Charging charging) {
  const std::uint64_t charged_bytes = allocated_bytes_ + payload_overhead_bytes;
  quota_->release(size_bytes_);  // or it would count twice
  if (!quota.charge(charged_bytes, charging)) {
    quota_->charge_always(size_bytes_);
    return nullptr;
  }
  try {
    Payload taken = std::make_shared<const LongBytes>(quota, memory_, allocated_bytes_, bytes);
    memory_ = nullptr;
    size_bytes_ = allocated_bytes_ = 0;
    return taken;
  } catch (const std::bad_alloc&) {
    quota.release(charged_bytes);
    quota_->charge_always(size_bytes_);
    quota.set_short(true);
    return nullptr;
  }
}

}  // namespace muster::core
