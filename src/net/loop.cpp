#include "net/loop.h"

#include <unistd.h>

#include <bit>

namespace muster::net {

asio::execution_context::id LoopState::id;

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

void Mailbox::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (context_ != nullptr) asio::post(*context_, std::move(work));
}

void Mailbox::shut() {
  const std::lock_guard lock(mutex_);
  context_ = nullptr;
}

LoopState::LoopState(asio::execution_context& context)
    : service(context),
      mailbox_(std::make_shared<Mailbox>(static_cast<asio::io_context&>(context))) {}

LoopState& LoopState::of(asio::execution_context& context) {
  return asio::use_service<LoopState>(context);
}

std::uint64_t LoopState::on_failure(std::function<void(std::string_view why)> end) {
  failure_listeners_.emplace(++last_number_, std::move(end));
  return last_number_;
}

void LoopState::fail(std::string_view why) noexcept {
  for (const auto& [number, end] : failure_listeners_) {
    insist([&run = end, why] { run(why); });
  }
}

void LoopState::shutdown() {
  mailbox_->shut();
  failure_listeners_.clear();
}

}  // namespace muster::net
