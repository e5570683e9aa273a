#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>

#include "base/random.h"

// The id's life: the first caller maps a page that the kernel wipes in forked children and writes
// the id there; later callers read it; a child finds the page empty and writes its own. No fork
// handler is registered and no lock is held, so a child that forked while another thread was in
// here cannot hang. Where the kernel knows no wiping (before 4.14, some sandboxes) the pid beside
// the id tells a child from its parent.

namespace muster::base {
namespace {

enum Phase : std::uint64_t { writing = 1, written = 2 };

struct Slot {
  std::atomic<std::uint64_t> state{0};  // 4 * pid + Phase; 0: empty
  ProcessId id;
};

Slot* map_slot() {
  void* const page =
      ::mmap(nullptr, sizeof(Slot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  ::madvise(page, sizeof(Slot), MADV_WIPEONFORK);  // a refusal leaves the pid to tell
  return new (page) Slot;
}

Slot& the_slot() {
  static constinit Slot unmapped;
  static constinit std::atomic<Slot*> shared{nullptr};
  Slot* slot = shared.load(std::memory_order_acquire);
  if (slot != nullptr) return *slot;
  Slot* const fresh = map_slot();
  Slot* const chosen = fresh != nullptr ? fresh : &unmapped;
  if (shared.compare_exchange_strong(slot, chosen, std::memory_order_acq_rel)) return *chosen;
  if (fresh != nullptr) ::munmap(fresh, sizeof(Slot));
  return *slot;
}

}  // namespace

ProcessId own_process_id() {
  Slot& slot = the_slot();
  const std::uint64_t mine = static_cast<std::uint64_t>(::getpid()) * 4;
  for (;;) {
    std::uint64_t state = slot.state.load(std::memory_order_acquire);
    if (state == mine + written) return slot.id;
    if (state == mine + writing) {
      ::sched_yield();  // another thread is between two lines of this function
    } else if (slot.state.compare_exchange_strong(state, mine + writing)) {
      fill_random(slot.id.bytes.data(), slot.id.bytes.size());
      slot.state.store(mine + written, std::memory_order_release);
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
  info.pid = static_cast<std::uint32_t>(::getpid());
  info.label = label.substr(0, name_bytes_max);
  return info;
}

}  // namespace muster::base
