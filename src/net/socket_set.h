#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace muster::net {

/// Which file descriptors one loop has, for a forked child that must close its copies: whatever
/// else it did with them would disturb the parent's epoll set, which the child shares.
class SocketSet {
 public:
  SocketSet() = default;
  ~SocketSet();
  SocketSet(const SocketSet&) = delete;
  SocketSet& operator=(const SocketSet&) = delete;

  void add(int fd);
  void remove(int fd);

  /// Closes and forgets all. In a forked child: takes no lock and frees nothing.
  void close_all();

 private:
  static constexpr int bits = 64;
  static constexpr int words_per_block = 64;
  static constexpr int block_count = 1024;  // 4 million descriptors
  using Block = std::array<std::atomic<std::uint64_t>, words_per_block>;

  Block* block(int fd, bool make);

  std::array<std::atomic<Block*>, block_count> blocks_{};
};

}  // namespace muster::net
