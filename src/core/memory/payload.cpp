#include "core/memory/payload.h"

#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

#include "core/memory/long_bytes.h"

namespace muster::core {

namespace {

/// Gives a charge back together with the memory that it was made for.
template <class T>
class ChargedAllocator {
 public:
  using value_type = T;

  ChargedAllocator(Quota& quota, std::uint64_t charged_bytes)
      : quota_(&quota), charged_bytes_(charged_bytes) {}
  template <class Other>
  ChargedAllocator(const ChargedAllocator<Other>& other)
      : quota_(other.quota_), charged_bytes_(other.charged_bytes_) {}

  T* allocate(std::size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* memory, std::size_t count) {
    std::allocator<T>().deallocate(memory, count);
    quota_->release(charged_bytes_);
  }
  bool operator==(const ChargedAllocator&) const = default;

 private:
  template <class Other>
  friend class ChargedAllocator;

  Quota* quota_;
  std::uint64_t charged_bytes_;
};

/// The counters, the ChargedBytes and what it views in one piece of memory.
BlankPayload in_one_piece(Quota& quota, std::size_t bytes, std::uint64_t charged_bytes) {
  using Word = std::uint64_t;
  static_assert(sizeof(ChargedBytes) % sizeof(Word) == 0 && alignof(ChargedBytes) <= sizeof(Word));
  static_assert(std::is_trivially_destructible_v<ChargedBytes>);
  const std::size_t words = (sizeof(ChargedBytes) + bytes + sizeof(Word) - 1) / sizeof(Word);
  const auto memory = std::allocate_shared_for_overwrite<Word[]>(
      ChargedAllocator<Word>(quota, charged_bytes), words);
  char* const begin = reinterpret_cast<char*>(memory.get()) + sizeof(ChargedBytes);
  const auto* const header = new (memory.get()) ChargedBytes(std::string_view(begin, bytes));
  return {Payload(memory, header), begin};
}

/// What views them, and the bytes in memory of their own.
BlankPayload in_two_pieces(Quota& quota, std::size_t bytes) {
  char* const memory = static_cast<char*>(std::malloc(bytes));
  if (memory == nullptr) throw std::bad_alloc();
  try {
    return {
        std::make_shared<const LongBytes>(quota, memory, bytes, std::string_view(memory, bytes)),
        memory};
  } catch (...) {
    std::free(memory);
    throw;
  }
}

/// Bytes in a string.
class ChargedString final : public ChargedBytes {
 public:
  /// Takes over a charge of `charged_bytes` that was made already.
  ChargedString(std::string bytes, Quota& quota, std::uint64_t charged_bytes)
      : ChargedBytes({}), bytes_(std::move(bytes)), quota_(quota), charged_bytes_(charged_bytes) {
    view_ = bytes_;
  }
  ~ChargedString() { quota_.release(charged_bytes_); }

 private:
  std::string bytes_;
  Quota& quota_;
  std::uint64_t charged_bytes_;
};

}  // namespace

// Charged before anything is copied: a refusal costs nothing.

BlankPayload make_blank_payload(Quota& quota, std::size_t bytes, Charging charging) {
  const std::uint64_t charged_bytes = bytes + payload_overhead_bytes;
  if (!quota.charge(charged_bytes, charging)) return {};
  try {
    if (bytes >= FreedMemory::long_bytes_min) return in_two_pieces(quota, bytes);
    return in_one_piece(quota, bytes, charged_bytes);
  } catch (const std::bad_alloc&) {
    quota.release(charged_bytes);
    if (charging == Charging::always) throw;
    quota.set_short(true);
    return {};
  }
}

Payload make_payload(Quota& quota, std::string_view bytes, Charging charging) {
  BlankPayload made = make_blank_payload(quota, bytes.size(), charging);
  if (made.payload != nullptr) bytes.copy(made.bytes, bytes.size());
  return std::move(made.payload);
}

Payload make_payload_joined(Quota& quota, std::string_view first, std::string_view second) {
  BlankPayload made = make_blank_payload(quota, first.size() + second.size(), Charging::normal);
  if (made.payload == nullptr) return nullptr;
  first.copy(made.bytes, first.size());
  second.copy(made.bytes + first.size(), second.size());
  return std::move(made.payload);
}

namespace {

class PartOfBytes final : public ChargedBytes {
 public:
  PartOfBytes(Payload whole, std::string_view bytes)
      : ChargedBytes(bytes), whole_(std::move(whole)) {}

 private:
  Payload whole_;
};

}  // namespace

Payload part_of(Payload whole, std::string_view bytes) {
  return std::make_shared<const PartOfBytes>(std::move(whole), bytes);
}

Payload make_payload_always(Quota& quota, std::string bytes) {
  const std::uint64_t charged_bytes = bytes.capacity() + payload_overhead_bytes;
  quota.charge_always(charged_bytes);
  try {
    return std::make_shared<const ChargedString>(std::move(bytes), quota, charged_bytes);
  } catch (const std::bad_alloc&) {
    quota.release(charged_bytes);
    throw;
  }
}

}  // namespace muster::core
