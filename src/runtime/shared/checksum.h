#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace muster::runtime {

/// XXH3 of 64 bits over what was added, in pieces of any size. Tells of what was cut or has changed
/// by accident, not of an attack.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(const void* data, std::size_t bytes);
  std::uint64_t value() const;

  static std::uint64_t of(const void* data, std::size_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::runtime
