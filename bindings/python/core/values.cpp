#include "values.h"

namespace muster::python {

namespace {

py::object key_info_of(const KeyInfo& info) {
  return py::make_tuple(bytes_of(info.key), info.value_bytes, seconds_of(info.ttl), info.bound);
}

template <class Elements, class Convert>
py::list list_of(const Elements& elements, const Convert& convert) {
  py::list list(elements.size());
  std::size_t index = 0;
  for (const auto& element : elements) list[index++] = convert(element);
  return list;
}

const char* name_of_state(MemberState state) {
  switch (state) {
    case MemberState::live: return "live";
    case MemberState::silent: return "silent";
    case MemberState::lost: return "lost";
    case MemberState::left: return "left";
    case MemberState::candidate: return "candidate";
    case MemberState::away: return "away";
  }
  return "unknown";
}

py::object member_of(const MemberInfo& member) {
  py::dict fields;
  fields["rank"] = member.rank;
  fields["state"] = name_of_state(member.state);
  fields["process"] = process_of(member.process);
  fields["silence"] = seconds_of(member.silence);
  fields["info"] = bytes_of(member.info);
  fields["previous_rank"] = member.previous_rank;
  return fields;
}

}  // namespace

py::object value_of(const std::vector<bool>& values) {
  py::list list(values.size());
  for (std::size_t index = 0; index < values.size(); ++index)
    list[index] = py::bool_(values[index]);
  return list;
}

py::object value_of(const std::vector<std::string>& values) { return list_of(values, bytes_of); }

py::object value_of(const std::vector<std::optional<std::string>>& values) {
  return list_of(values, [](const std::optional<std::string>& value) -> py::object {
    if (!value) return py::none();
    return bytes_of(*value);
  });
}

py::object value_of(const Compared& compared) {
  py::object current = py::none();
  if (compared.current) current = bytes_of(*compared.current);
  return py::make_tuple(compared.applied, std::move(current));
}

py::object value_of(const KeyPage& page) {
  return py::make_tuple(list_of(page.keys, key_info_of), page.cursor);
}

py::object value_of(const std::vector<std::pair<std::string, std::string>>& status) {
  py::dict fields;
  for (const auto& [name, value] : status) fields[text_of(name)] = text_of(value);
  return fields;
}

py::object value_of(const ReceivedBytes& received) {
  return py::make_tuple(bytes_of(received.bytes), received.sequence);
}

py::object value_of(const BarrierResult& result) { return ranks_of(result.unconfirmed); }

py::object value_of(const RecoveredRound& recovered) {
  py::object error = py::none();
  if (recovered.error) error = exception_of(*recovered.error);
  return py::make_tuple(recovered.round, recovered.called, std::move(error),
                        value_of(recovered.values));
}

py::object value_of(const std::vector<MemberInfo>& members) { return list_of(members, member_of); }

py::object value_of(const WhoAmI& identity) {
  py::dict fields;
  fields["identity"] = text_of(identity.identity);
  fields["tenant"] = text_of(identity.tenant);
  fields["namespaces"] = text_of(identity.namespaces);
  fields["not_after"] = text_of(identity.not_after);
  fields["credential_rights"] = text_of(identity.credential_rights);
  fields["rights"] = text_of(identity.rights);
  return fields;
}

py::object value_of(const SettingInfo& setting) {
  const py::object used = setting.used ? value_of(*setting.used) : py::none();
  return py::make_tuple(text_of(setting.name), static_cast<int>(setting.kind), setting.value,
                        setting.least, setting.most, used, text_of(setting.fixed_because));
}

py::object value_of(const std::vector<SettingInfo>& settings) {
  return list_of(settings, [](const SettingInfo& setting) { return value_of(setting); });
}

void refuse_child(const Store& store) {
  if (store.incarnation() != 0) return;
  Error error;
  error.code = ErrorCode::forked;
  error.happened = Happened::no;
  error.decided_by = "client";
  error.detail = "the store belongs to the parent process; connect another one in the child";
  raise(error);
}

py::object value_of(Store&& store) { return py::cast(StoreHandle{shared(std::move(store))}); }

StatelessProcessGroup& GroupHandle::object() const {
  if (closed) raise_closed("this handle was closed here", closed->name);
  return *group;
}

GroupHandle::Identity GroupHandle::identity() const {
  if (closed) return *closed;
  return {group->rank(), group->world_size(), group->epoch(), std::string(group->name())};
}

py::object value_of(StatelessProcessGroup&& group) {
  return py::cast(GroupHandle{shared(std::move(group))});
}

py::object value_of(Delivery&& delivery) {
  return py::cast(DeliveryHandle{shared(std::move(delivery))});
}

}  // namespace muster::python
