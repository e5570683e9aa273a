#include "muster/inspect.h"

#include <cstdint>
#include <string>
#include <vector>

#include "calls.h"
#include "json/fields.h"
#include "json/inspect.h"
#include "muster/process_group.h"

// What a server and a group tell of themselves, as documents.

using muster::Duration;
using muster::Result;
using muster::c::give;
using muster::c::guarded;
using muster::c::needed;

namespace {

using muster::json::Json;
using muster::json::Subject;

static_assert(static_cast<int>(Subject::status) == MUSTER_INSPECT_STATUS);
static_assert(static_cast<int>(Subject::history) == MUSTER_INSPECT_HISTORY);
static_assert(static_cast<int>(Subject::settings) == MUSTER_INSPECT_SETTINGS);

Result<Json> answer(muster::Store& store, int what, const char* name, Duration timeout) {
  if (what < MUSTER_INSPECT_STATUS || what > MUSTER_INSPECT_SETTINGS) {
    throw muster::c::Refused{"there is nothing of number " + std::to_string(what)};
  }
  const std::string given = what == MUSTER_INSPECT_GROUP
                                ? std::string(muster::c::text_of(name, "name"))
                                : std::string(muster::c::text_or_none(name));
  return muster::json::inspect(store, static_cast<Subject>(what), given, timeout);
}

}  // namespace

muster_error* muster_inspect(muster_store* store, int what, const char* name, int64_t timeout,
                             muster_bytes** json) {
  return guarded("inspect", [&]() -> muster_error* {
    needed(json, "json");
    const Result<Json> document = answer(muster::c::store_of(store), what, name, Duration(timeout));
    if (!document) return muster::c::error_of(document.error());
    *json = new muster_bytes{muster::json::line_of(*document)};
    return nullptr;
  });
}

muster_error* muster_group_members(muster_group* group, int64_t timeout, muster_bytes** json) {
  return guarded("members", [&] {
    needed(json, "json");
    return give(muster::c::group_of(group).members(Duration(timeout)), json);
  });
}

void muster_group_members_async(muster_group* group, int64_t timeout, muster_on_bytes done,
                                void* user, muster_call** call) {
  using Members = std::vector<muster::MemberInfo>;
  muster::c::begin<Members>("members", done, user, call, [&](muster::Handler<Members> handler) {
    return muster::c::group_of(group).members_async(Duration(timeout), std::move(handler));
  });
}
