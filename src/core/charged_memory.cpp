#include "core/charged_memory.h"

#include <functional>
#include <new>
#include <utility>

namespace muster::core {

/// Has taken memory over, with a charge of `charged_bytes` that was made already.
class ChargedMemory::Block final : public ChargedBytes {
 public:
  Block(Memory&& memory, std::string_view view, Quota& quota, std::uint64_t charged_bytes)
      : ChargedBytes(view),
        memory_(std::move(memory)),
        quota_(quota),
        charged_bytes_(charged_bytes) {}
  ~Block() { quota_.release(charged_bytes_); }

 private:
  Memory memory_;
  Quota& quota_;
  std::uint64_t charged_bytes_;
};

bool ChargedMemory::grow(std::size_t capacity_bytes, Charging charging) {
  const std::size_t added_bytes = capacity_bytes - capacity_bytes_;
  if (!quota_.charge(added_bytes, charging)) return false;
  auto* grown = static_cast<char*>(std::realloc(memory_.get(), capacity_bytes));
  while (grown == nullptr && charging == Charging::always) {  // as operator new does
    const std::new_handler make_room = std::get_new_handler();
    if (make_room == nullptr) {
      quota_.release(added_bytes);
      throw std::bad_alloc();
    }
    make_room();
    grown = static_cast<char*>(std::realloc(memory_.get(), capacity_bytes));
  }
  if (grown == nullptr) {
    quota_.release(added_bytes);
    quota_.set_short(true);
    return false;
  }
  static_cast<void>(memory_.release());
  memory_.reset(grown);
  capacity_bytes_ = capacity_bytes;
  return true;
}

void ChargedMemory::release() {
  quota_.release(std::exchange(capacity_bytes_, 0));
  memory_.reset();
}

bool ChargedMemory::is_mostly(std::string_view bytes) const {
  const std::less_equal<const char*> is_not_after;
  const bool is_within = is_not_after(begin(), bytes.data()) &&
                         is_not_after(bytes.data() + bytes.size(), begin() + capacity_bytes_);
  return capacity_bytes_ != 0 && is_within && bytes.size() >= capacity_bytes_ - capacity_bytes_ / 8;
}

Payload ChargedMemory::take_over(Quota& quota, std::string_view bytes) {
  const std::uint64_t charged_bytes = capacity_bytes_ + payload_overhead_bytes;
  quota_.release(capacity_bytes_);  // or it would count twice
  if (!quota.charge(charged_bytes)) {
    quota_.charge_always(capacity_bytes_);
    return nullptr;
  }
  try {
    Payload taken = std::make_shared<const Block>(std::move(memory_), bytes, quota, charged_bytes);
    capacity_bytes_ = 0;
    return taken;
  } catch (const std::bad_alloc&) {
    quota.release(charged_bytes);
    quota_.charge_always(capacity_bytes_);
    quota.set_short(true);
    return nullptr;
  }
}

}  // namespace muster::core
