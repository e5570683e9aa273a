#include "muster/operate.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "calls.h"

// What a running server is told to change, in both forms.

using muster::Duration;
using muster::Handler;
using muster::SettingInfo;
using muster::c::begin;
using muster::c::give;
using muster::c::guarded;
using muster::c::process_id_of;
using muster::c::store_of;
using muster::c::text_of;
using muster::c::text_or_none;

namespace {

/// Of a drain; -1: none.
std::optional<Duration> drain_time_of(int64_t time_max) {
  if (time_max < -1) throw muster::c::Refused{"time_max is negative; -1 waits for everybody"};
  if (time_max == -1) return std::nullopt;
  return Duration(time_max);
}

}  // namespace

muster_error* muster_set_setting(muster_store* store, const char* name, uint64_t value,
                                 int64_t timeout, muster_bytes** json) {
  return guarded("set_setting", [&] {
    return give(
        muster::set_setting(store_of(store), text_of(name, "name"), value, Duration(timeout)),
        json);
  });
}

muster_error* muster_end_session(muster_store* store, uint64_t session, const char* reason,
                                 int64_t timeout, uint64_t* ended) {
  return guarded("end_session", [&] {
    return give(
        muster::end_session(store_of(store), session, text_or_none(reason), Duration(timeout)),
        ended);
  });
}

muster_error* muster_end_sessions_of(muster_store* store, const char* process_id,
                                     const char* reason, int64_t timeout, uint64_t* ended) {
  return guarded("end_session", [&] {
    return give(muster::end_sessions_of(store_of(store), process_id_of(process_id),
                                        text_or_none(reason), Duration(timeout)),
                ended);
  });
}

muster_error* muster_drain(muster_store* store, int64_t time_max, const char* reason,
                           int64_t timeout, uint64_t* sessions) {
  return guarded("drain", [&] {
    return give(muster::drain(store_of(store), drain_time_of(time_max), text_or_none(reason),
                              Duration(timeout)),
                sessions);
  });
}

muster_error* muster_cancel_drain(muster_store* store, int64_t timeout) {
  return guarded("drain",
                 [&] { return give(muster::cancel_drain(store_of(store), Duration(timeout))); });
}

void muster_set_setting_async(muster_store* store, const char* name, uint64_t value,
                              int64_t timeout, muster_on_bytes done, void* user,
                              muster_call** call) {
  begin<SettingInfo>("set_setting", done, user, call, [&](Handler<SettingInfo> handler) {
    return muster::set_setting_async(store_of(store), text_of(name, "name"), value,
                                     Duration(timeout), std::move(handler));
  });
}

void muster_end_session_async(muster_store* store, uint64_t session, const char* reason,
                              int64_t timeout, muster_on_count done, void* user,
                              muster_call** call) {
  begin<std::uint64_t>("end_session", done, user, call, [&](Handler<std::uint64_t> handler) {
    return muster::end_session_async(store_of(store), session, text_or_none(reason),
                                     Duration(timeout), std::move(handler));
  });
}

void muster_end_sessions_of_async(muster_store* store, const char* process_id, const char* reason,
                                  int64_t timeout, muster_on_count done, void* user,
                                  muster_call** call) {
  begin<std::uint64_t>("end_session", done, user, call, [&](Handler<std::uint64_t> handler) {
    return muster::end_sessions_of_async(store_of(store), process_id_of(process_id),
                                         text_or_none(reason), Duration(timeout),
                                         std::move(handler));
  });
}

void muster_drain_async(muster_store* store, int64_t time_max, const char* reason, int64_t timeout,
                        muster_on_count done, void* user, muster_call** call) {
  begin<std::uint64_t>("drain", done, user, call, [&](Handler<std::uint64_t> handler) {
    return muster::drain_async(store_of(store), drain_time_of(time_max), text_or_none(reason),
                               Duration(timeout), std::move(handler));
  });
}

void muster_cancel_drain_async(muster_store* store, int64_t timeout, muster_on_done done,
                               void* user, muster_call** call) {
  begin<void>("drain", done, user, call, [&](Handler<void> handler) {
    return muster::cancel_drain_async(store_of(store), Duration(timeout), std::move(handler));
  });
}
