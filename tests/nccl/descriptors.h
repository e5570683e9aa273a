#pragma once

#include <dirent.h>
#include <fcntl.h>

#include <cstddef>
#include <cstdlib>

namespace muster::test {

/// The descriptors that an exec'd child would inherit, beside the first three.
inline std::size_t inherited_count() {
  std::size_t count = 0;
  DIR* const descriptors = ::opendir("/proc/self/fd");
  while (const dirent* const entry = ::readdir(descriptors)) {
    const int descriptor = std::atoi(entry->d_name);
    if (descriptor < 3) continue;
    count += (::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0;
  }
  ::closedir(descriptors);
  return count;
}

}  // namespace muster::test
