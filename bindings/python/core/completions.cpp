#include "completions.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace muster::python {

Completions::Completions() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ >= 0) return;
  PyErr_SetFromErrno(PyExc_OSError);
  throw py::error_already_set();
}

Completions::~Completions() { ::close(descriptor_); }

void Completions::put(std::uint64_t token, std::unique_ptr<Kept> kept) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({token, std::move(kept)});
  if (entries_.size() > 1) return;  // it is readable already
  const std::uint64_t one = 1;
  static_cast<void>(!::write(descriptor_, &one, sizeof(one)));
}

py::list Completions::take_all() {
  std::vector<Entry> entries;
  {
    const std::lock_guard lock(mutex_);
    std::uint64_t count = 0;
    static_cast<void>(!::read(descriptor_, &count, sizeof(count)));
    entries.swap(entries_);
  }
  py::list taken;
  for (Entry& entry : entries) {
    auto [is_value, object] = entry.kept->take();
    taken.append(py::make_tuple(entry.token, is_value, std::move(object)));
  }
  return taken;
}

}  // namespace muster::python
