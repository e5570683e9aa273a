#pragma once

namespace musterd {

/// Memory that is held back for when the system has no more: it is spent before anything is
/// refused, so that the request at work is completed, and while it is spent the server takes in
/// nothing new. What was given up elsewhere fills it again.
///
/// It belongs to the whole process (std::set_new_handler); a program has one at most.
class MemoryReserve {
 public:
  MemoryReserve();
  ~MemoryReserve();
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

  /// Whether it is spent and cannot be filled again yet. Quick; used by one thread.
  bool is_spent();
};

}  // namespace musterd
