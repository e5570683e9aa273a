#include <cstdint>
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
#include "muster/process_group.h"

namespace muster::python {

namespace {

using Group = StatelessProcessGroup;

void set_group_options(GroupOptions& options, const py::dict& given) {
  options.data_expiration = duration_option_of(given, "data_expiration", options.data_expiration);
  options.timeout = duration_option_of(given, "timeout", options.timeout);
  options.standby = option_of<bool>(given, "standby");
  options.info = std::string(std::string_view(Bytes::of(given["info"], "info")));
  options.other_tenants = strings_of(given["other_tenants"], "other_tenants");
  options.on_loss = error_callback(given["events"], "rank_lost");
  options.on_leave = error_callback(given["events"], "rank_left");
}

HostServer host_server_of(const std::string& name) {
  if (name == "automatic") return HostServer::automatic;
  if (name == "always") return HostServer::always;
  if (name == "never") return HostServer::never;
  refuse_choice("host_server", "automatic, always or never", name);
}

py::object join(const StoreHandle& store, const std::string& name, Whole<int> rank,
                Whole<int> world_size, const py::dict& given) {
  GroupOptions options;
  set_group_options(options, given);
  const Store& on = store.object();
  return block([&] { return Group::create(on, name, rank, world_size, options); });
}

Call join_async(const StoreHandle& store, const std::string& name, Whole<int> rank,
                Whole<int> world_size, const py::dict& given,
                const std::shared_ptr<Completions>& completions, std::uint64_t token) {
  GroupOptions options;
  set_group_options(options, given);
  const Store& on = store.object();
  return begin<Group>(completions, token, [&](Handler<Group> handler) {
    return Group::create_async(on, name, rank, world_size, options, std::move(handler));
  });
}

py::object host(const std::string& host_name, Whole<std::uint16_t> port, Whole<int> rank,
                Whole<int> world_size, const py::dict& given, const py::dict& store_options) {
  const HostedGroupOptions options = hosted_group_options_of(given, store_options);
  return block([&] {
    return Group::create(host_name, port, rank, world_size, options.data_expiration,
                         options.timeout, options);
  });
}

Result<std::string> scatter(Group& group, const std::vector<std::string_view>& objects,
                            std::uint32_t codec, Rank root, Duration timeout) {
  const std::vector<std::string> owned(objects.begin(), objects.end());
  return group.scatter_bytes(owned, codec, root, timeout);
}

Call scatter_async(Group& group, const std::vector<std::string_view>& objects, std::uint32_t codec,
                   Rank root, Duration timeout, Handler<std::string> handler) {
  const std::vector<std::string> owned(objects.begin(), objects.end());
  return group.scatter_bytes_async(owned, codec, root, timeout, std::move(handler));
}

void bind_streams(py::class_<GroupHandle>& type) {
  bind_call<RankChoice, Whole<std::uint32_t>, Bytes, TagChoice>(
      type, "send", &Group::send_bytes, &Group::send_bytes_async, {"dst", "codec", "obj", "tag"});
  bind_call<RankChoice, Whole<std::uint32_t>, TagChoice>(
      type, "recv", &Group::recv_delivery, &Group::recv_delivery_async, {"src", "codec", "tag"});
  bind_call<OptionalTime>(type, "expire_data", &Group::expire_data, &Group::expire_data_async,
                          {"older_than"});
}

void bind_collectives(py::class_<GroupHandle>& type) {
  bind_call<>(type, "barrier", &Group::barrier, &Group::barrier_async, {});
  bind_call<Bytes, Whole<std::uint32_t>, RankChoice>(type, "broadcast", &Group::broadcast_bytes,
                                                     &Group::broadcast_bytes_async,
                                                     {"obj", "codec", "src"});
  bind_call<Bytes, Whole<std::uint32_t>>(type, "all_gather", &Group::all_gather_bytes,
                                         &Group::all_gather_bytes_async, {"obj", "codec"});
  bind_call<Bytes, Whole<std::uint32_t>, RankChoice>(
      type, "gather", &Group::gather_bytes, &Group::gather_bytes_async, {"obj", "codec", "dst"});
  bind_call<ManyBytes, Whole<std::uint32_t>, RankChoice>(type, "scatter", &scatter, &scatter_async,
                                                         {"objs", "codec", "src"});
}

void bind_life(py::class_<GroupHandle>& type) {
  bind_call<Text>(type, "interrupt", &Group::interrupt, &Group::interrupt_async, {"reason"});
  bind_call<>(type, "members", &Group::members, &Group::members_async, {});
  bind_call<RegroupChoice>(type, "regroup", &Group::regroup, &Group::regroup_async, {"options"});
  bind_call<>(type, "leave", &Group::leave, &Group::leave_async, {});
  bind_call<>(type, "recover", &Group::recover, &Group::recover_async, {});
  type.def("close", [](GroupHandle& self, py::handle linger) {
    const Duration patience = duration_of(linger, "linger", std::chrono::seconds(10));
    if (self.is_closed()) return value_of(std::uint64_t{0});
    Group& group = self.object();
    self.closed = self.identity();
    return block_at_end([&] { return group.close(patience); });
  });
  type.def("is_closed", [](const GroupHandle& self) { return self.is_closed(); });
  type.def("watch", [](const GroupHandle& self, const py::object& events) {
    auto handler = error_callback(events, "happened");
    Group& group = self.object();
    const InCall call;
    const WithoutGil released;
    return std::make_shared<GroupWatch>(group.watch(std::move(handler)));
  });
  type.def("cancel", [](const GroupHandle& self) {
    if (!self.is_closed()) self.object().cancel();
  });
  type.def("store", [](const GroupHandle& self) {
    return StoreHandle{shared(self.object().store().share())};  // it may outlive the group
  });
  type.def("rank", [](const GroupHandle& self) { return self.identity().rank; });
  type.def("world_size", [](const GroupHandle& self) { return self.identity().world_size; });
  type.def("epoch", [](const GroupHandle& self) { return self.identity().epoch; });
  type.def("name", [](const GroupHandle& self) { return text_of(self.identity().name); });
  type.def("counters", [](const GroupHandle& self) {
    refuse_child(self.object().store());
    const GroupCounters counters = self.object().counters();
    return py::make_tuple(counters.rounds, counters.objects_sent, counters.objects_received);
  });
}

/// What has come, until it is accepted or dropped.
void bind_delivery(py::module_& module) {
  py::class_<DeliveryHandle>(module, "Delivery")
      .def("bytes", [](const DeliveryHandle& self) { return bytes_of(self.delivery->bytes()); })
      .def("refuse", [](DeliveryHandle& self) { self.delivery.reset(); })
      .def("accept", [](const DeliveryHandle& self) {
        const WithoutGil released;
        return self.delivery->accept().sequence;
      });
}

}  // namespace

HostedGroupOptions hosted_group_options_of(const py::dict& given, const py::dict& store_options) {
  HostedGroupOptions options;
  set_group_options(options, given);
  options.name = option_of<std::string>(given, "name");
  options.host_server = host_server_of(option_of<std::string>(given, "host_server"));
  options.allow_unauthenticated = option_of<bool>(given, "allow_unauthenticated");
  options.listening_socket = option_of<int>(given, "listening_socket");
  options.store = store_options_of(store_options);
  return options;
}

void bind_group(py::module_& module) {
  bind_delivery(module);
  py::class_<GroupWatch, std::shared_ptr<GroupWatch>>(module, "GroupWatch");
  py::class_<GroupHandle> type(module, "Group");
  bind_streams(type);
  bind_collectives(type);
  bind_life(type);
  module.def("join", named(&join, "store", "name", "rank", "world_size", "options"));
  module.def("join_async", named(&join_async, "store", "name", "rank", "world_size", "options",
                                 "completions", "token"));
  module.def("host",
             named(&host, "host", "port", "rank", "world_size", "options", "store_options"));
}

}  // namespace muster::python
