#pragma once

// What is behind muster/codec_cereal.h, which is the header to include: two archives of cereal's
// portable binary format over a string. The reader exists because cereal's own resizes a
// container to whatever size the bytes declare; the writer because it needs no stream, and
// always writes little-endian.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cereal/cereal.hpp>
#include <cereal/types/vector.hpp>

#include "muster/config.h"

MUSTER_BEGIN_NAMESPACE
namespace detail {

inline constexpr int cereal_depth_max = 512;

// The first byte of an object. The first two are cereal's own.
inline constexpr char cereal_big_endian = 0;
inline constexpr char cereal_little_endian = 1;
inline constexpr char cereal_with_fingerprint = 3;  ///< little-endian; 8 bytes of it follow

/// Counts how deeply objects are nested; a list of a million nested lists takes 8 MB on the wire
/// and would take all of the stack.
class CerealDepth {
 public:
  void enter() {
    if (++depth_ > cereal_depth_max) throw cereal::Exception("objects are nested too deeply");
  }
  void leave() { --depth_; }

 private:
  int depth_ = 0;
};

inline bool cereal_host_is_little_endian() {
  const std::uint16_t number = 1;
  unsigned char first = 0;
  std::memcpy(&first, &number, 1);
  return first == 1;
}

template <std::size_t Width>
void cereal_swap(unsigned char* data, std::size_t size) {
  if constexpr (Width > 1) {
    for (std::size_t at = 0; at + Width <= size; at += Width) {
      std::reverse(data + at, data + at + Width);
    }
  }
}

class CerealWriter;
class CerealReader;

/// What archives take without a function of its own.
template <class T>
inline constexpr bool is_cereal_wrapper = false;
template <class T>
inline constexpr bool is_cereal_wrapper<cereal::base_class<T>> = true;
template <class T>
inline constexpr bool is_cereal_wrapper<cereal::virtual_base_class<T>> = true;
template <class T>
inline constexpr bool is_cereal_wrapper<cereal::DeferredData<T>> = true;

template <class T>
inline constexpr bool is_cereal_written =
    is_cereal_wrapper<T> || std::is_empty_v<T> ||
    cereal::traits::is_output_serializable<T, CerealWriter>::value;
template <class T>
inline constexpr bool is_cereal_read =
    is_cereal_wrapper<T> || std::is_empty_v<T> ||
    cereal::traits::is_input_serializable<T, CerealReader>::value;

template <class T, class = void>
inline constexpr bool is_key_made = true;
template <class T>
inline constexpr bool is_key_made<T, std::void_t<typename T::key_type>> =
    std::is_default_constructible_v<typename T::key_type>;
template <class T, class = void>
inline constexpr bool is_mapped_made = true;
template <class T>
inline constexpr bool is_mapped_made<T, std::void_t<typename T::mapped_type>> =
    std::is_default_constructible_v<typename T::mapped_type>;
template <class T>
inline constexpr bool is_optional_made = true;
template <class T>
inline constexpr bool is_optional_made<std::optional<T>> = std::is_default_constructible_v<T>;

/// Of a container, whether its loader can make its elements.
template <class T>
inline constexpr bool are_elements_made = is_key_made<T>&& is_mapped_made<T>&& is_optional_made<T>;

// Each says once per type what is wrong with it.

template <class T>
struct CerealTypeCheck {
  static_assert(is_cereal_written<T> || is_cereal_read<T>,
                "CerealCodec cannot take this type: give it `template <class Archive> void "
                "serialize(Archive& archive) { archive(first, second); }`, or include cereal's "
                "header for it");
};
template <class T>
struct CerealWriteCheck : CerealTypeCheck<T> {
  static_assert(is_cereal_written<T> || !is_cereal_read<T>,
                "CerealCodec cannot write this type: it has `load` and no `save`");
};
template <class T>
struct CerealReadCheck : CerealTypeCheck<T> {
  static_assert(is_cereal_read<T> || !is_cereal_written<T>,
                "CerealCodec cannot read this type: it has `save` and no `load`");
};
template <class T>
struct CerealMadeCheck {
  static_assert(std::is_default_constructible_v<T>,
                "CerealCodec needs a default constructor: an object is made first and read then");
};
template <class T>
struct CerealElementsCheck {
  static_assert(are_elements_made<T>,
                "CerealCodec needs a default constructor of what is in a container: an element is "
                "made first and read then");
};

/// What one allocation is made for.
inline constexpr std::size_t small_object_bytes = 64;

class CerealWriter : public cereal::OutputArchive<CerealWriter, cereal::AllowEmptyClassElision>,
                     public CerealDepth {
 public:
  /// fingerprint  of the type; none: nothing is known of it
  CerealWriter(std::string& out, std::optional<std::uint64_t> fingerprint)
      : OutputArchive(this), out_(out) {
    out_.reserve(small_object_bytes);
    if (!fingerprint) {
      out_.push_back(cereal_little_endian);
      return;
    }
    char head[9] = {cereal_with_fingerprint};
    for (int byte = 0; byte < 8; ++byte) {
      head[1 + byte] = static_cast<char>(static_cast<unsigned char>(*fingerprint >> (8 * byte)));
    }
    out_.append(head, sizeof head);
  }

  template <class... Types>
  CerealWriter& operator()(Types&&... values) {
    (put(std::forward<Types>(values)), ...);
    return *this;
  }
  template <class T>
  CerealWriter& operator&(T&& value) {
    return (*this)(std::forward<T>(value));
  }
  template <class T>
  CerealWriter& operator<<(T&& value) {
    return (*this)(std::forward<T>(value));
  }

  template <std::size_t Width>
  void write(const void* data, std::size_t size) {
    if (size == 0) return;
    const std::size_t begin = out_.size();
    out_.append(static_cast<const char*>(data), size);
    if (!cereal_host_is_little_endian()) {
      cereal_swap<Width>(reinterpret_cast<unsigned char*>(&out_[begin]), size);
    }
  }

 private:
  template <class T>
  void put(T&& value) {
    using Type = std::remove_cv_t<std::remove_reference_t<T>>;
    static_cast<void>(CerealWriteCheck<Type>());
    if constexpr (is_cereal_written<Type>) OutputArchive::operator()(std::forward<T>(value));
  }

  std::string& out_;
};

class CerealReader : public cereal::InputArchive<CerealReader, cereal::AllowEmptyClassElision>,
                     public CerealDepth {
 public:
  explicit CerealReader(std::string_view bytes) : InputArchive(this), rest_(bytes) {
    char order = 0;
    read<1>(&order, 1);
    if (order != cereal_big_endian && order != cereal_little_endian &&
        order != cereal_with_fingerprint) {
      throw cereal::Exception("the first byte is no byte order");
    }
    swap_ = (order != cereal_big_endian) != cereal_host_is_little_endian();
    if (order == cereal_with_fingerprint) read<8>(&fingerprint_.emplace(), 8);
  }

  template <class... Types>
  CerealReader& operator()(Types&&... values) {
    (get(std::forward<Types>(values)), ...);
    return *this;
  }
  template <class T>
  CerealReader& operator&(T&& value) {
    return (*this)(std::forward<T>(value));
  }
  template <class T>
  CerealReader& operator>>(T&& value) {
    return (*this)(std::forward<T>(value));
  }

  /// Of the sender's type; none: it has told none.
  std::optional<std::uint64_t> fingerprint() const { return fingerprint_; }

  std::size_t remaining() const { return rest_.size(); }

  /// Whether so many bytes, or elements of a byte or more, can be there.
  void expect(std::uint64_t size) const {
    if (size > rest_.size()) {
      throw cereal::Exception("a size of " + std::to_string(size) + " is declared, and " +
                              std::to_string(rest_.size()) + " bytes are left");
    }
  }

  template <std::size_t Width>
  void read(void* data, std::size_t size) {
    expect(size);
    if (size == 0) return;
    std::memcpy(data, rest_.data(), size);
    rest_.remove_prefix(size);
    if (swap_) cereal_swap<Width>(static_cast<unsigned char*>(data), size);
  }

 private:
  template <class T>
  void get(T&& value) {
    using Type = std::remove_cv_t<std::remove_reference_t<T>>;
    static_cast<void>(CerealReadCheck<Type>());
    static_cast<void>(CerealElementsCheck<Type>());
    if constexpr (is_cereal_read<Type> && are_elements_made<Type>) {
      InputArchive::operator()(std::forward<T>(value));
    }
  }

  std::string_view rest_;
  bool swap_ = false;
  std::optional<std::uint64_t> fingerprint_;
};

// cereal finds what follows by argument-dependent look-up.

template <class T>
void prologue(CerealWriter& archive, const T&) {
  archive.enter();
}
template <class T>
void epilogue(CerealWriter& archive, const T&) {
  archive.leave();
}
template <class T>
void prologue(CerealReader& archive, const T&) {
  archive.enter();
}
template <class T>
void epilogue(CerealReader& archive, const T&) {
  archive.leave();
}

template <class T>
constexpr void check_cereal_number() {
  static_assert(!std::is_same_v<std::remove_cv_t<T>, long double>,
                "long double has no portable form");
  static_assert(!std::is_floating_point_v<T> || std::numeric_limits<T>::is_iec559);
}

template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
void CEREAL_SAVE_FUNCTION_NAME(CerealWriter& archive, const T& number) {
  check_cereal_number<T>();
  archive.template write<sizeof(T)>(&number, sizeof(T));
}

template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
void CEREAL_LOAD_FUNCTION_NAME(CerealReader& archive, T& number) {
  check_cereal_number<T>();
  if constexpr (std::is_same_v<T, bool>) {
    static_assert(sizeof(bool) == 1);
    std::uint8_t byte = 0;  // a bool that holds another number is undefined behaviour
    archive.template read<1>(&byte, 1);
    if (byte > 1) throw cereal::Exception("a bool is neither 0 nor 1");
    number = byte == 1;
  } else {
    archive.template read<sizeof(T)>(&number, sizeof(T));
  }
}

template <class T>
void CEREAL_SAVE_FUNCTION_NAME(CerealWriter& archive, const cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(CerealReader& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}

template <class T>
void CEREAL_SAVE_FUNCTION_NAME(CerealWriter& archive, const cereal::SizeTag<T>& tag) {
  archive(static_cast<std::uint64_t>(tag.size));
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(CerealReader& archive, cereal::SizeTag<T>& tag) {
  std::uint64_t size = 0;
  archive(size);
  archive.expect(size);
  tag.size = static_cast<std::remove_reference_t<T>>(size);
}

template <class T>
void CEREAL_SAVE_FUNCTION_NAME(CerealWriter& archive, const cereal::BinaryData<T>& data) {
  using Element = std::remove_cv_t<std::remove_pointer_t<T>>;
  check_cereal_number<Element>();
  archive.template write<sizeof(Element)>(data.data, static_cast<std::size_t>(data.size));
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(CerealReader& archive, cereal::BinaryData<T>& data) {
  using Element = std::remove_cv_t<std::remove_pointer_t<T>>;
  check_cereal_number<Element>();
  archive.template read<sizeof(Element)>(data.data, static_cast<std::size_t>(data.size));
}

// cereal's own loaders of these resize first and read then. These grow with what was really read.

template <class Container>
void load_growing(CerealReader& archive, Container& container) {
  cereal::size_type size = 0;
  archive(cereal::make_size_tag(size));
  container.clear();
  using Element = typename Container::value_type;
  static_cast<void>(CerealMadeCheck<Element>());
  if constexpr (std::is_default_constructible_v<Element>) {
    for (cereal::size_type index = 0; index < size; ++index) {
      container.emplace_back();
      archive(container.back());
    }
  }
}

template <class T, class Allocator, std::enable_if_t<!std::is_same_v<T, bool>, int> = 0>
void CEREAL_LOAD_FUNCTION_NAME(CerealReader& archive, std::vector<T, Allocator>& vector) {
  if constexpr (std::is_arithmetic_v<T>) {
    cereal::size_type size = 0;
    archive(cereal::make_size_tag(size));
    if (size > archive.remaining() / sizeof(T)) archive.expect(archive.remaining() + 1);
    vector.resize(static_cast<std::size_t>(size));
    archive(cereal::binary_data(vector.data(), vector.size() * sizeof(T)));
  } else {
    load_growing(archive, vector);
  }
}

template <class T, class Allocator>
void CEREAL_LOAD_FUNCTION_NAME(CerealReader& archive, std::deque<T, Allocator>& deque) {
  load_growing(archive, deque);
}

template <class T, class Allocator>
void CEREAL_LOAD_FUNCTION_NAME(CerealReader& archive, std::list<T, Allocator>& list) {
  load_growing(archive, list);
}

}  // namespace detail
MUSTER_END_NAMESPACE

CEREAL_SETUP_ARCHIVE_TRAITS(muster::detail::CerealReader, muster::detail::CerealWriter)
