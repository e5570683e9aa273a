#pragma once

// A lock among processes, by a file in a folder that they share. In the library muster-runtime
// (CMake: Muster::runtime).

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "muster/config.h"
#include "muster/log.h"
#include "muster/result.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// Who holds a lock, or held it, as the lock's file says. Empty fields: the file does not say it.
struct FileLockOwner {
  std::string host;
  std::uint32_t pid = 0;  ///< as in the process's own pid namespace
  std::string label;      ///< that of FileLockOptions
  std::chrono::system_clock::time_point since;
};

/// "pid 4711 on node7 (trainer) since 2026-01-31T08:15:00Z"
MUSTER_API std::string to_string(const FileLockOwner& owner);

/// Options of `FileLock::acquire`.
struct FileLockOptions {
  /// How long to wait for another owner's end; zero: not at all.
  Duration timeout{0};
  std::string label;  ///< tells people who holds the lock; the first 64 bytes count
  Logger logger;      ///< is told of an owner that died without releasing
};

/// An exclusive lock among processes, and among the handles of one process. A handle: the lock ends
/// when it is destroyed, and the kernel ends it when the process dies in whatever way.
///
/// It is an open-file-description lock (fcntl F_OFD_SETLK) on a file that exists while the lock is
/// held, on local file systems and on NFS. Nobody but the owner removes that file. A file that a
/// dead owner has left keeps nobody out.
///
/// A forked child holds nothing: there `release` is an error and the destructor does nothing to the
/// lock. But a child that lives on without exec keeps the lock from ending when its parent dies.
///
/// threads  one call at a time
class MUSTER_API FileLock {
 public:
  /// Acquires the lock; waits for its owner at most `options.timeout`. Waiting processes have no
  /// order. It polls, with pauses of 1 to 50 ms: the kernel's own wait has no deadline.
  ///
  /// path     of the lock's file, in a folder that is there; no symbolic link, and no file with
  ///          anything else in it
  /// errors   busy (another one holds it, and the timeout is zero), timed_out (another one still
  ///          holds it); `detail` of both: who, since when. invalid_argument (a directory, a
  ///          symbolic link, no such folder), permission_denied, resource_exhausted (the disk is
  ///          full, too many open files), unsupported (a file system without locks), unavailable
  ///          (another failure of the file system)
  /// threads  any; not from an inline handler, unless the timeout is zero
  /// see      in place of ModelOpt's FileLock
  static Result<FileLock> acquire(const std::string& path, const FileLockOptions& options = {});

  /// Who holds the lock of that path now; nobody: none. Also those who left nothing to read are
  /// somebody.
  ///
  /// errors  as acquire, without busy and timed_out
  static Result<std::optional<FileLockOwner>> owner_of(const std::string& path);

  ~FileLock();
  FileLock(FileLock&&) noexcept;
  FileLock& operator=(FileLock&&) noexcept;

  /// Releases the lock and removes its file. After that, or a move, it does nothing.
  ///
  /// errors  forked; not_found (somebody has removed the file meanwhile, so others may have had the
  ///         lock at the same time), permission_denied, unavailable (the file could not be removed;
  ///         the lock is released)
  Result<void> release();

  bool is_held() const;
  const std::string& path() const;
  /// The owner that died without releasing the lock before this one acquired it; none: there was
  /// none.
  const std::optional<FileLockOwner>& taken_over_from() const;

  class Impl;

 private:
  explicit FileLock(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
