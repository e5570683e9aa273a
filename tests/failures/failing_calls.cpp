#include "failures/failing_calls.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

namespace muster::test {
namespace {

constexpr int frames_max = 24;

std::atomic<Fails> failing{Fails::nothing};
std::atomic<std::uint64_t> planned{0};
std::atomic<std::uint64_t> planned_in_a_row{1};
std::atomic<std::uint64_t> seen{0};
std::atomic<bool> has_failed{false};
std::array<void*, frames_max> failed_frames;
std::atomic<int> failed_frame_count{0};
std::atomic<const char*> failed_name{""};
thread_local bool is_exempt = false;

constexpr std::pair<Fails, const char*> names[] = {
    {Fails::allocation, "allocation"},
    {Fails::no_memory, "no_memory"},
    {Fails::no_descriptor, "no_descriptor"},
    {Fails::connection_reset, "connection_reset"},
    {Fails::interrupted, "interrupted"},
    {Fails::one_byte, "one_byte"},
    {Fails::openssl, "openssl"},
};

/// Whether this call, which can fail as `what`, is to.
bool fails_now(Fails what, const char* name) {
  if (is_exempt || failing.load(std::memory_order_relaxed) != what) return false;
  const std::uint64_t number = seen.fetch_add(1) + 1;
  const std::uint64_t which = planned.load(std::memory_order_relaxed);
  if (which == 0 && what == Fails::one_byte) return true;
  if (number < which || number - which >= planned_in_a_row) return false;
  // At once: what this ends may be over before the first of several has noted where it was.
  has_failed = true;
  if (number != which) return true;
  is_exempt = true;
  failed_name = name;
  failed_frame_count = ::backtrace(failed_frames.data(), frames_max);
  is_exempt = false;
  return true;
}

/// As the system says it; 0: it does not fail.
int error_of(const char* name, int no_memory, int no_descriptor, int reset, int interrupted) {
  if (no_memory != 0 && fails_now(Fails::no_memory, name)) return no_memory;
  if (no_descriptor != 0 && fails_now(Fails::no_descriptor, name)) return no_descriptor;
  if (reset != 0 && fails_now(Fails::connection_reset, name)) return reset;
  if (interrupted != 0 && fails_now(Fails::interrupted, name)) return interrupted;
  return 0;
}

template <class... Of, class Returned>
auto* like(Returned (*)(Of...), const char* name) {
  return reinterpret_cast<Returned (*)(Of...)>(::dlsym(RTLD_NEXT, name));
}

/// Of a program that was told to by its environment.
struct FromEnvironment {
  FromEnvironment() {
    const char* const text = std::getenv("MUSTER_TEST_FAILS");
    if (text == nullptr) return;
    is_told = true;
    const std::string_view view(text);
    const auto colon = view.find(':');
    for (const auto& [what, name] : names) {
      if (view.substr(0, colon) != name) continue;
      char* end = nullptr;
      const std::uint64_t which = std::strtoull(text + colon + 1, &end, 10);
      begin_failing({what, which, std::strtoull(end + 1, nullptr, 10)});
    }
  }
  ~FromEnvironment() {
    if (!is_told) return;
    const Failed failed = end_failing();
    std::fprintf(stderr, "failing: %llu seen; %s\n",
                 static_cast<unsigned long long>(failed.seen_count), failed.where.c_str());
  }
  bool is_told = false;
} from_environment;

}  // namespace

namespace {

/// Says what had failed when nobody was there to catch it.
[[noreturn]] void tell_and_abort() {
  ::backtrace_symbols_fd(failed_frames.data(), failed_frame_count, STDERR_FILENO);
  std::abort();
}

}  // namespace

void begin_failing(FailurePlan plan) {
  std::set_terminate(tell_and_abort);
  // What these do when first called does not count.
  std::array<void*, 4> warm_up;
  ::backtrace(warm_up.data(), static_cast<int>(warm_up.size()));
  has_failed = false;
  failed_frame_count = 0;
  failed_name = "";
  planned = plan.which;
  planned_in_a_row = plan.in_a_row;
  seen = 0;
  failing = plan.what;
}

Failed end_failing() {
  failing = Fails::nothing;
  Failed failed;
  failed.seen_count = seen;
  failed.has_failed = has_failed;
  if (!has_failed) return failed;
  failed.where = failed_name;
  const int count = failed_frame_count;
  char** const texts = ::backtrace_symbols(failed_frames.data(), count);
  for (int index = 2; texts != nullptr && index < count; ++index) {
    failed.where += std::string("\n    ") + texts[index];
  }
  std::free(texts);
  return failed;
}

bool fails_in_openssl() { return fails_now(Fails::openssl, "OpenSSL's allocation"); }

Exempt::Exempt(bool exempt) : before_(std::exchange(is_exempt, exempt)) {}
Exempt::~Exempt() { is_exempt = before_; }

std::string text_of(FailurePlan plan) {
  for (const auto& [what, name] : names) {
    if (what == plan.what) {
      return std::string(name) + ":" + std::to_string(plan.which) + ":" +
             std::to_string(plan.in_a_row);
    }
  }
  return {};
}

}  // namespace muster::test

