#include "nccl/double.h"

#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

namespace {

struct UniqueId {
  char internal[128];
};

std::atomic<int> refusal{0};
std::atomic<int> waiting{0};
std::atomic<void (*)()> before{nullptr};

/// As NCCL's root does; who comes is not served, since the tests open no communicator.
void wait_at(int listener) {
  for (int peer; (peer = ::accept(listener, nullptr, nullptr)) >= 0;) ::close(peer);
  ::close(listener);
  --waiting;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int ncclGetUniqueId(void* bytes) {
  auto* const id = static_cast<UniqueId*>(bytes);
  if (const auto action = before.load()) action();
  if (refusal != 0) return refusal;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener, 16) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    ::close(listener);
    return 2;
  }
  std::memset(id, 0, sizeof *id);
  if (::getrandom(id->internal, 8, 0) != 8) return 3;
  std::memcpy(id->internal + 8, &address, sizeof address);
  ++waiting;
  std::thread(wait_at, listener).detach();
  return 0;
}

__attribute__((visibility("default"))) const char* ncclGetErrorString(int result) {
  return result == 2 ? "unhandled system error" : "another error";
}

__attribute__((visibility("default"))) const char* ncclGetLastError(void*) {
  return refusal == 0 ? "" : "the double was told to refuse";
}

__attribute__((visibility("default"))) void nccl_double_refuse(int result) { refusal = result; }

__attribute__((visibility("default"))) void nccl_double_before(void (*action)()) {
  before = action;
}

__attribute__((visibility("default"))) int nccl_double_waiting() { return waiting; }
}
