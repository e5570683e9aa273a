#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace muster::net {

/// Work for another thread, posted by whoever owns it, once at a time: posting it needs no memory
/// and cannot fail.
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// On that thread; it may be posted again from here on. Either this or `drop` follows a post.
  virtual void run() = 0;
  /// The thread ends and will not run it.
  virtual void drop() noexcept = 0;

 protected:
  ~Task() = default;

 private:
  friend class Loop;
  friend class TaskQueue;
  Task* next_ = nullptr;
};

/// The work of a post that brings its own memory. Made with `new`; it ends itself.
class FunctionTask final : public Task {
 public:
  explicit FunctionTask(std::function<void()> work) : work_(std::move(work)) {}

  void run() override {
    const std::unique_ptr<FunctionTask> self(this);
    work_();
  }
  void drop() noexcept override { delete this; }

 private:
  const std::function<void()> work_;
};

/// Tasks in the order in which they came.
class TaskQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  const Task* last() const { return last_; }

  void push(Task& task) noexcept {
    task.next_ = nullptr;
    (empty() ? first_ : last_->next_) = &task;
    last_ = &task;
  }

  /// Null when there is none.
  Task* pop() noexcept {
    Task* const task = first_;
    if (task != nullptr) first_ = task->next_;
    return task;
  }

 private:
  Task* first_ = nullptr;
  Task* last_ = nullptr;  ///< when there is a first
};

}  // namespace muster::net
