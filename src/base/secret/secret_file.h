#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret/secret_bytes.h"
#include "muster/result.h"

namespace muster::base {

/// A text of secret bytes. It never grows, so there is one copy of it.
class SecretText {
 public:
  /// bytes  that it has room for
  explicit SecretText(std::size_t bytes) : bytes_(bytes), size_(bytes) {}

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), size_}; }
  /// To be written to.
  char* data() { return reinterpret_cast<char*>(bytes_.data()); }
  /// Of what was written only so much counts.
  void cut(std::size_t bytes) { size_ = bytes; }

 private:
  SecretBytes bytes_;
  std::size_t size_;
};

/// Which file it is, and since when it is as it is.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  std::int64_t changed_ns = 0;  ///< its content or its mode, since 1970

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Of the file that the path leads to, through any links; nothing: there is none.
std::optional<FileStamp> stamp_of(const std::string& path);
/// Of several files, in the order of their paths, of which empty ones do not count.
using FileStamps = std::vector<std::optional<FileStamp>>;
FileStamps stamps_of(std::initializer_list<std::string> paths);

/// Reads all of a file that holds secrets: a regular one, owned by this user or by root, that
/// neither others than its owner and its group can read, nor others than its owner can write.
///
/// errors  invalid_argument (it does not exist, cannot be opened, or is no such file; `detail` says
///         how it would be one), too_large (limit), unavailable (the system has no descriptor or
///         memory left, or cannot read it)
Result<SecretText> read_secret_file(const std::string& path, std::size_t bytes_max);

}  // namespace muster::base
