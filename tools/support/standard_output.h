#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

namespace tools {

/// Writes a text to the standard output, or says on standard error why it cannot.
///
/// returns  whether it is written
inline bool write_text(std::string_view program, std::string_view text) {
  errno = 0;
  std::cout << text << std::flush;
  int error = std::cout ? 0 : errno;
  // Some file systems say only when a file is closed that they had no room.
  const int copy = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (copy >= 0 && ::close(copy) != 0) error = errno;
  if (std::cout && error == 0) return true;
  std::cerr << program << ": cannot write to the standard output: " << std::strerror(error) << '\n';
  return false;
}

}  // namespace tools
