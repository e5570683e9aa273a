#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/file_handle.h"
#include "base/forked.h"
#include "muster/result.h"

namespace muster::runtime {

/// Where the memory is that processes of one host share.
inline constexpr std::string_view shared_memory_folder = "/dev/shm";

/// A new file of this process, "muster-<purpose>-<32 hexadecimal digits>": the digits tell the host
/// and then are random, so no other job and no later attempt has its name. Others know that its
/// process lives by a lock that this holds for as long as the file has that name.
///
/// The name goes with this object, unless the file was renamed; not in a forked child.
///
/// errors  of all calls: resource_exhausted (the folder is full; `detail`: what is free there),
///         permission_denied, invalid_argument (there is no such folder), unavailable
class NewFile {
 public:
  /// purpose  of letters
  static Result<NewFile> create(const std::string& folder, std::string_view purpose);
  NewFile() = default;
  ~NewFile();
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;

  const std::string& name() const { return name_; }  ///< without the folder
  std::string path() const { return folder_ + "/" + name_; }
  int descriptor() const { return descriptor_.get(); }
  std::uint64_t size() const { return size_; }  ///< of what was reserved or written

  /// Takes all bytes from the folder's space, as zeros: writing to a mapping of them then cannot
  /// fail, which a process would hear of by SIGBUS.
  Result<void> reserve(std::uint64_t bytes);
  /// Appends. To a fresh file of shared memory this is faster than a mapping, of which each page is
  /// zeroed before it is written; and a full folder is an error in any case.
  Result<void> append(const void* data, std::uint64_t bytes);
  /// Fills in what was left out at its begin.
  Result<void> write_at(std::uint64_t offset, const void* data, std::uint64_t bytes);
  /// Until its bytes are on the disk, or at the server of a shared folder.
  Result<void> sync();
  /// Gives the file its name for good, in place of the one that has it, and ends the lock.
  Result<void> rename_to(const std::string& name);
  /// Takes the name away, and ends the lock. Does nothing if it has none.
  void unlink();

 private:
  Error failed(std::string_view what, std::uint64_t bytes, int number) const;

  std::string folder_;
  std::string name_;
  base::FileHandle descriptor_;
  std::uint64_t size_ = 0;
  bool has_name_ = false;
  base::Owner owner_;
};

/// Whether a name that another process tells is of such a file, and leads into no other folder.
bool is_name_of(std::string_view name, std::string_view purpose);

/// Removes files of NewFile whose processes are gone: own user's, made on this host. Called before
/// each creation; looks at a bounded number of entries.
///
/// returns  how many it has removed
std::size_t sweep(const std::string& folder);

}  // namespace muster::runtime
