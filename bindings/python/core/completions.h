#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

#include "errors.h"
#include "muster/result.h"
#include "values.h"

// How the ends of calls get into an event loop of Python's. Muster's threads put them here without
// the GIL, and make a descriptor readable, at which the loop looks. So none of Muster's threads
// needs an interpreter, and a loop wakes up once for all that has ended meanwhile.

namespace muster::python {

/// The result of a call, until Python takes it.
class Kept {
 public:
  virtual ~Kept() = default;
  /// The call's value, or its exception; needs the GIL.
  ///
  /// returns  whether it is a value, and which object
  virtual std::pair<bool, py::object> take() = 0;
};

template <class T>
class KeptResult final : public Kept {
 public:
  explicit KeptResult(Result<T> result) : result_(std::move(result)) {}

  std::pair<bool, py::object> take() override {
    if (!result_.has_value()) return {false, exception_of(result_.error())};
    if constexpr (std::is_void_v<T>) {
      return {true, py::none()};
    } else {
      return {true, value_of(*std::move(result_))};
    }
  }

 private:
  Result<T> result_;
};

class Completions {
 public:
  /// errors  OSError
  Completions();
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  /// Readable while something is there.
  int descriptor() const { return descriptor_; }

  /// From any thread, without the GIL.
  void put(std::uint64_t token, std::unique_ptr<Kept> kept);
  /// Everything that is there, as tuples of a token, whether it is a value, and the object.
  py::list take_all();

 private:
  struct Entry {
    std::uint64_t token;
    std::unique_ptr<Kept> kept;
  };

  std::mutex mutex_;
  std::vector<Entry> entries_;
  const int descriptor_;
};

}  // namespace muster::python
