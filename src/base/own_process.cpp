#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/forked.h"
#include "base/host_pid.h"
#include "base/random.h"

// The id's life: the first caller draws it, later callers read it. A forked child inherits its
// parent's id with the mark of the parent's process, sees that the mark is not its own and draws
// anew. No fork handler is registered and no lock is held, so a child that forked while another
// thread was in here cannot hang.

namespace muster::base {
namespace {

enum Phase : std::uint64_t { writing = 1, written = 2, phases = 3 };

/// A number of this process that has the bits of Phase clear.
std::uint64_t owner() {
  const std::uint64_t mark = ProcessMark::of_this_process();
  return mark != 0 ? mark & ~std::uint64_t{phases} : static_cast<std::uint64_t>(::getpid()) * 4;
}

}  // namespace

ProcessId own_process_id() {
  static constinit std::atomic<std::uint64_t> state{0};  // an owner and a Phase; 0: empty
  static constinit ProcessId id{};
  const std::uint64_t mine = owner();
  for (;;) {
    std::uint64_t found = state.load(std::memory_order_acquire);
    if (found == mine + written) return id;
    if (found == mine + writing) {
      ::sched_yield();  // another thread is between two lines of this function
    } else if (state.compare_exchange_strong(found, mine + writing)) {
      const bool is_filled = fill_random(id.bytes.data(), id.bytes.size());
      state.store(is_filled ? mine + written : 0, std::memory_order_release);
      if (!is_filled) return {};
    }
  }
}

ProcessInfo own_process(std::string_view label) {
  constexpr std::size_t name_bytes_max = 64;
  char host[256] = "";
  if (::gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  ProcessInfo info;
  info.id = own_process_id();
  info.host.assign(host, ::strnlen(host, name_bytes_max));
  info.pid = host_pid();
  info.label = label.substr(0, name_bytes_max);
  return info;
}

}  // namespace muster::base
