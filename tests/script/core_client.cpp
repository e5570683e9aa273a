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
