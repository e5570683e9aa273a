#pragma once

#include <cstddef>
#include <utility>

namespace muster::base {

/// Bytes that are a secret: zero at first, and overwritten when they are let go. They lie apart
/// from all else, in memory that is left out of core dumps. A move leaves them where they are.
///
/// errors   std::bad_alloc
/// threads  one at a time for each; any for different ones. Also in a forked child
/// cost     up to 64 bytes take a part of a page, and that page is kept for others; more of them
///          have a mapping of their own
class SecretBytes {
 public:
  /// None.
  SecretBytes() = default;
  explicit SecretBytes(std::size_t size);
  SecretBytes(SecretBytes&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  SecretBytes& operator=(SecretBytes&& other) noexcept;
  SecretBytes(const SecretBytes&) = delete;
  SecretBytes& operator=(const SecretBytes&) = delete;
  ~SecretBytes() { let_go(); }

  unsigned char* data() { return bytes_; }
  const unsigned char* data() const { return bytes_; }
  std::size_t size() const { return size_; }

 private:
  void let_go() noexcept;

  unsigned char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

/// Zeros the vector registers of this thread. A secret that is copied or compared leaves parts of
/// itself there, and later calls store them on the stack.
void clear_vector_registers() noexcept;

}  // namespace muster::base
