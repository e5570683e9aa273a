#include "runtime/communicator_kinds.h"

#include <algorithm>
#include <utility>

#include "base/failure.h"

namespace muster::runtime {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The device that a kind alone is for.
std::string_view device_of(std::string_view kind) {
  if (kind == "gloo") return "cpu";
  if (kind == "nccl") return "cuda";
  return "";
}

Error refused(std::string_view text, std::string why) {
  return base::failure(ErrorCode::invalid_argument,
                       "communicators '" + std::string(text) + "': " + std::move(why));
}

}  // namespace

Result<CommunicatorKinds> communicator_kinds_of(std::string_view text) {
  CommunicatorKinds kinds;
  std::string_view rest = text;
  while (!trimmed(rest).empty()) {
    const std::string_view entry = trimmed(rest.substr(0, rest.find(',')));
    rest.remove_prefix(
        std::min(rest.size(), rest.find(',') == rest.npos ? rest.size() : rest.find(',') + 1));
    const std::size_t colon = entry.find(':');
    const std::string_view kind = colon == entry.npos ? entry : entry.substr(colon + 1);
    const std::string_view device = colon == entry.npos ? device_of(kind) : entry.substr(0, colon);
    if (device != "cpu" && device != "cuda")
      return refused(text, "write device:kind with the devices cpu and cuda, such as cpu:gloo");
    if (kind.empty()) return refused(text, "no kind for " + std::string(device));
    if (!kinds.emplace(device, kind).second)
      return refused(text, std::string(device) + " is there twice");
  }
  return kinds;
}

std::string text_of(const CommunicatorKinds& kinds) {
  std::string text;
  for (const auto& [device, kind] : kinds) text += (text.empty() ? "" : ",") + device + ":" + kind;
  return text;
}

}  // namespace muster::runtime
