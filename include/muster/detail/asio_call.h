#pragma once

// How a call of Muster's in its callback form becomes an asynchronous operation of Asio's. For
// muster/asio.h and its parts alone.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/execution/context.hpp>
#include <asio/execution_context.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/query.hpp>
#include <asio/system_executor.hpp>

#include "muster/call.h"
#include "muster/config.h"
#include "muster/detail/taken_value.h"
#include "muster/result.h"
#include "muster/store_options.h"

MUSTER_BEGIN_NAMESPACE

namespace detail {

/// An operation that has not completed.
class AsioOperation {
 public:
  AsioOperation(const AsioOperation&) = delete;
  AsioOperation& operator=(const AsioOperation&) = delete;

  /// It will not complete: its handler is destroyed.
  virtual void abandon() noexcept = 0;

 protected:
  AsioOperation() = default;
  ~AsioOperation() = default;

 private:
  friend class AsioOperations;
  AsioOperation* previous_ = nullptr;
  AsioOperation* next_ = nullptr;
};

/// The operations whose handlers belong to one execution context. As Asio's own operations, they do
/// not outlive it: a coroutine that waits is destroyed with what it owns, such as the very store.
class AsioOperations final : public asio::execution_context::service {
 public:
  using key_type = AsioOperations;
  static inline asio::execution_context::id id;

  explicit AsioOperations(asio::execution_context& context)
      : asio::execution_context::service(context) {}

  void add(AsioOperation& operation) {
    const std::lock_guard lock(mutex_);
    operation.next_ = first_;
    if (first_ != nullptr) first_->previous_ = &operation;
    first_ = &operation;
  }

  void remove(AsioOperation& operation) {
    const std::lock_guard lock(mutex_);
    unlink(operation);
  }

 private:
  /// What a handler owns may end others of the list.
  void shutdown() override {
    for (;;) {
      AsioOperation* operation = nullptr;
      {
        const std::lock_guard lock(mutex_);
        operation = first_;
        if (operation == nullptr) return;
        unlink(*operation);
      }
      operation->abandon();
    }
  }

  void unlink(AsioOperation& operation) {
    if (operation.next_ != nullptr) operation.next_->previous_ = operation.previous_;
    (operation.previous_ != nullptr ? operation.previous_->next_ : first_) = operation.next_;
    operation.previous_ = operation.next_ = nullptr;
  }

  std::mutex mutex_;
  AsioOperation* first_ = nullptr;
};

/// Whether an operation's slot was emitted before its handler runs; null: it does not matter.
using AsioCancelled = std::shared_ptr<std::atomic<bool>>;

template <class Target, class Raw, class Finish, class Canceller>
class AsioCall;

/// The result on its way to a handler of Asio's, run by its executor.
template <class Target, class Raw, class Finish>
class AsioCompletion {
 public:
  using allocator_type = asio::associated_allocator_t<Target>;

  AsioCompletion(Target handler, Result<Raw> result, Finish finish, AsioCancelled cancelled)
      : handler_(std::move(handler)),
        result_(std::move(result)),
        finish_(std::move(finish)),
        cancelled_(std::move(cancelled)) {}

  allocator_type get_allocator() const noexcept { return asio::get_associated_allocator(handler_); }

  void operator()() {
    if constexpr (std::is_same_v<Raw, TakenValue>) {
      if (cancelled_ && cancelled_->load() && result_.has_value()) return give_back();
    }
    auto slot = asio::get_associated_cancellation_slot(handler_);
    if (slot.is_connected()) slot.clear();
    std::move(handler_)(finish_(std::move(result_)));
  }

 private:
  /// Whoever was cancelled, such as one of two that were awaited together, drops the value.
  void give_back() {
    using Operation = AsioCall<Target, Raw, Finish, Call>;
    TakenValue value = *std::move(result_);
    const auto operation = std::make_shared<Operation>(std::move(handler_), std::move(finish_));
    operation->prepare(operation, nullptr);
    value.give_back(
        [operation](Result<TakenValue> result) { operation->complete(std::move(result)); });
  }

  Target handler_;
  Result<Raw> result_;
  Finish finish_;
  AsioCancelled cancelled_;
};

/// Keeps an executor's context at work. A handler without an executor of its own has none.
template <class Executor>
struct AsioWork {
  explicit AsioWork(const Executor& executor) : guard(executor) {}

  AsioOperations* operations() const {
    const Executor executor = guard.get_executor();
    if constexpr (asio::can_query_v<Executor, asio::execution::context_t>) {
      return &asio::use_service<AsioOperations>(asio::query(executor, asio::execution::context));
    } else {
      return nullptr;
    }
  }

  template <class Completion>
  void complete(Completion completion) {
    asio::post(guard.get_executor(), std::move(completion));
  }

  asio::executor_work_guard<Executor> guard;
};

template <>
struct AsioWork<asio::system_executor> {
  explicit AsioWork(const asio::system_executor&) {}

