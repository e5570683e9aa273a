#pragma once

namespace muster::net {

/// Work for a loop that whoever owns it posts again and again, once at a time: posting it needs
/// no memory and cannot fail.
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// On the I/O thread; it may be posted again from here on. Either this or `drop` follows a post.
  virtual void run() = 0;
  /// The loop ends and will not run it.
  virtual void drop() noexcept = 0;

 protected:
  ~Task() = default;

 private:
  friend class Loop;
  Task* next_ = nullptr;
};

}  // namespace muster::net
