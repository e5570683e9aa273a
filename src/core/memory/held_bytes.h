#pragma once

#include <cstdint>
#include <utility>

#include "core/memory/payload.h"

namespace muster::core {

/// Bytes charged to a quota, with its reserve, for as long as this lives: the memory of a group's
/// record beside its payload.
class HeldBytes {
 public:
  HeldBytes() = default;
  HeldBytes(HeldBytes&& other) noexcept { swap(other); }
  HeldBytes& operator=(HeldBytes&& other) noexcept {
    swap(other);
    return *this;
  }
  ~HeldBytes() {
    if (quota_ != nullptr) quota_->release(bytes_);
  }

  /// Charges `bytes` more; false, and nothing is charged, when the quota refuses.
  bool add(Quota& quota, std::uint64_t bytes) {
    if (!quota.charge_reserve(bytes)) return false;
    quota_ = &quota;
    bytes_ += bytes;
    return true;
  }

  /// Takes over what `other` holds, of the same quota.
  void absorb(HeldBytes& other) {
    if (quota_ == nullptr) return swap(other);
    bytes_ += std::exchange(other.bytes_, 0);
  }

 private:
  void swap(HeldBytes& other) noexcept {
    std::swap(quota_, other.quota_);
    std::swap(bytes_, other.bytes_);
  }

  Quota* quota_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace muster::core
