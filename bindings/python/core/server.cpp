#include "muster/server.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "arguments.h"
#include "bind.h"
#include "callbacks.h"
#include "calls.h"

namespace muster::python {

namespace {

/// From (address, namespace, descriptor of a listening socket or -1).
std::vector<TcpStorePort> tcpstore_ports_of(const py::dict& given) {
  std::vector<TcpStorePort> ports;
  for (const py::handle port : given["tcpstore"]) {
    const auto fields = py::reinterpret_borrow<py::tuple>(port);
    ports.push_back({argument_of<std::string>(fields[0], "tcpstore"),
                     argument_of<std::string>(fields[1], "tcpstore"),
                     argument_of<int>(fields[2], "tcpstore")});
  }
  return ports;
}

TcpStoreDialect dialect_of(const std::string& name) {
  if (name == "first") return TcpStoreDialect::first;
  if (name == "second") return TcpStoreDialect::second;
  if (name == "newest") return TcpStoreDialect::newest;
  refuse_choice("tcpstore_dialect", "first, second or newest", name);
}

ServerOptions server_options_of(const py::dict& given) {
  ServerOptions options;
  options.listen = strings_of(given["listen"], "listen");
  options.allow_unauthenticated = option_of<bool>(given, "allow_unauthenticated");
  options.credentials_file = option_of<std::string>(given, "credentials_file");
  options.credentials = option_of<std::string>(given, "credentials");
  options.server_name = option_of<std::string>(given, "server_name");
  options.certificate_file = option_of<std::string>(given, "certificate_file");
  options.certificate_key_file = option_of<std::string>(given, "certificate_key_file");
  options.client_authorities_file = option_of<std::string>(given, "client_authorities_file");
  options.tcpstore = tcpstore_ports_of(given);
  options.allow_unauthenticated_tcpstore = option_of<bool>(given, "allow_unauthenticated_tcpstore");
  options.tcpstore_dialect = dialect_of(option_of<std::string>(given, "tcpstore_dialect"));
  options.tcpstore_idle_lifetime =
      duration_option_of(given, "tcpstore_idle_lifetime", options.tcpstore_idle_lifetime);
  options.label = option_of<std::string>(given, "label");
  options.session_timeout = duration_option_of(given, "session_timeout", options.session_timeout);
  options.heartbeat = duration_option_of(given, "heartbeat", options.heartbeat);
  options.grace = duration_option_of(given, "grace", options.grace);
  if (!given["memory_bytes_max"].is_none())
    options.memory_bytes_max = option_of<std::uint64_t>(given, "memory_bytes_max");
  if (!given["tcpstore_memory_bytes_max"].is_none())
    options.tcpstore_memory_bytes_max =
        option_of<std::uint64_t>(given, "tcpstore_memory_bytes_max");
  if (!given["key_bytes_max"].is_none())
    options.key_bytes_max = option_of<std::uint32_t>(given, "key_bytes_max");
  if (!given["value_bytes_max"].is_none())
    options.value_bytes_max = option_of<std::uint32_t>(given, "value_bytes_max");
  options.logger = logger_of(given["logger"]);
  return options;
}

struct ServerHandle {
  std::shared_ptr<Server> server;
  bool is_stopped = false;  ///< by `stop`, also if that was interrupted
};

ServerHandle start(const py::dict& given) {
  const ServerOptions options = server_options_of(given);
  const InCall call;
  auto started = [&] {
    const WithoutGil released;
    return Server::start(options);
  }();
  if (!started) raise(started.error());
  return {shared(*std::move(started))};
}

}  // namespace

void bind_server(py::module_& module) {
  py::class_<ServerHandle>(module, "Server")
      .def("addresses", [](const ServerHandle& self) { return self.server->addresses(); })
      .def("port", [](const ServerHandle& self) { return self.server->port(); })
      .def("tcpstore_ports", [](const ServerHandle& self) { return self.server->tcpstore_ports(); })
      .def("incarnation", [](const ServerHandle& self) { return self.server->incarnation(); })
      .def("stop",
           [](ServerHandle& self, py::handle reason_given, py::handle timeout) {
             const std::string reason = string_of(reason_given, "reason");
             const Duration patience = duration_of(timeout, "timeout", Duration(0));
             self.is_stopped = true;
             return block_at_end(
                 [&]() -> Result<std::uint64_t> { return self.server->stop(reason, patience); });
           })
      .def("is_stopped", [](const ServerHandle& self) { return self.is_stopped; });
  module.def("start_server", &start);
}

}  // namespace muster::python
