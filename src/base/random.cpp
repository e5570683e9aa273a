#include "base/random.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>

namespace muster::base {
namespace {

/// Fills from the front; returns how many bytes it could not get.
std::size_t fill_by_getrandom(unsigned char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::getrandom(data, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // a sandbox may forbid the call
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  return size;
}

std::size_t fill_by_device(unsigned char* data, std::size_t size) {
  const int file = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (file < 0) return size;
  while (size > 0) {
    const ssize_t got = ::read(file, data, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  ::close(file);
  return size;
}

}  // namespace

bool fill_random(void* data, std::size_t size) {
  auto* const end = static_cast<unsigned char*>(data) + size;
  size = fill_by_getrandom(end - size, size);
  return size == 0 || fill_by_device(end - size, size) == 0;
}

std::optional<std::uint64_t> random_u64() {
  std::uint64_t number = 0;
  if (!fill_random(&number, sizeof(number))) return std::nullopt;
  return number;
}

}  // namespace muster::base
