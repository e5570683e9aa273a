#pragma once

// What is behind muster/codec_cereal.h, which is the header to include: the fingerprint of a type,
// which travels with its objects. docs/semantics.md says what it is made of.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <cereal/cereal.hpp>

#include "muster/config.h"
#include "muster/detail/cereal_archives.h"

MUSTER_BEGIN_NAMESPACE
namespace detail {

template <class T, class = void>
inline constexpr bool has_schema_id = false;
template <class T>
inline constexpr bool has_schema_id<T, std::void_t<decltype(T::schema_id)>> = true;

template <class T, class = void>
inline constexpr bool is_row = false;
template <class T>
inline constexpr bool is_row<T, std::void_t<typename T::value_type, typename T::iterator,
                                            decltype(std::declval<T&>().clear())>> = true;
template <class T, class = void>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<T, std::void_t<typename T::mapped_type>> = is_row<T>;

/// The declared fields of a type, as a text: an archive that reads zeros into an object that was
/// just made, and notes what it is asked for.
class CerealForm : public cereal::InputArchive<CerealForm, cereal::AllowEmptyClassElision> {
 public:
  CerealForm() : InputArchive(this) {}

  const std::string& text() const { return text_; }

  template <class... Types>
  CerealForm& operator()(Types&&... values) {
    (note(values), ...);
    return *this;
  }
  template <class T>
  CerealForm& operator&(T&& value) {
    return (*this)(value);
  }
  template <class T>
  CerealForm& operator>>(T&& value) {
    return (*this)(value);
  }

  /// Of a type alone; of an object, that reads zero.
  template <class T>
  void note_type() {
    if constexpr (std::is_default_constructible_v<T>) {
      T value{};
      note(value);
    } else {
      text_ += '!';
    }
  }

  template <class T>
  void note(T& value) {
    using Type = std::remove_cv_t<T>;
    if constexpr (has_schema_id<Type>) {
      text_ += '#' + std::to_string(static_cast<std::uint64_t>(Type::schema_id)) + ';';
    } else if constexpr (std::is_arithmetic_v<Type>) {
      note_number<Type>();
      if constexpr (!std::is_const_v<T>) value = Type();
    } else if constexpr (std::is_enum_v<Type>) {
      note_number<std::underlying_type_t<Type>>();
      if constexpr (!std::is_const_v<T>) value = Type();
    } else {
      note_class(value);
    }
  }

 private:
  /// A type that is being noted, further out.
  struct Outer {
    const void* type;
    const Outer* next;
  };

  template <class T>
  static const void* key_of() {
    static const char key = 0;
    return &key;
  }

  template <class T>
  void note_number() {
    if constexpr (std::is_same_v<T, bool>) {
      text_ += 'b';
    } else if constexpr (std::is_same_v<T, char>) {
      text_ += 'c';
    } else {
      text_ += std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u';
      text_ += static_cast<char>('0' + sizeof(T));
    }
  }

  template <class T>
  void note_class(T& value) {
    using Type = std::remove_cv_t<T>;
    if constexpr (is_map<Type>) {
      text_ += '[';
      note_type<typename Type::key_type>();
      note_type<typename Type::mapped_type>();
      text_ += ']';
    } else if constexpr (is_row<Type>) {
      text_ += '[';
      note_type<typename Type::value_type>();
      text_ += ']';
    } else {
      note_known(const_cast<Type&>(value), 0);
    }
  }

  // What is written in a way of its own. The last one takes the rest.

  template <class T>
  void note_known(std::optional<T>&, int) {
    text_ += '?';
    note_type<T>();
  }
  template <class T, std::size_t N>
  void note_known(std::array<T, N>&, int) {
    note_array<T>(N);
  }
  template <class T, std::size_t N>
  void note_known(T (&)[N], int) {
    note_array<T>(N);
  }
  template <class... Types>
  void note_known(std::variant<Types...>&, int) {
    text_ += '{';
    ((note_type<Types>(), text_ += '|'), ...);
    text_ += '}';
  }
  template <class Rep, class Period>
  void note_known(std::chrono::duration<Rep, Period>&, int) {
    note_number<Rep>();
    text_ += '@' + std::to_string(Period::num) + '/' + std::to_string(Period::den) + ';';
  }
  template <class T>
  void note_known(cereal::NameValuePair<T>& pair, int) {
    note(pair.value);
  }
  template <class T>
  void note_known(cereal::SizeTag<T>& tag, int) {
    text_ += 'n';
    tag.size = 0;
  }
  template <class T>
  void note_known(cereal::BinaryData<T>&, int) {
    text_ += 'x';
    note_number<std::remove_cv_t<std::remove_pointer_t<T>>>();
  }
  template <class T>
  void note_known(cereal::base_class<T>& base, int) {
    note(*base.base_ptr);
  }
  template <class T>
  void note_known(cereal::virtual_base_class<T>& base, int) {
    note(*base.base_ptr);
  }
  template <class T>
  void note_known(T& value, long) {
    using Type = std::remove_cv_t<T>;
    if constexpr (cereal::traits::is_input_serializable<Type, CerealForm>::value) {
      note_fields(value, key_of<Type>());
    } else if constexpr (!std::is_empty_v<Type>) {
      text_ += '!';
    }
  }

  template <class T>
  void note_array(std::size_t size) {
    text_ += '(' + std::to_string(size) + ')';
    note_type<T>();
  }

  template <class T>
  void note_fields(T& value, const void* type) {
    int distance = 1;
    for (const Outer* outer = outer_; outer != nullptr; outer = outer->next, ++distance) {
      if (outer->type != type) continue;
      text_ += '^' + std::to_string(distance) + ';';
      return;
    }
    const Outer here{type, outer_};
    outer_ = &here;
    try {
      InputArchive::operator()(value);
    } catch (...) {
      text_ += '!';  // the zeros do not suit it, wherever this type is noted
    }
    outer_ = here.next;
  }

  std::string text_;
  const Outer* outer_ = nullptr;
};

template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
void CEREAL_LOAD_FUNCTION_NAME(CerealForm& form, T& number) {
  form.note(number);
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(CerealForm& form, cereal::NameValuePair<T>& pair) {
  form.note(pair);
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(CerealForm& form, cereal::SizeTag<T>& tag) {
  form.note(tag);
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(CerealForm& form, cereal::BinaryData<T>& data) {
  form.note(data);
}

/// Of a type that can be read.
template <class T>
std::string cereal_form() {
  CerealForm form;
  form.note_type<T>();
  return form.text();
}

/// FNV-1a.
inline std::uint64_t fingerprint_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char character : text) {
    hash ^= static_cast<unsigned char>(character);
    hash *= 0x100000001b3;
  }
  return hash;
}

/// None: nothing is known of the type, because it is only written.
template <class T>
std::optional<std::uint64_t> cereal_fingerprint() {
  if constexpr (std::is_default_constructible_v<T> && is_cereal_read<T>) {
    static const std::uint64_t fingerprint = fingerprint_of(cereal_form<T>());
    return fingerprint;
  } else {
    return std::nullopt;
  }
}

}  // namespace detail
MUSTER_END_NAMESPACE

namespace cereal::traits::detail {

template <>
struct get_output_from_input<muster::detail::CerealForm> {
  using type = muster::detail::CerealWriter;
};

}  // namespace cereal::traits::detail
