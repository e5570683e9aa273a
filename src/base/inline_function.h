#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace muster::base {

template <class Signature, std::size_t bytes_max>
class InlineFunction;

/// As std::function, but it can only be moved, and what it calls lies within: at most `bytes_max`
/// bytes, which the compiler checks, and never an allocation.
template <class Return, class... Args, std::size_t bytes_max>
class InlineFunction<Return(Args...), bytes_max> {
 public:
  InlineFunction() = default;
  template <class Callee,
            class = std::enable_if_t<!std::is_same_v<std::decay_t<Callee>, InlineFunction>>>
  InlineFunction(Callee&& callee) {
    using Held = std::decay_t<Callee>;
    static_assert(sizeof(Held) <= bytes_max, "more than the function has room for");
    static_assert(alignof(Held) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<Held>);
    new (storage_) Held(std::forward<Callee>(callee));
    ways_ = &ways_of<Held>;
  }
  InlineFunction(InlineFunction&& other) noexcept { take(other); }
  InlineFunction& operator=(InlineFunction&& other) noexcept {
    if (this == &other) return *this;
    reset();
    take(other);
    return *this;
  }
  ~InlineFunction() { reset(); }

  explicit operator bool() const { return ways_ != nullptr; }
  Return operator()(Args... args) { return ways_->call(storage_, std::forward<Args>(args)...); }

 private:
  struct Ways {
    Return (*call)(void* held, Args&&... args);
    void (*move)(void* from, void* to) noexcept;  ///< nothing is left at `from`
    void (*destroy)(void* held) noexcept;
  };

  template <class Held>
  static constexpr Ways ways_of{
      [](void* held, Args&&... args) -> Return {
        return (*static_cast<Held*>(held))(std::forward<Args>(args)...);
      },
      [](void* from, void* to) noexcept {
        new (to) Held(std::move(*static_cast<Held*>(from)));
        static_cast<Held*>(from)->~Held();
      },
      [](void* held) noexcept { static_cast<Held*>(held)->~Held(); },
  };

  void take(InlineFunction& other) noexcept {
    if (other.ways_ == nullptr) return;
    other.ways_->move(other.storage_, storage_);
    ways_ = std::exchange(other.ways_, nullptr);
  }
  void reset() noexcept {
    if (ways_ != nullptr) std::exchange(ways_, nullptr)->destroy(storage_);
  }

  alignas(std::max_align_t) std::byte storage_[bytes_max];
  const Ways* ways_ = nullptr;
};

}  // namespace muster::base
