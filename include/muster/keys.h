#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/config.h"
#include "muster/span.h"

MUSTER_BEGIN_NAMESPACE

/// Views of what a call takes many of: a braced list, or any container whose elements convert to
/// View. What is viewed must live until the call, or its callback form, has returned. A row of View
/// is taken as it is; of others a list of views is made.
template <class View>
class Views {
 public:
  Views(std::initializer_list<View> list) : given_(list) {}
  template <
      class Container,
      std::enable_if_t<std::is_convertible_v<const typename Container::value_type&, View>, int> = 0>
  Views(const Container& container) : made_(container.begin(), container.end()) {}
  Views(Span<const View> row) : given_(row) {}
  Views(const std::vector<View>& row) : given_(row) {}
  template <std::size_t size>
  Views(const std::array<View, size>& row) : given_(row.data(), size) {}

  operator Span<const View>() const { return made_.empty() ? given_ : Span<const View>(made_); }
  std::size_t size() const { return made_.empty() ? given_.size() : made_.size(); }
  const View* begin() const { return made_.empty() ? given_.begin() : made_.data(); }
  const View* end() const { return begin() + size(); }

 private:
  Span<const View> given_;
  std::vector<View> made_;
};

/// The keys of a call, such as a std::vector of std::string.
using Keys = Views<std::string_view>;
/// Keys and their values, such as a std::map of std::string to std::string.
using KeyValues = Views<std::pair<std::string_view, std::string_view>>;

MUSTER_END_NAMESPACE
