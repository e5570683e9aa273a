#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

#include "arguments.h"
#include "bind.h"
#include "callbacks.h"
#include "calls.h"
#include "muster/file_lock.h"
#include "muster/sampler.h"

namespace muster::python {

namespace {

struct LockHandle {
  std::shared_ptr<FileLock> lock;
};

/// A tuple: host, pid, label, and seconds since the epoch.
py::object object_of_owner(const std::optional<FileLockOwner>& owner) {
  if (!owner) return py::none();
  const std::chrono::duration<double> since = owner->since.time_since_epoch();
  return py::make_tuple(text_of(owner->host), owner->pid, text_of(owner->label), since.count());
}

py::object acquire(const std::string& path, py::handle timeout, const std::string& label,
                   const py::object& logger) {
  FileLockOptions options;
  options.timeout = duration_of(timeout, "timeout", options.timeout);
  options.label = label;
  options.logger = logger_of(logger);
  return block([&] { return FileLock::acquire(path, options); },
               [](FileLock&& lock) { return py::cast(LockHandle{shared(std::move(lock))}); });
}

UnevenElements uneven_of(const std::string& name) {
  if (name == "pad") return UnevenElements::pad;
  if (name == "drop") return UnevenElements::drop;
  if (name == "exact") return UnevenElements::exact;
  refuse_choice("uneven", "pad, drop or exact", name);
}

DistributedSampler make_sampler(Whole<std::uint64_t> count, Whole<std::uint64_t> replica_count,
                                Whole<std::uint64_t> rank, bool shuffle, Whole<std::uint64_t> seed,
                                const std::string& uneven) {
  SamplerOptions options;
  options.replica_count = replica_count;
  options.rank = rank;
  options.shuffle = shuffle;
  options.seed = seed;
  options.uneven = uneven_of(uneven);
  auto sampler = DistributedSampler::create(count, options);
  if (!sampler) raise(sampler.error());
  return *std::move(sampler);
}

/// As the buffer of an object that gives ints one by one: 8 bytes for each, not 32.
class Indices {
 public:
  explicit Indices(std::vector<std::uint64_t> all) : all_(std::move(all)) {}
  std::vector<std::uint64_t>& all() { return all_; }

 private:
  std::vector<std::uint64_t> all_;
};

Indices indices_of(const DistributedSampler& sampler) {
  const WithoutGil released;
  return Indices(sampler.indices());
}

void bind_sampler(py::module_& module) {
  py::class_<Indices>(module, "Indices", py::buffer_protocol()).def_buffer([](Indices& self) {
    return py::buffer_info(self.all().data(), static_cast<py::ssize_t>(self.all().size()), true);
  });
  py::class_<DistributedSampler>(module, "DistributedSampler")
      .def(py::init(
          named(&make_sampler, "dataset", "replica_count", "rank", "shuffle", "seed", "uneven")))
      .def("set_epoch",
           [](DistributedSampler& self, py::handle epoch) {
             self.set_epoch(argument_of<std::uint64_t>(epoch, "epoch"));
           })
      .def("epoch", &DistributedSampler::epoch)
      .def("indices", &indices_of)
      .def("size", &DistributedSampler::size)
      .def("padded_count", &DistributedSampler::padded_count)
      .def("dropped_count", &DistributedSampler::dropped_count);
}

}  // namespace

void bind_files(py::module_& module) {
  py::class_<LockHandle>(module, "FileLock")
      .def("release",
           [](const LockHandle& self) { return block([&] { return self.lock->release(); }); })
      .def("is_held", [](const LockHandle& self) { return self.lock->is_held(); })
      .def("path", [](const LockHandle& self) { return text_of(self.lock->path()); })
      .def("taken_over_from",
           [](const LockHandle& self) { return object_of_owner(self.lock->taken_over_from()); });
  module.def("acquire_file_lock", named(&acquire, "path", "timeout", "label", "logger"));
  module.def("owner_of_file_lock", [](py::handle given) {
    const std::string path = string_of(given, "path");
    return block([&] { return FileLock::owner_of(path); }, object_of_owner);
  });
  bind_sampler(module);
}

}  // namespace muster::python
