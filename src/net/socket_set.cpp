#include "net/socket_set.h"

#include <unistd.h>

#include <bit>
#include <memory>

namespace muster::net {

SocketSet::~SocketSet() {
  for (auto& block : blocks_) delete block.load(std::memory_order_relaxed);
}

SocketSet::Block* SocketSet::block(int fd, bool make) {
  const int index = fd / (bits * words_per_block);
  if (fd < 0 || index >= block_count) return nullptr;
  auto& slot = blocks_[static_cast<std::size_t>(index)];
  Block* found = slot.load(std::memory_order_acquire);
  if (found != nullptr || !make) return found;
  auto fresh = std::make_unique<Block>();
  if (slot.compare_exchange_strong(found, fresh.get(), std::memory_order_acq_rel)) {
    found = fresh.release();
  }
  return found;
}

void SocketSet::add(int fd) {
  if (Block* const words = block(fd, true)) {
    const auto bit = static_cast<std::size_t>(fd % (bits * words_per_block));
    (*words)[bit / bits].fetch_or(std::uint64_t{1} << (bit % bits));
  }
}

void SocketSet::remove(int fd) {
  if (Block* const words = block(fd, false)) {
    const auto bit = static_cast<std::size_t>(fd % (bits * words_per_block));
    (*words)[bit / bits].fetch_and(~(std::uint64_t{1} << (bit % bits)));
  }
}

void SocketSet::close_all() {
  int first = 0;
  for (auto& slot : blocks_) {
    Block* const words = slot.load(std::memory_order_acquire);
    for (int word = 0; words != nullptr && word < words_per_block; ++word) {
      std::uint64_t open = (*words)[static_cast<std::size_t>(word)].exchange(0);
      for (; open != 0; open &= open - 1) ::close(first + word * bits + std::countr_zero(open));
    }
    first += bits * words_per_block;
  }
}

}  // namespace muster::net
