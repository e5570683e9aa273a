#include "core/keys/block.h"

#include <cassert>
#include <cstring>
#include <memory>
#include <new>

namespace muster::core {
namespace {

/// Also when a piece is there already.
void copy(char* to, std::string_view piece) {
  if (!piece.empty()) std::memmove(to, piece.data(), piece.size());
}

std::size_t inline_bytes(const NewValue& value) { return value.first.size() + value.second.size(); }

}  // namespace

std::uint64_t Block::taken_bytes() const { return allocated_bytes() + header_bytes; }

std::uint64_t Block::taken_bytes(std::size_t key_bytes, const NewValue& value, Extras extras) {
  return allocated_bytes(key_bytes, inline_bytes(value), value.shared != nullptr,
                         extras == Extras::room) +
         header_bytes;
}

Block Block::make(std::string_view key, const NewValue& value, Extras extras) {
  const bool is_shared = value.shared != nullptr;
  const bool has_room = extras == Extras::room;
  const std::size_t bytes = allocated_bytes(key.size(), inline_bytes(value), is_shared, has_room);
  Block block;
  block.at_ = static_cast<char*>(::operator new(bytes));
  if (has_room) {
    new (block.at_) KeyExtras*(nullptr);
    block.at_ += sizeof(KeyExtras*);
  }
  assert(key.size() <= key_bytes_max);
  const auto key_bytes = static_cast<std::uint32_t>(key.size());
  new (block.at_) Sizes{key_bytes & key_bytes_max, is_shared, has_room, 0};
  if (is_shared) new (block.at_ + sizeof(Sizes)) Payload(value.shared);
  copy(const_cast<char*>(block.key().data()), key);
  if (!is_shared) block.overwrite(value.first, value.second);
  return block;
}

void Block::free() {
  if (at_ == nullptr) return;
  if (is_shared()) std::destroy_at(&shared());
  ::operator delete(at_ - (has_room_for_extras() ? sizeof(KeyExtras*) : 0));
  at_ = nullptr;
}

void Block::let_go_of_shared() {
  if (is_shared()) const_cast<Payload&>(shared()) = nullptr;
}

void Block::overwrite(std::string_view first, std::string_view second) {
  char* const begin = at_ + sizeof(Sizes) + sizes().key_bytes;
  copy(begin, first);
  copy(begin + first.size(), second);
  sizes().value_bytes = static_cast<std::uint32_t>(first.size() + second.size());
}

Block make_charged(Quota& quota, std::string_view key, const NewValue& value, Block::Extras extras,
                   Charging charging) {
  const std::uint64_t bytes = Block::taken_bytes(key.size(), value, extras);
  if (!quota.charge(bytes, charging)) return {};
  try {
    return Block::make(key, value, extras);
  } catch (const std::bad_alloc&) {
    quota.release(bytes);
    if (charging == Charging::always) throw;
    quota.set_short(true);
    return {};
  }
}

void free_charged(Quota& quota, Block& block) {
  quota.release(block.taken_bytes());
  block.free();
}

}  // namespace muster::core
