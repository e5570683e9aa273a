#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_handle.h"
#include "muster/error.h"

// Files that processes share, and locks on them. Locks are those of an open file description
// (F_OFD_SETLK): they exclude also within a process, and a close of another descriptor of the same
// file does not end them.

namespace muster::runtime {

/// What a file is told apart by, on its host.
struct FileIdentity {
  dev_t device = 0;
  ino_t number = 0;

  friend bool operator==(FileIdentity a, FileIdentity b) {
    return a.device == b.device && a.number == b.number;
  }
};

struct FileOpened {
  base::FileHandle handle;
  int code = 0;  ///< errno, if there is no handle
};
/// Opens a regular file: no symbolic link, nothing that blocks.
///
/// flags  of open(2)
FileOpened open_regular(const std::string& path, int flags);

/// A name in a folder that stays the same folder, even if its path later leads to another one: so
/// what is removed or replaced here is never a file of that other folder.
struct FilePlace {
  base::FileHandle folder;
  std::string name;
  int code = 0;  ///< errno, if there is no folder

  static FilePlace of(const std::string& path);
  FileOpened open(int flags) const;  ///< as open_regular
  /// Whether the name is still that of this open file.
  bool names(const base::FileHandle& file) const;
  /// Removes the name if it is that of this open file.
  ///
  /// returns  0, or errno; ENOENT also if it is the name of another file
  int remove(const base::FileHandle& file) const;
};

/// none: it cannot be asked.
std::optional<FileIdentity> identity_of(const base::FileHandle& file);

/// returns  0, or errno: EAGAIN if another one holds it
int lock(const base::FileHandle& file);
void unlock(const base::FileHandle& file);
/// Whether somebody holds the lock of the file through another handle.
///
/// returns  0: nobody; EAGAIN: somebody; else errno
int holder_of(const base::FileHandle& file);

/// The first bytes of the file, at most so many.
///
/// returns  none: it cannot be read
std::optional<std::string> content_of(const base::FileHandle& file, std::size_t bytes_max);
/// returns  0, or errno
int write_at(const base::FileHandle& file, std::string_view bytes, std::size_t position);

/// Error of a file, by errno.
///
/// what  that was not done, such as "the lock's file cannot be opened"
Error file_error(std::string_view operation, const std::string& path, std::string_view what,
                 int code);

/// This host's name as the system has it.
std::string own_host_name();

}  // namespace muster::runtime