  AsioOperations* operations() const { return nullptr; }

  template <class Completion>
  void complete(Completion completion) {
    completion();
  }
};

/// One operation. It belongs to the handler that Muster was given, and maybe to a list.
template <class Target, class Raw, class Finish, class Canceller>
class AsioCall final : public AsioOperation {
  using Work = AsioWork<asio::associated_executor_t<Target>>;

 public:
  AsioCall(Target handler, Finish finish)
      : handler_(std::move(handler)),
        finish_(std::move(finish)),
        work_(std::in_place, asio::get_associated_executor(*handler_)),
        operations_(work_->operations()) {}

  ~AsioCall() {
    if (operations_ != nullptr) operations_->remove(*this);
  }

  /// Before anything can complete it.
  void prepare(const std::weak_ptr<AsioCall>& self, AsioCancelled cancelled) {
    cancelled_ = std::move(cancelled);
    if (operations_ != nullptr) operations_->add(*this);
    auto slot = asio::get_associated_cancellation_slot(*handler_);
    if (!slot.is_connected()) return;
    slot.assign([self, noted = cancelled_](asio::cancellation_type type) {
      if (type == asio::cancellation_type::none) return;
      if (noted) noted->store(true);
      if (const auto call = self.lock()) call->canceller_.cancel();
    });
  }

  void begun(Canceller canceller) { canceller_ = std::move(canceller); }

  void complete(Result<Raw>&& result) {
    if (!handler_) return;  // abandoned
    if (operations_ != nullptr) std::exchange(operations_, nullptr)->remove(*this);
    Target handler = *std::move(handler_);
    handler_.reset();
    Work work = *std::move(work_);
    work_.reset();
    work.complete(AsioCompletion<Target, Raw, Finish>(std::move(handler), std::move(result),
                                                      std::move(finish_), std::move(cancelled_)));
  }

 private:
  void abandon() noexcept override {
    operations_ = nullptr;
    work_.reset();
    [[maybe_unused]] const std::optional<Target> ended = std::move(handler_);
    handler_.reset();
  }  // what `ended` owns may end this object

  std::optional<Target> handler_;
  Finish finish_;
  std::optional<Work> work_;
  AsioOperations* operations_;
  AsioCancelled cancelled_;
  Canceller canceller_{};
};

/// The value is the program's when its handler runs.
struct Accepted {
  Result<std::string> operator()(Result<TakenValue>&& result) const {
    if (!result) return std::move(result).error();
    return result->accept();
  }
};

/// The result as it came.
struct AsIs {
  template <class T>
  Result<T> operator()(Result<T>&& result) const {
    return std::move(result);
  }
};

template <class Raw, class Begin, class Finish>
class AsioInitiation {
 public:
  AsioInitiation(Begin begin, Finish finish)
      : begin_(std::move(begin)), finish_(std::move(finish)) {}

  template <class GivenHandler>
  void operator()(GivenHandler&& given) {
    using Canceller = std::invoke_result_t<Begin&, Handler<Raw>>;
    using Operation = AsioCall<std::decay_t<GivenHandler>, Raw, Finish, Canceller>;
    Begin begin = std::move(begin_);  // the handler may end this object meanwhile
    const auto operation =
        std::make_shared<Operation>(std::forward<GivenHandler>(given), std::move(finish_));
    AsioCancelled cancelled;
    if (std::is_same_v<Raw, TakenValue>) cancelled = std::make_shared<std::atomic<bool>>(false);
    operation->prepare(operation, std::move(cancelled));
    operation->begun(begin(
        Handler<Raw>([operation](Result<Raw> result) { operation->complete(std::move(result)); })));
  }

 private:
  Begin begin_;
  Finish finish_;
};

/// The operation that `begin(Handler<Raw>)` begins, and whose result `finish` makes of what came,
/// where the handler runs. `begin` returns what can cancel it, and owns what it needs.
template <class Raw, class Begin, class Token, class Finish>
auto asio_start(Begin begin, Token&& token, Finish finish) {
  using Final = std::invoke_result_t<Finish&, Result<Raw>&&>;
  return asio::async_initiate<Token, void(Final)>(
      AsioInitiation<Raw, Begin, Finish>(std::move(begin), std::move(finish)), token);
}

/// The operation of a function of `object`, or a static one, that takes `arguments` and a handler.
template <class T, class Function, class Token, class... Arguments>
auto asio_call(Function function, Token&& token, Arguments... arguments) {
  using Finish = std::conditional_t<std::is_same_v<T, TakenValue>, Accepted, AsIs>;
  return asio_start<T>(
      [function,
       held = std::tuple<Arguments...>(std::move(arguments)...)](Handler<T> handler) mutable {
        return std::apply(
            [&](auto&... each) { return std::invoke(function, each..., std::move(handler)); },
            held);
      },
      std::forward<Token>(token), Finish());
}

}  // namespace detail

MUSTER_END_NAMESPACE