using muster::test::error_of;
using muster::test::Fails;
using muster::test::fails_now;
using muster::test::like;

// Memory. The standard says what operator new does when there is none: it asks the new handler.

void* operator new(std::size_t size) {
  for (;;) {
    if (!fails_now(Fails::allocation, "operator new")) {
      if (void* const block = std::malloc(size == 0 ? 1 : size)) return block;
    }
    const std::new_handler make_room = std::get_new_handler();
    if (make_room == nullptr) throw std::bad_alloc();
    make_room();
  }
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

// Socket calls, in front of the C library's.

#define MUSTER_REAL(name) static auto* const real = like(&::name, #name)
#define MUSTER_FAIL(name, memory, descriptor, reset, interrupted)                 \
  if (const int error = error_of(name, memory, descriptor, reset, interrupted)) { \
    errno = error;                                                                \
    return -1;                                                                    \
  }

extern "C" {

int socket(int domain, int type, int protocol) noexcept {
  MUSTER_REAL(socket);
  MUSTER_FAIL("socket", ENOMEM, EMFILE, 0, 0);
  return real(domain, type, protocol);
}

int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  MUSTER_REAL(accept4);
  MUSTER_FAIL("accept4", ENOMEM, EMFILE, ECONNABORTED, EINTR);
  return real(fd, address, size, flags);
}

int connect(int fd, const sockaddr* address, socklen_t size) {
  MUSTER_REAL(connect);
  MUSTER_FAIL("connect", ENOMEM, 0, ECONNRESET, 0);
  return real(fd, address, size);
}

int bind(int fd, const sockaddr* address, socklen_t size) noexcept {
  MUSTER_REAL(bind);
  MUSTER_FAIL("bind", ENOMEM, 0, 0, 0);
  return real(fd, address, size);
}

int listen(int fd, int backlog) noexcept {
  MUSTER_REAL(listen);
  MUSTER_FAIL("listen", ENOBUFS, 0, 0, 0);
  return real(fd, backlog);
}

int getsockname(int fd, sockaddr* address, socklen_t* size) noexcept {
  MUSTER_REAL(getsockname);
  MUSTER_FAIL("getsockname", ENOBUFS, 0, 0, 0);
  return real(fd, address, size);
}

int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept {
  MUSTER_REAL(getpeername);
  MUSTER_FAIL("getpeername", ENOBUFS, 0, 0, 0);
  return real(fd, address, size);
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  MUSTER_REAL(setsockopt);
  MUSTER_FAIL("setsockopt", ENOMEM, 0, 0, 0);
  return real(fd, level, name, value, size);
}

int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
  MUSTER_REAL(getsockopt);
  MUSTER_FAIL("getsockopt", ENOBUFS, 0, 0, 0);
  return real(fd, level, name, value, size);
}

int epoll_create1(int flags) noexcept {
  MUSTER_REAL(epoll_create1);
  MUSTER_FAIL("epoll_create1", ENOMEM, EMFILE, 0, 0);
  return real(flags);
}

int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  MUSTER_REAL(epoll_ctl);
  if (operation == EPOLL_CTL_ADD) MUSTER_FAIL("epoll_ctl", ENOMEM, 0, 0, 0);
  return real(epoll, operation, fd, event);
}

int epoll_wait(int epoll, epoll_event* events, int count, int timeout) {
  MUSTER_REAL(epoll_wait);
  MUSTER_FAIL("epoll_wait", 0, 0, 0, EINTR);
  return real(epoll, events, count, timeout);
}

int eventfd(unsigned count, int flags) noexcept {
  MUSTER_REAL(eventfd);
  MUSTER_FAIL("eventfd", ENOMEM, EMFILE, 0, 0);
  return real(count, flags);
}

int timerfd_create(int clock, int flags) noexcept {
  MUSTER_REAL(timerfd_create);
  MUSTER_FAIL("timerfd_create", ENOMEM, EMFILE, 0, 0);
  return real(clock, flags);
}

ssize_t recv(int fd, void* bytes, std::size_t size, int flags) {
  MUSTER_REAL(recv);
  MUSTER_FAIL("recv", ENOMEM, 0, ECONNRESET, EINTR);
  return real(fd, bytes, size > 1 && fails_now(Fails::one_byte, "recv") ? 1 : size, flags);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  MUSTER_REAL(sendmsg);
  MUSTER_FAIL("sendmsg", ENOBUFS, 0, ECONNRESET, EINTR);
  if (message->msg_iovlen == 0 || !fails_now(Fails::one_byte, "sendmsg")) {
    return real(fd, message, flags);
  }
  iovec first = message->msg_iov[0];
  first.iov_len = first.iov_len > 1 ? 1 : first.iov_len;
  msghdr shortened = *message;
  shortened.msg_iov = &first;
  shortened.msg_iovlen = 1;
  return real(fd, &shortened, flags);
}

}  // extern "C"
