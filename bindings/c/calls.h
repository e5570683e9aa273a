#pragma once

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "arguments.h"
#include "errors.h"
#include "handles.h"
#include "muster/c.h"
#include "muster/process_group.h"
#include "muster/result.h"
#include "muster/store.h"
#include "muster/store_options.h"
#include "values.h"

// A call of C, around one of C++. Blocking: `guarded` keeps every exception, and `give` puts the
// result where the caller wants it. In its callback form: `begin` makes a handler of `done`, to
// which `tell` gives the result, once; what is refused before the call has begun is told at once.

namespace muster::c {

inline Store& store_of(muster_store* store) { return needed(store, "store").store; }
inline StatelessProcessGroup& group_of(muster_group* group) { return needed(group, "group").group; }

/// Runs `body`, which returns the call's error or null; no exception leaves it.
template <class Body>
muster_error* guarded(const char* operation, const Body& body) noexcept {
  try {
    return body();
  } catch (const Refused& refused) {
    return refusal(operation, refused.detail);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& exception) {
    return unexpected(operation, exception.what());
  } catch (...) {
    return unexpected(operation, "something was thrown that is no std::exception");
  }
}

/// The same of a query, which says by `otherwise` that it does not know.
template <class T, class Body>
T guarded_or(T otherwise, const Body& body) noexcept {
  try {
    return body();
  } catch (...) {
    return otherwise;
  }
}

template <class T>
auto values_of(Result<T> result) {
  if constexpr (std::is_void_v<T>) {
    return std::tuple<>();
  } else {
    return in_c(*std::move(result));
  }
}

template <class T, class Value>
void put(T* where, Value& value) noexcept {
  if (where != nullptr) *where = handed_over(value);
}

/// Puts what a call has given to where the caller wants it; null: the caller does not.
template <class T, class... Wanted>
muster_error* give(Result<T> result, Wanted*... wanted) {
  if (!result.has_value()) return error_of(result.error());
  auto values = values_of(std::move(result));
  std::apply([&](auto&... value) { (put(wanted, value), ...); }, values);
  return nullptr;
}

template <class... Told>
using Done = void (*)(void* user, muster_error* error, Told... values);

/// Tells the application what became of a call.
template <class T, class... Told>
void tell(Done<Told...> done, void* user, Result<T> result) noexcept {
  if (done == nullptr) return;
  std::optional<decltype(values_of(std::move(result)))> values;
  muster_error* const error = guarded("done", [&]() -> muster_error* {
    if (!result.has_value()) return error_of(result.error());
    values.emplace(values_of(std::move(result)));
    return nullptr;
  });
  if (error != nullptr) return done(user, error, Told{}...);
  std::apply([&](auto&... value) { done(user, nullptr, handed_over(value)...); }, *values);
}

/// Begins a call whose result is a T. `begin_call` gets the handler, and returns the Call.
template <class T, class... Told, class BeginCall>
void begin(const char* operation, Done<Told...> done, void* user, muster_call** call,
           const BeginCall& begin_call) noexcept {
  std::unique_ptr<muster_call> handle;
  if (call != nullptr) *call = nullptr;
  muster_error* const refused = guarded(operation, [&]() -> muster_error* {
    std::shared_ptr<PendingCall> pending;
    if (call != nullptr) {
      pending = std::make_shared<PendingCall>();
      handle.reset(new muster_call{pending});
      *call = handle.get();
    }
    Call begun = begin_call(Handler<T>(
        [done, user](Result<T> result) { tell<T, Told...>(done, user, std::move(result)); }));
    // From here on `done` may have run, and the handle may have been freed.
    handle.release();
    if (pending) pending->begun(std::move(begun));
    return nullptr;
  });
  if (refused == nullptr) return;
  if (call != nullptr) *call = nullptr;
  if (done == nullptr) return muster_error_free(refused);
  done(user, refused, Told{}...);
}

}  // namespace muster::c
