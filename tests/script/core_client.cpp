#include "core_client.h"

#include <algorithm>

namespace muster::script {

std::string_view OwnedRequest::keep(std::string bytes) {
  return storage_.emplace_back(std::move(bytes));
}

GroupHandle& Client::group(Arguments& arguments) {
  const std::string wanted = arguments.named("group").value_or(current_group);
  const auto found = groups.find(wanted);
  if (found == groups.end()) throw ScriptError(name + " is in no group " + wanted);
  return found->second;
}

std::uint64_t Client::request_id(std::string_view label) const {
  if (label == "last" && next_request_id > 1) return next_request_id - 1;
  const auto found = labels.find(label);
  if (found == labels.end()) throw ScriptError(name + " has no request " + std::string(label));
  return found->second;
}

std::vector<std::uint64_t> Client::ids(Arguments& arguments) const {
  std::vector<std::uint64_t> ids;
  while (const auto word = arguments.next()) {
    if (*word == "all") {
      ids = unacknowledged;
    } else if (*word == "last") {
      if (unacknowledged.empty()) throw ScriptError(name + " has no reply yet");
      ids.push_back(unacknowledged.back());
    } else {
      ids.push_back(request_id(*word));
    }
  }
  return ids;
}

void Client::forget(const std::vector<std::uint64_t>& ids) {
  std::erase_if(unacknowledged, [&](std::uint64_t id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  });
}

wire::ClientHello hello_of(Arguments& arguments, const std::string& name, Processes& processes) {
  wire::ClientHello hello;
  hello.process.id = processes.id_of(arguments.named("process").value_or(name));
  hello.process.host = arguments.bytes("host").value_or("h1");
  hello.process.pid = static_cast<std::uint32_t>(arguments.number("pid").value_or(1));
  hello.process.label = arguments.bytes("label").value_or("");
  hello.name_space = arguments.bytes("namespace").value_or("");
  hello.idle_lifetime = arguments.duration("idle_lifetime");
  hello.run = arguments.bytes("run").value_or("");
  hello.auth_method = static_cast<std::uint8_t>(arguments.number("auth").value_or(0));
  hello.version_min =
      static_cast<std::uint16_t>(arguments.number("version_min").value_or(hello.version_min));
  hello.version_max =
      static_cast<std::uint16_t>(arguments.number("version_max").value_or(hello.version_max));
  if (arguments.flag("observer")) hello.role = wire::Role::observer;
  if (arguments.flag("supervisor")) hello.role = wire::Role::supervisor;
  return hello;
}

wire::ClientHello resuming_hello_of(Arguments& arguments, const wire::ClientHello& honest) {
  wire::ClientHello hello = honest;
  if (const auto session = arguments.number("session")) {
    hello.session_id = static_cast<std::uint64_t>(*session);
  }
  if (const auto incarnation = arguments.number("incarnation")) {
    hello.incarnation = static_cast<std::uint64_t>(*incarnation);
  }
  if (arguments.flag("with_wrong_token")) hello.token.bytes.fill(0x11);
  if (const auto name_space = arguments.bytes("namespace")) hello.name_space = *name_space;
  return hello;
}

wire::ResumeToken echo_of(Arguments& arguments, const wire::ClientHello& own) {
  wire::ResumeToken token = own.token;
  if (arguments.flag("with_wrong_token")) token.bytes.back() ^= 1;
  return token;
}

ProcessId Processes::id_of(std::string_view name) {
  auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) found = names_.insert(names_.end(), std::string(name));
  ProcessId id;
  id.bytes.fill(0xaa);
  id.bytes[0] = static_cast<std::uint8_t>(found - names_.begin() + 1);
  return id;
}

std::string Processes::name_of(const ProcessId& id) const {
  if (id == ProcessId()) return "none";
  const std::size_t index = id.bytes[0];
  return index >= 1 && index <= names_.size() ? names_[index - 1] : to_string(id);
}

std::string text_of(const std::vector<RankRange>& ranges) {
  std::vector<std::string> parts;
  for (const RankRange& range : ranges) {
    parts.push_back(std::to_string(range.first));
    if (range.last != range.first) parts.back() += "-" + std::to_string(range.last);
  }
  return joined(parts, ",");
}

}  // namespace muster::script
