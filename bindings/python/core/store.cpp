#include "muster/store.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <pybind11/pybind11.h>

#include "arguments.h"
#include "bind.h"
#include "callbacks.h"
#include "calls.h"
#include "muster/detail/taken_value.h"
#include "muster/inspect.h"
#include "muster/io_thread.h"
#include "muster/operate.h"

namespace muster::python {

namespace {

Role role_of(const std::string& name) {
  if (name == "client") return Role::client;
  if (name == "observer") return Role::observer;
  if (name == "supervisor") return Role::supervisor;
  refuse_choice("role", "client, observer or supervisor", name);
}

py::object connect(const std::string& address, const py::dict& options, Timeout timeout) {
  const StoreOptions store_options = store_options_of(options);
  return block([&] { return Store::connect(address, store_options, timeout.duration); });
}

Call connect_async(const std::string& address, const py::dict& options, Timeout timeout,
                   const std::shared_ptr<Completions>& completions, std::uint64_t token) {
  const StoreOptions store_options = store_options_of(options);
  return begin<Store>(completions, token, [&](Handler<Store> handler) {
    return Store::connect_async(address, store_options, timeout.duration, std::move(handler));
  });
}

py::object refuse_io_thread(const IoThread&) {
  throw py::type_error(
      "an IoThread cannot be pickled or copied: it is a thread of this process. Each process makes "
      "its own: muster.IoThread(name)");
}

ProcessId process_id_of(const std::string& digits) {
  ProcessId id;
  if (digits.size() != 2 * id.bytes.size() ||
      digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw py::value_error("process: 32 hexadecimal digits, as errors and members have it");
  for (std::size_t index = 0; index < id.bytes.size(); ++index)
    id.bytes[index] =
        static_cast<std::uint8_t>(std::stoi(digits.substr(2 * index, 2), nullptr, 16));
  return id;
}

/// Of a process, 32 hexadecimal digits.
struct ProcessChoice {
  ProcessId id;

  static ProcessChoice of(py::handle digits, std::string_view argument) {
    return {process_id_of(string_of(digits, argument))};
  }
};

const ProcessId& taken(const ProcessChoice& choice) { return choice.id; }

py::object limits_of(const StoreHandle& self) {
  refuse_child(self.object());
  const Limits limits = self.store->limits();
  py::dict fields;
  fields["key_bytes_max"] = limits.key_bytes_max;
  fields["value_bytes_max"] = limits.value_bytes_max;
  fields["round_bytes_max"] = limits.round_bytes_max;
  fields["keys_per_operation_max"] = limits.keys_per_operation_max;
  fields["world_size_max"] = limits.world_size_max;
  fields["heartbeat"] = seconds_of(limits.heartbeat);
  fields["session_timeout"] = seconds_of(limits.session_timeout);
  fields["grace"] = seconds_of(limits.grace);
  fields["slack"] = seconds_of(limits.slack);
  return fields;
}

/// In a loop a task may be cancelled before it runs with the value: then it gives that back.
template <class Blocking, class Async>
void bind_taking_call(py::class_<StoreHandle>& type, const char* name, Blocking blocking,
                      Async async) {
  bind_blocking<Bytes>(type, name, blocking, {"key"});
  bind_async<detail::TakenValue, Bytes>(
      type, name,
      [async](Store& store, std::string_view key, Duration timeout,
              Handler<detail::TakenValue> handler) {
        return async(&store, key, timeout, std::move(handler));
      },
      {"key"});
}

void bind_keys(py::class_<StoreHandle>& type) {
  bind_call<Bytes, Bytes, SetChoice>(type, "set", &Store::set, &Store::set_async,
                                     {"key", "value", "options"});
  bind_call<Bytes>(type, "get", &Store::get, &Store::get_async, {"key"});
  bind_taking_call(type, "take", &Store::take, &detail::take_async);
  bind_call<Bytes, Whole<std::int64_t>>(type, "add", &Store::add, &Store::add_async,
                                        {"key", "delta"});
  bind_call<Bytes, OptionalBytes, Bytes, WriteChoice>(type, "compare_set", &Store::compare_set,
                                                      &Store::compare_set_async,
                                                      {"key", "expected", "desired", "ttl"});
  bind_call<Bytes, Bytes>(type, "append", &Store::append, &Store::append_async, {"key", "suffix"});
  bind_call<Bytes, TimeToLive>(type, "touch", &Store::touch, &Store::touch_async, {"key", "ttl"});
  bind_call<Bytes>(type, "remove", &Store::remove, &Store::remove_async, {"key"});
  bind_call<Bytes>(type, "exists", &Store::exists, &Store::exists_async, {"key"});
  bind_call<Bytes, Bytes>(type, "queue_push", &Store::queue_push, &Store::queue_push_async,
                          {"key", "item"});
  bind_taking_call(type, "queue_pop", &Store::queue_pop, &detail::queue_pop_async);
  bind_call<Bytes>(type, "queue_length", &Store::queue_length, &Store::queue_length_async, {"key"});
  bind_call<ManyBytes>(type, "multi_remove", &Store::multi_remove, &Store::multi_remove_async,
                       {"keys"});
  bind_call<ManyBytes>(type, "multi_exists", &Store::multi_exists, &Store::multi_exists_async,
                       {"keys"});
  bind_call<ManyBytes>(type, "wait", &Store::wait, &Store::wait_async, {"keys"});
  bind_call<ManyBytes>(type, "multi_get", &Store::multi_get, &Store::multi_get_async, {"keys"});
  bind_call<Entries, WriteChoice>(type, "multi_set", &Store::multi_set, &Store::multi_set_async,
                                  {"entries", "ttl"});
  bind_call<Bytes, Whole<std::uint64_t>>(type, "list", &Store::list, &Store::list_async,
                                         {"prefix", "cursor"});
}

void bind_operator(py::class_<StoreHandle>& type) {
  bind_call<Text>(type, "settings", &inspect_settings, &inspect_settings_async, {"name"});
  bind_call<Text, Whole<std::uint64_t>>(type, "set_setting", &set_setting, &set_setting_async,
                                        {"name", "value"});
  bind_call<Whole<std::uint64_t>, Text>(type, "end_session", &end_session, &end_session_async,
                                        {"session", "reason"});
  bind_call<ProcessChoice, Text>(type, "end_sessions_of", &end_sessions_of, &end_sessions_of_async,
                                 {"process", "reason"});
  bind_call<OptionalTime, Text>(type, "drain", &drain, &drain_async, {"time_max", "reason"});
  bind_call<>(type, "cancel_drain", &cancel_drain, &cancel_drain_async, {});
}

void bind_session(py::class_<StoreHandle>& type) {
  bind_call<ProcessChoice, Text>(type, "report_dead", &Store::report_dead,
                                 &Store::report_dead_async, {"process", "reason"});
  bind_call<Text>(type, "drop_namespace", &Store::drop_namespace, &Store::drop_namespace_async,
                  {"name"});
  bind_call<>(type, "status", &Store::status, &Store::status_async, {});
  bind_call<>(type, "reopen", &Store::reopen, &Store::reopen_async, {});
  bind_blocking<>(type, "whoami",
                  [](Store& store, Duration timeout) { return whoami(store, timeout); }, {});
  type.def("cancel", [](const StoreHandle& self) {
    if (!self.store.is_over()) self.store->cancel();
  });
  type.def("close", [](const StoreHandle& self) {
    if (self.store.is_over()) return;
    Store& store = self.object();
    const WithoutGil released;
    store.close();
  });
  type.def("limits", &limits_of);
  type.def("address", [](const StoreHandle& self) { return text_of(self.store->address()); });
  type.def("process", [](const StoreHandle& self) { return process_of(self.store->process()); });
  type.def("incarnation", [](const StoreHandle& self) {
    refuse_child(self.object());
    return self.store->incarnation();
  });
}

}  // namespace

StoreOptions store_options_of(const py::dict& given) {
  StoreOptions options;
  options.handlers = HandlerPlace::io_thread;  // they only hand over: completions.h, callbacks.h
  const auto text = [&](const char* name) { return option_of<std::string>(given, name); };
  const auto time = [&](const char* name, Duration otherwise) {
    return duration_option_of(given, name, otherwise);
  };
  options.role = role_of(text("role"));
  options.name_space = text("namespace");
  options.namespace_idle_lifetime =
      optional_duration_of(given["namespace_idle_lifetime"], "namespace_idle_lifetime");
  options.run = text("run");
  options.label = text("label");
  options.credential_file = text("credential_file");
  options.certificate_file = text("certificate_file");
  options.certificate_key_file = text("certificate_key_file");
  options.authorities_file = text("authorities_file");
  options.server_name = text("server_name");
  options.timeout = time("timeout", options.timeout);
  options.wait_for_server = time("wait_for_server", options.wait_for_server);
  options.busy_poll = time("busy_poll", options.busy_poll);
  if (!given["io_thread"].is_none())
    options.io_thread = option_of<std::shared_ptr<IoThread>>(given, "io_thread");
  options.logger = logger_of(given["logger"]);
  options.on_session_end = error_callback(given["events"], "session_ended");
  return options;
}

void bind_store(py::module_& module) {
  py::class_<Call>(module, "Call").def("cancel", [](Call& call) { call.cancel(); });
  constexpr const char* of_thread =
      "A thread that does the input and output of many stores: IoThread(name).";
  py::class_<IoThread, std::shared_ptr<IoThread>>(module, "IoThread", of_thread)
      .def(py::init([](py::handle name) {
        auto thread = IoThread::create(string_of(name, "name"));
        if (!thread) throw std::bad_alloc();
        return thread;
      }))
      .def("__reduce__", &refuse_io_thread);
  py::class_<StoreHandle> type(module, "Store");
  bind_keys(type);
  bind_session(type);
  bind_operator(type);
  module.def("connect", named(&connect, "address", "options", "connect_timeout"));
  module.def("connect_async", named(&connect_async, "address", "options", "connect_timeout",
                                    "completions", "token"));
}

}  // namespace muster::python
