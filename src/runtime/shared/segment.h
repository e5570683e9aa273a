#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/result.h"
#include "runtime/shared/new_file.h"

namespace muster::runtime {

/// A file of shared memory that is mapped here. Its creator's object has its name, which ends with
/// it at the latest; the memory itself lasts as long as anybody has it mapped.
///
/// errors  those of NewFile
class SharedSegment {
 public:
  enum class Access : std::uint8_t { read_write, read_only };

  /// A new one of zeros. All of it is reserved before it is mapped: no access to it fails.
  ///
  /// bytes  0: `data` is null
  static Result<SharedSegment> create(const std::string& folder, std::string_view purpose,
                                      std::uint64_t bytes);
  /// Maps what a NewFile was filled with, and takes over its name.
  static Result<SharedSegment> map(NewFile file);
  /// Maps one that another process has created.
  ///
  /// bytes   its size
  /// errors  not_found (it has no such name any more), codec_failure (it is no regular file of this
  ///         user, or of another size)
  static Result<SharedSegment> open(const std::string& folder, std::string_view name,
                                    std::uint64_t bytes, Access access = Access::read_write);

  SharedSegment() = default;
  ~SharedSegment();
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;

  const std::string& name() const { return name_; }
  char* data() const { return data_; }
  std::uint64_t size() const { return size_; }
  /// Takes the name away, so that nothing remains when the last process unmaps it, however it ends;
  /// then the lock. Does nothing in others than the creator, and a second time.
  void unlink() { file_.unlink(); }

 private:
  Result<void> map_file(int descriptor, int protection);
  void unmap();

  std::string name_;
  char* data_ = nullptr;
  std::uint64_t size_ = 0;
  NewFile file_;  ///< of the creator
};

}  // namespace muster::runtime
