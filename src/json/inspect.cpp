#include "json/inspect.h"

#include <chrono>
#include <string>
#include <vector>

#include "json/documents.h"
#include "muster/inspect.h"
#include "muster/operate.h"

// What a server tells of itself, as documents.

namespace muster::json {
namespace {

/// From when on a group hangs that waits, as of `musterctl why`.
constexpr Duration hangs_after = std::chrono::seconds(10);

template <class T>
Result<Json> document_of(const Result<T>& result) {
  if (!result) return result.error();
  return json_of(*result);
}

template <class T>
Result<Json> document_of(const Result<std::vector<T>>& result) {
  if (!result) return result.error();
  return list_of(*result);
}

Result<Json> document_of(const Result<std::vector<std::pair<std::string, std::string>>>& status) {
  if (!status) return status.error();
  return json_of_status(*status);
}

Result<Json> document_of(const Result<GroupReport>& report) {
  if (!report) return report.error();
  return json_of(*report, hangs_after);
}

}  // namespace

Result<Json> inspect(Store& store, Subject subject, std::string_view name, Duration timeout) {
  switch (subject) {
    case Subject::status: return document_of(store.status(timeout));
    case Subject::sessions: return document_of(inspect_sessions(store, timeout));
    case Subject::groups: return document_of(inspect_groups(store, timeout));
    case Subject::waiters: return document_of(inspect_waiters(store, timeout));
    case Subject::objects: return document_of(inspect_objects(store, name, timeout));
    case Subject::namespaces: return document_of(inspect_namespaces(store, timeout));
    case Subject::group: return document_of(inspect_group(store, name, timeout));
    case Subject::identity: return document_of(whoami(store, timeout));
    case Subject::history: return document_of(inspect_history(store, name, 0, timeout));
    case Subject::settings: return document_of(inspect_settings(store, name, timeout));
  }
  return Json();
}

}  // namespace muster::json
