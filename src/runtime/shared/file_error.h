#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "base/failure.h"

namespace muster::runtime {

/// What an error of the system is as one of ours, of a call that was given a folder or a file.
inline ErrorCode code_of_errno(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EFBIG: return ErrorCode::resource_exhausted;
    case EACCES:
    case EPERM:
    case EROFS: return ErrorCode::permission_denied;
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EINVAL:
    case ENXIO:  // a socket in place of a file
    case ENAMETOOLONG: return ErrorCode::invalid_argument;
    case ENOLCK:
    case ENOSYS:
    case EOPNOTSUPP: return ErrorCode::unsupported;
    default: return ErrorCode::unavailable;
  }
}

/// what  what has failed, and of which file: "/dev/shm/x cannot be opened"
inline Error file_failure(std::string what, int number) {
  return base::failure(code_of_errno(number),
                       std::move(what) + ": " + std::generic_category().message(number));
}

}  // namespace muster::runtime
