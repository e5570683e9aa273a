#pragma once

#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "muster/config.h"

MUSTER_BEGIN_NAMESPACE

/// A view of `size()` consecutive objects that belong to somebody else; as C++20's std::span.
template <class T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, std::size_t size) : data_(data), size_(size) {}

  /// Views any contiguous container (std::vector, std::array, std::string, ...).
  template <class Container, class = std::enable_if_t<std::is_convertible_v<
                                 decltype(std::declval<Container&>().data()), T*>>>
  constexpr Span(Container& container) : data_(container.data()), size_(container.size()) {}

  /// Views the elements of a braced list; valid until the end of the full expression.
  template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
  constexpr Span(std::initializer_list<std::remove_const_t<U>> list) : size_(list.size()) {
    data_ = list.begin();
  }

  constexpr T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](std::size_t index) const { return data_[index]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

MUSTER_END_NAMESPACE
