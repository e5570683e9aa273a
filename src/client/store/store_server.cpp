#include "client/store/store_call.h"
#include "muster/store.h"

// The calls about processes and the server itself; as in store_key.cpp.

namespace muster::client {
namespace {

PreparedCall<void> report_dead_call(const ProcessId& process, std::string_view reason) {
  return call<void>(wire::ReportDead{process, reason}, read_nothing);
}

PreparedCall<std::uint64_t> drop_namespace_call(std::string_view name) {
  return call<std::uint64_t>(wire::DropNameSpace{name}, read_count);
}

PreparedCall<Fields> status_call() {
  return call<Fields>(wire::Status{}, [](const wire::StatusReply& reply, const auto&) {
    return Fields(reply.fields.begin(), reply.fields.end());
  });
}

}  // namespace
}  // namespace muster::client

MUSTER_BEGIN_NAMESPACE

using client::run;

Result<void> Store::report_dead(const ProcessId& process, std::string_view reason,
                                Duration timeout) {
  return run(impl_, timeout, client::report_dead_call(process, reason));
}

Call Store::report_dead_async(const ProcessId& process, std::string_view reason, Duration timeout,
                              Handler<void> handler) {
  return run(impl_, timeout, client::report_dead_call(process, reason), std::move(handler));
}

Result<std::uint64_t> Store::drop_namespace(std::string_view name, Duration timeout) {
  return run(impl_, timeout, client::drop_namespace_call(name));
}

Call Store::drop_namespace_async(std::string_view name, Duration timeout,
                                 Handler<std::uint64_t> handler) {
  return run(impl_, timeout, client::drop_namespace_call(name), std::move(handler));
}

Result<std::vector<std::pair<std::string, std::string>>> Store::status(Duration timeout) {
  return run(impl_, timeout, client::status_call());
}

Call Store::status_async(Duration timeout,
                         Handler<std::vector<std::pair<std::string, std::string>>> handler) {
  return run(impl_, timeout, client::status_call(), std::move(handler));
}

MUSTER_END_NAMESPACE
