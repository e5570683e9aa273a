#include "core/session/failure.h"

#include "muster/log.h"

namespace muster::core {
namespace {

Error limited(ErrorCode code, std::string what, std::uint64_t actual, std::uint64_t limit) {
  Error error = failure(code, std::move(what));
  error.actual = actual;
  error.limit = limit;
  return error;
}

}  // namespace

std::string describe(const ProcessInfo& process) {
  std::string text = process.host.empty() ? to_string(process.id) : printable(process.host);
  if (process.pid != 0) text += ":" + std::to_string(process.pid);
  if (!process.label.empty()) text += " (" + printable(process.label) + ")";
  return text;
}

Error too_large(std::string_view what, std::uint64_t actual, std::string_view unit,
                std::uint64_t limit, std::string_view limit_name) {
  Error error = failure(ErrorCode::too_large, std::string(what));
  error.detail += " has " + std::to_string(actual) + " ";
  error.detail += unit;
  error.detail += ", the server takes at most " + std::to_string(limit);
  if (!limit_name.empty()) error.detail.append(" (").append(limit_name).append(")");
  error.actual = actual;
  error.limit = limit;
  return error;
}

Error exhausted(Tallies& tallies, Limit which, std::string what, std::uint64_t actual,
                std::uint64_t limit) {
  tallies.refusals.count(which);
  return limited(ErrorCode::resource_exhausted, std::move(what), actual, limit);
}

Error full(Tallies& tallies, Limit which, std::string what, std::uint64_t actual,
           std::uint64_t limit) {
  tallies.refusals.count(which);
  return limited(ErrorCode::busy, std::move(what), actual, limit);
}

Error memory_exhausted(const Quota& quota, std::uint64_t bytes) {
  if (quota.is_short()) {
    quota.count_refusal(Limit::system_memory);
    return failure(ErrorCode::resource_exhausted, std::string(out_of_system_memory));
  }
  const QuotaRefusal refusal = quota.refusing(bytes);
  std::string what = std::to_string(bytes) + " more bytes would pass ";
  std::string advice = "; raise it by `musterctl config set`, or remove keys";
  Limit which = Limit::name_space_memory;
  if (refusal.is_of_identity) {
    which = Limit::identity_memory;
    what += "the memory that this identity, or the ports for TCPStore, may have";
    advice = "; remove keys, or ask for a higher limit";
  } else if (refusal.is_share) {
    which = Limit::memory_share;
    what += "this client's share: memory_bytes_max is nearly reached, and others have less";
  } else if (&refusal.quota == &quota.root()) {
    which = Limit::memory;
    what += "the limit memory_bytes_max";
  } else {
    what += "the limit namespace_memory_bytes_max";
  }
  quota.count_refusal(which);
  return limited(ErrorCode::resource_exhausted, what + advice, refusal.quota.used_bytes(),
                 refusal.bytes_max);
}

}  // namespace muster::core
