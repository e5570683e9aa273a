#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

#include "errors.h"
#include "gil.h"
#include "muster/result.h"
#include "values.h"

// How the ends of calls get into an event loop of Python's. Muster's threads put them here without
// the GIL, and make a descriptor readable, at which the loop looks. So none of Muster's threads
// needs an interpreter, and a loop wakes up once for all calls that have ended in the meantime.
//
// An outcome: put -> seen by the loop (look) -> taken by the task that awaits its call. A loop that
// is closed, or an interpreter that ends, runs no task again. Then outcomes are dropped, and so are
// later ones: items go back to their queues, objects to their streams, and sessions end.

namespace muster::python {

/// The result of a call, until Python takes it. A result that is destroyed earlier is given back.
class Kept {
 public:
  virtual ~Kept() = default;
  /// The call's value, or its exception; needs the GIL.
  ///
  /// returns  whether it is a value, and which object
  virtual std::pair<bool, py::object> take() = 0;
  /// Gives a taken value back to the server. `done` gets what became of it.
  ///
  /// returns  false: it is no such value, and stays
  virtual bool give_back(const std::function<void(std::unique_ptr<Kept>)>& /*done*/) {
    return false;
  }
};

/// The end of a call that was made in a thread of Python's.
class KeptObject final : public Kept {
 public:
  KeptObject(bool is_value, py::object object) : is_value_(is_value), object_(std::move(object)) {}
  ~KeptObject() override {
    const WithGil held;
    const py::handle object = object_.release();
    if (held) object.dec_ref();
  }
  KeptObject(const KeptObject&) = delete;
  KeptObject& operator=(const KeptObject&) = delete;

  std::pair<bool, py::object> take() override { return {is_value_, std::move(object_)}; }

 private:
  const bool is_value_;
  py::object object_;
};

class Completions : public std::enable_shared_from_this<Completions> {
 public:
  /// errors  OSError
  static std::shared_ptr<Completions> create();
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  /// Readable while there are outcomes that the loop has not seen.
  int descriptor() const { return descriptor_; }

  /// From any thread; without the GIL, unless it is a KeptObject.
  void put(std::uint64_t token, std::unique_ptr<Kept> kept);
  /// The tokens of all outcomes that the loop has not seen.
  std::vector<std::uint64_t> look();
  /// Whether an outcome is here, and no task has taken it.
  bool has(std::uint64_t token);
  /// Takes an outcome: a tuple of whether it is a value, and the object.
  ///
  /// errors  closed
  py::tuple take(std::uint64_t token);
  /// As `Kept::give_back`; what became of it is put as the same token.
  bool give_back(std::uint64_t token);

  /// Drops all outcomes, and those that come later.
  void close();
  /// Closes all objects, and waits until all values are back at the server, at most for so long.
  static void end(std::chrono::seconds patience);
  /// In a forked child, to whose parent all of them belong.
  static void forget_all();

 private:
  Completions();
  std::unique_ptr<Kept> removed(std::uint64_t token);

  std::mutex mutex_;
  std::vector<std::uint64_t> unseen_;
  std::map<std::uint64_t, std::unique_ptr<Kept>> all_;
  bool is_closed_ = false;
  const int descriptor_;
  const pid_t process_;
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

  bool give_back([[maybe_unused]] const std::function<void(std::unique_ptr<Kept>)>& done) override {
    if constexpr (std::is_same_v<T, detail::TakenValue>) {
      if (!result_.has_value()) return false;
      result_->give_back(
          [done](Result<T> result) { done(std::make_unique<KeptResult>(std::move(result))); });
      return true;
    } else {
      return false;
    }
  }

 private:
  Result<T> result_;
};

}  // namespace muster::python
