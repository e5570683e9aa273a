#pragma once

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <new>
#include <utility>

namespace muster::base {

/// Says which process this is without asking the system each time: a word in a page that the
/// kernel wipes in forked children. It is written by the first who asks, in a child anew. No fork
/// handler is registered and no lock is held, so nothing can hang in a child.
class ProcessMark {
 public:
  /// 0 where the kernel knows no wiping (before 4.14, some sandboxes).
  static std::uint64_t of_this_process() {
    std::atomic<std::uint64_t>* const word = the_word();
    if (word == nullptr) return 0;
    std::uint64_t found = word->load(std::memory_order_relaxed);
    if (found != 0) return found;
    const std::uint64_t fresh = unique();
    return word->compare_exchange_strong(found, fresh) ? fresh : found;
  }

 private:
  using Word = std::atomic<std::uint64_t>;

  /// A pid alone comes back, in a process that lives when its parents are gone.
  static std::uint64_t unique() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    const auto pid = static_cast<std::uint64_t>(::getpid());
    const auto seconds = static_cast<std::uint64_t>(now.tv_sec) << 20;
    const auto microseconds = static_cast<std::uint64_t>(now.tv_nsec) >> 10;
    return (pid << 40) ^ (seconds + microseconds) ^ (std::uint64_t{1} << 63);
  }

  static Word* the_word() {
    static constinit std::atomic<Word*> shared{nullptr};
    static constinit std::atomic<bool> is_refused{false};
    Word* word = shared.load(std::memory_order_acquire);
    if (word != nullptr || is_refused.load(std::memory_order_relaxed)) return word;
    void* const page =
        ::mmap(nullptr, sizeof(Word), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return nullptr;
    if (::madvise(page, sizeof(Word), MADV_WIPEONFORK) != 0) {
      is_refused = true;
    } else {
      Word* const fresh = new (page) Word(0);
      if (shared.compare_exchange_strong(word, fresh, std::memory_order_acq_rel)) return fresh;
    }
    ::munmap(page, sizeof(Word));
    return word;
  }
};

/// Knows the process that made it. A forked child of that has none of its threads, and its locks as
/// they were.
class Owner {
 public:
  bool is_forked() const {
    return mark_ != 0 ? ProcessMark::of_this_process() != mark_ : ::getpid() != pid_;
  }

 private:
  pid_t pid_ = ::getpid();
  std::uint64_t mark_ = ProcessMark::of_this_process();
};

/// Keeps `object` until the process ends, reachable for leak checkers. For a forked child, where
/// the destructors of what belongs to the parent's threads must not run.
inline void keep_forever(std::shared_ptr<void> object) {
  struct Kept {
    std::shared_ptr<void> object;
    Kept* next = nullptr;
  };
  static constinit std::atomic<Kept*> kept{nullptr};
  auto* const entry = new Kept{std::move(object), kept.load()};
  while (!kept.compare_exchange_weak(entry->next, entry)) {
  }
}

}  // namespace muster::base
