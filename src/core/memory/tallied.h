#pragma once

#include <cstdint>

namespace muster::core {

/// Counts the object that it is a member of.
class Tallied {
 public:
  explicit Tallied(std::uint64_t& count) : count_(count) { ++count_; }
  ~Tallied() { --count_; }
  Tallied(const Tallied&) = delete;
  Tallied& operator=(const Tallied&) = delete;

 private:
  std::uint64_t& count_;
};

}  // namespace muster::core
