#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

#include "errors.h"
#include "gil.h"
#include "muster/detail/taken_value.h"
#include "muster/inspect.h"
#include "muster/operate.h"
#include "muster/process_group.h"
#include "muster/store.h"

// What calls give, as objects of Python. All of these need the GIL.

namespace muster::python {

/// An object whose end may take a moment: it is destroyed without the GIL. It may also be destroyed
/// by a thread that has none, or when the interpreter ends.
template <class T>
std::shared_ptr<T> shared_of(std::unique_ptr<T> object) {
  return std::shared_ptr<T>(object.release(), [](T* old) {
    std::optional<WithoutGil> released;
    if (has_gil()) released.emplace();
    delete old;
  });
}

/// The same of a handle.
template <class T>
std::shared_ptr<T> shared(T&& handle) {
  return shared_of(std::make_unique<T>(std::move(handle)));
}

/// An object that is there as long as anything refers to it; or, one of a runtime's, until that has
/// been shut down. With the GIL.
///
/// errors  closed, where it is gone
template <class T>
class Lent {
 public:
  Lent() = default;
  Lent(std::shared_ptr<T> object, std::shared_ptr<const bool> is_over = {})
      : object_(std::move(object)), is_over_(std::move(is_over)) {}

  T& operator*() const {
    if (is_over()) raise_closed("it belonged to a runtime that was shut down");
    return *object_;
  }
  T* operator->() const { return &**this; }
  /// Whether it is gone with its runtime.
  bool is_over() const { return is_over_ && *is_over_; }
  /// What belongs to it.
  template <class Part>
  Lent<Part> part(Part& part) const {
    return Lent<Part>(std::shared_ptr<Part>(object_, &part), is_over_);
  }

 private:
  std::shared_ptr<T> object_;
  std::shared_ptr<const bool> is_over_;
};

/// What Python holds: classes of the module _core.
struct StoreHandle {
  Lent<Store> store;
  Store& object() const { return *store; }
};
struct GroupHandle {
  /// What remains to be shown of a group that was closed.
  struct Identity {
    int rank;
    int world_size;
    std::uint64_t epoch;
    std::string name;
  };

  Lent<StatelessProcessGroup> group;
  std::optional<Identity> closed = {};  ///< by `close` of this handle

  bool is_closed() const { return closed || group.is_over(); }
  /// errors  closed
  StatelessProcessGroup& object() const;
  Identity identity() const;
};
struct DeliveryHandle {
  std::shared_ptr<Delivery> delivery;
};

/// Raises Forked in a child of the process that connected: there the library knows no limits and
/// counts nothing, and gives zeros.
void refuse_child(const Store& store);

inline py::bytes bytes_of(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

inline py::object value_of(bool value) { return py::bool_(value); }
inline py::object value_of(std::int64_t value) { return py::int_(value); }
inline py::object value_of(std::uint64_t value) { return py::int_(value); }
inline py::object value_of(const std::string& value) { return bytes_of(value); }
py::object value_of(const std::vector<bool>& values);
py::object value_of(const std::vector<std::string>& values);
py::object value_of(const std::vector<std::optional<std::string>>& values);
py::object value_of(const Compared& compared);
py::object value_of(const KeyPage& page);
py::object value_of(const std::vector<std::pair<std::string, std::string>>& status);
py::object value_of(const ReceivedBytes& received);
py::object value_of(const BarrierResult& result);
py::object value_of(const RecoveredRound& recovered);
py::object value_of(const std::vector<MemberInfo>& members);
py::object value_of(const WhoAmI& identity);
py::object value_of(const SettingInfo& setting);
py::object value_of(const std::vector<SettingInfo>& settings);
py::object value_of(Store&& store);
/// From now on the program has it.
inline py::object value_of(detail::TakenValue&& taken) { return value_of(taken.accept()); }
py::object value_of(StatelessProcessGroup&& group);
py::object value_of(Delivery&& delivery);

}  // namespace muster::python
