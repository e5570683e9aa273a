#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <pybind11/pybind11.h>

#include "arguments.h"
#include "completions.h"
#include "errors.h"
#include "gil.h"
#include "muster/call.h"
#include "muster/result.h"
#include "muster/store_options.h"
#include "values.h"
#include "waiting.h"

// How every call of Muster is made from Python, in its blocking form and in its callback form.

namespace muster::python {

/// What has come of a call, as an object; null: it has failed.
template <class T>
py::object value_or_null(Result<T>& result) {
  if (!result.has_value()) return {};
  if constexpr (std::is_void_v<T>) {
    return py::none();
  } else {
    return value_of(*std::move(result));
  }
}

/// What has come of a call that has waited: its value, or the exception of its error, or what a
/// handler of a signal has raised.
///
/// value  null: it has failed
template <class T>
py::object ended(Waiting& waiting, const Result<T>& result, py::object value) {
  const Error* const error = value ? nullptr : &result.error();  // before the value is moved away
  if (waiting.is_interrupted()) waiting.raise(error, std::move(value));
  if (error != nullptr) raise(*error);
  return value;
}

/// Makes a blocking call without the GIL, as the file waiting.h tells.
///
/// returns  the call's value
/// errors   the exception of the call's error; or what a handler of a signal has raised
template <class Call>
py::object block(const Call& call) {
  Waiting waiting;
  auto result = waiting.run(call);
  py::object value = value_or_null(result);
  return ended(waiting, result, std::move(value));
}

/// Like `block`, for calls that end something: it also works during the interpreter's shutdown.
template <class Call>
py::object block_at_end(const Call& call) {
  if (!is_ending()) return block(call);
  auto result = [&] {
    const WithoutGil released;
    return call();
  }();
  if (!result.has_value()) raise(result.error());
  return value_or_null(result);
}

/// The same of a call whose value `convert` makes an object of, with the GIL; one of a Result<void>
/// gives None.
template <class Call, class Convert>
py::object block(const Call& call, const Convert& convert) {
  Waiting waiting;
  auto result = waiting.run(call);
  py::object value;
  if (result.has_value()) {
    if constexpr (std::is_void_v<typename decltype(result)::value_type>) {
      value = py::none();
    } else {
      value = convert(*std::move(result));
    }
  }
  return ended(waiting, result, std::move(value));
}

/// Begins a call in its callback form, whose end `completions` tells, as `token`.
///
/// begin_call  takes the handler, and gives the Call
template <class T, class Begin>
Call begin(const std::shared_ptr<Completions>& completions, std::uint64_t token,
           const Begin& begin_call) {
  Handler<T> handler = [completions, token](Result<T> result) {
    completions->put(token, std::make_unique<KeptResult<T>>(std::move(result)));
  };
  const InCall call;
  const WithoutGil released;
  return begin_call(std::move(handler));
}

/// The names of arguments, as users of the package muster know them.
template <class... Given>
using Names = std::array<const char*, sizeof...(Given)>;

/// Makes the arguments of a call from what Python gives, and calls `function` with them and, last,
/// with the timeout.
template <class... Given, class Function>
decltype(auto) with_arguments(const Names<Given...>& names, const Function& function,
                              py::handle timeout, typename AnyObject<Given>::type... given) {
  return call_with<Given...>(
      [&](auto&&... arguments) -> decltype(auto) {
        const Duration duration = duration_of(timeout, "timeout", default_timeout);
        return function(taken(arguments)..., duration);
      },
      names, std::index_sequence_for<Given...>(), given...);
}

/// Binds a call in its blocking form. Its last argument is the timeout.
///
/// Given  the other arguments (arguments.h)
template <class... Given, class Handle, class Blocking>
void bind_blocking(py::class_<Handle>& type, const char* name, Blocking blocking,
                   const Names<Given...>& names) {
  type.def(name, [blocking, names](const Handle& self, typename AnyObject<Given>::type... given,
                                   py::handle timeout) {
    auto& object = self.object();
    return with_arguments<Given...>(
        names,
        [&](const auto&... arguments) {
          return block([&] { return std::invoke(blocking, object, arguments...); });
        },
        timeout, given...);
  });
}

/// The same of a call in its callback form, whose result is a T, as `name` + "_async". It also
/// takes where its end is told, and as which token.
template <class T, class... Given, class Handle, class Async>
void bind_async(py::class_<Handle>& type, const char* name, Async async,
                const Names<Given...>& names) {
  type.def((std::string(name) + "_async").c_str(),
           [async, names](const Handle& self, typename AnyObject<Given>::type... given,
                          py::handle timeout, const std::shared_ptr<Completions>& completions,
                          std::uint64_t token) {
             auto& object = self.object();
             return with_arguments<Given...>(
                 names,
                 [&](const auto&... arguments) {
                   return begin<T>(completions, token, [&](Handler<T> handler) {
                     return std::invoke(async, object, arguments..., std::move(handler));
                   });
                 },
                 timeout, given...);
           });
}

/// A call in both of its forms.
template <class... Given, class Handle, class Blocking, class Async>
void bind_call(py::class_<Handle>& type, const char* name, Blocking blocking, Async async,
               const Names<Given...>& names) {
  using Outcome = decltype(std::invoke(blocking, std::declval<const Handle&>().object(),
                                       taken(std::declval<Given&>())..., Duration()));
  bind_blocking<Given...>(type, name, blocking, names);
  bind_async<typename Outcome::value_type, Given...>(type, name, async, names);
}

}  // namespace muster::python
