#include "core/payload.h"

#include <cassert>
#include <new>

namespace muster::core {

bool Quota::has_room(std::uint64_t bytes) const {
  if (is_short_) return false;
  return used_bytes_ <= limit_bytes_ && bytes <= limit_bytes_ - used_bytes_;
}

bool Quota::charge(std::uint64_t bytes) {
  for (const Quota* quota = this; quota != nullptr; quota = quota->parent_) {
    if (!quota->has_room(bytes)) return false;
  }
  charge_always(bytes);
  return true;
}

bool Quota::charge_reserve(std::uint64_t bytes) {
  for (const Quota* quota = this; quota != nullptr; quota = quota->parent_) {
    const std::uint64_t limit = quota->limit_bytes_ + quota->limit_bytes_ / 8;
    if (quota->used_bytes_ > limit || bytes > limit - quota->used_bytes_) return false;
  }
  charge_always(bytes);
  return true;
}

void Quota::charge_always(std::uint64_t bytes) {
  for (Quota* quota = this; quota != nullptr; quota = quota->parent_) quota->used_bytes_ += bytes;
}

void Quota::release(std::uint64_t bytes) {
  for (Quota* quota = this; quota != nullptr; quota = quota->parent_) {
    assert(quota->used_bytes_ >= bytes);
    quota->used_bytes_ -= bytes;
  }
}

const Quota& Quota::refusing(std::uint64_t bytes) const {
  const Quota* quota = this;
  while (quota->parent_ != nullptr && quota->has_room(bytes)) quota = quota->parent_;
  return *quota;
}

void Quota::set_short(bool is_short) {
  Quota* quota = this;
  while (quota->parent_ != nullptr) quota = quota->parent_;
  quota->is_short_ = is_short;
}

bool Quota::is_short() const {
  const Quota* quota = this;
  while (quota->parent_ != nullptr) quota = quota->parent_;
  return quota->is_short_;
}

ChargedBytes::ChargedBytes(std::string bytes, Quota& quota, std::uint64_t charged_bytes)
    : bytes_(std::move(bytes)), quota_(quota), charged_bytes_(charged_bytes) {}

ChargedBytes::~ChargedBytes() { quota_.release(charged_bytes_); }

namespace {

/// Hands a charge back unless something took it over, so that a failed allocation leaks none.
class Charge {
 public:
  Charge(Quota& quota, std::uint64_t bytes) : quota_(quota), bytes_(bytes) {}
  ~Charge() {
    if (bytes_ != 0) quota_.release(bytes_);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  Payload become_payload(std::string bytes) {
    auto payload = std::make_shared<const ChargedBytes>(std::move(bytes), quota_, bytes_);
    bytes_ = 0;
    return payload;
  }

 private:
  Quota& quota_;
  std::uint64_t bytes_;
};

}  // namespace

// Charged before anything is copied: a refusal costs nothing.

Payload make_payload(Quota& quota, std::string_view bytes) {
  return make_payload_joined(quota, bytes, {});
}

Payload make_payload_joined(Quota& quota, std::string_view first, std::string_view second) {
  const std::uint64_t bytes = first.size() + second.size();
  if (!quota.charge(bytes + payload_overhead_bytes)) return nullptr;
  Charge charge(quota, bytes + payload_overhead_bytes);
  try {
    std::string joined;
    joined.reserve(bytes);
    joined.append(first).append(second);
    return charge.become_payload(std::move(joined));
  } catch (const std::bad_alloc&) {
    quota.set_short(true);
    return nullptr;
  }
}

Payload make_payload_from(Quota& quota, std::string bytes) {
  const std::uint64_t charged_bytes = bytes.size() + payload_overhead_bytes;
  if (!quota.charge(charged_bytes)) return nullptr;
  Charge charge(quota, charged_bytes);
  try {
    return charge.become_payload(std::move(bytes));
  } catch (const std::bad_alloc&) {
    quota.set_short(true);
    return nullptr;
  }
}

Payload make_payload_always(Quota& quota, std::string bytes) {
  const std::uint64_t charged_bytes = bytes.size() + payload_overhead_bytes;
  quota.charge_always(charged_bytes);
  Charge charge(quota, charged_bytes);
  return charge.become_payload(std::move(bytes));
}

}  // namespace muster::core
