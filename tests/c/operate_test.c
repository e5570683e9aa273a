#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support.h"

// What operators change: settings, the end of sessions, and the server's end.

static muster_store* connected_supervisor(const server* server) {
  muster_store_options options = MUSTER_INIT(muster_store_options);
  options.role = MUSTER_ROLE_SUPERVISOR;
  options.name_space = "operate";
  muster_store* store = NULL;
  MUST(muster_store_connect(server->address, &options, patience, &store));
  return store;
}

static muster_bytes* settings(muster_store* store, const char* name) {
  muster_bytes* json = NULL;
  MUST(muster_inspect(store, MUSTER_INSPECT_SETTINGS, name, patience, &json));
  return json;
}

static bool has_part(muster_bytes* json, const char* part) {
  const bool has = json != NULL && strstr(muster_bytes_view(json).data, part) != NULL;
  muster_bytes_free(json);
  return has;
}

static void check_settings(muster_store* supervisor, muster_store* other) {
  CHECK(has_part(settings(other, NULL), "\"name\":\"memory-bytes-max\",\"kind\":\"bytes\""));
  CHECK(has_part(settings(other, "heartbeat"), "\"fixed_because\":\""));
  CHECK(are_text(settings(other, "log-level"),
                 "[{\"name\":\"log-level\",\"kind\":\"level\",\"value\":\"warning\","
                 "\"changes\":true,\"least\":\"debug\",\"most\":\"silent\"}]"));
  muster_bytes* json = NULL;
  MUST(muster_set_setting(supervisor, "slow-round-log", 1500000, patience, &json));
  CHECK(are_text(json,
                 "{\"name\":\"slow-round-log\",\"kind\":\"duration\",\"value\":1.5,\"unit\":\"s\","
                 "\"changes\":true,\"least\":0.1,\"most\":3600.0}"));
  MUST(muster_set_setting(supervisor, "parked-waits-max", 77, patience, NULL));
  CHECK(has_part(settings(other, "parked-waits-max"), "\"value\":77,"));
  result set = {0};
  muster_set_setting_async(supervisor, "log-level", 3, patience, on_bytes, &set, NULL);
  MUST(awaited(&set));
  CHECK(has_part(set.bytes, "\"value\":\"error\""));

  json = NULL;
  FAILS(MUSTER_INVALID_ARGUMENT, muster_set_setting(supervisor, "heartbeat", 2, patience, &json));
  FAILS(MUSTER_NOT_FOUND, muster_set_setting(supervisor, "none", 2, patience, &json));
  FAILS(MUSTER_INVALID_ARGUMENT,
        muster_set_setting(supervisor, "parked-waits-max", 0, patience, &json));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "name is NULL",
             muster_set_setting(supervisor, NULL, 1, patience, &json));
  FAILS_WITH(MUSTER_PERMISSION_DENIED, "\"happened\":\"no\"",
             muster_set_setting(other, "parked-waits-max", 78, patience, &json));
  CHECK(json == NULL);
  FAILS(MUSTER_NOT_FOUND, muster_inspect(other, MUSTER_INSPECT_SETTINGS, "none", patience, &json));
  result denied = {0};
  muster_set_setting_async(other, "parked-waits-max", 78, patience, on_bytes, &denied, NULL);
  FAILS(MUSTER_PERMISSION_DENIED, awaited(&denied));
  CHECK(denied.bytes == NULL);
  CHECK(has_part(settings(other, "parked-waits-max"), "\"value\":77,"));
}

/// The number of the session of which the server tells `part`.
static uint64_t session_of(muster_store* store, const char* part) {
  muster_bytes* json = NULL;
  MUST(muster_inspect(store, MUSTER_INSPECT_SESSIONS, NULL, patience, &json));
  const char* const text = muster_bytes_view(json).data;
  const char* const found = strstr(text, part);
  CHECK(found != NULL);
  const char* number = NULL;
  for (const char* at = text; (at = strstr(at, "\"session\":")) != NULL && at < found;) {
    at += strlen("\"session\":");
    number = at;
  }
  CHECK(number != NULL);
  const uint64_t session = strtoull(number, NULL, 10);
  muster_bytes_free(json);
  return session;
}

static void check_end_of_sessions(const server* server, muster_store* supervisor,
                                  muster_store* other) {
  const uint64_t session = session_of(supervisor, "\"label\":\"in C\"");
  const uint64_t own = session_of(supervisor, "\"label\":\"\"");
  uint64_t ended = 0;
  FAILS(MUSTER_PERMISSION_DENIED, muster_end_session(other, own, "why", patience, &ended));
  FAILS(MUSTER_INVALID_ARGUMENT, muster_end_session(supervisor, own, "why", patience, &ended));
  FAILS(MUSTER_NOT_FOUND, muster_end_session(supervisor, 0, NULL, patience, &ended));
  CHECK(ended == 0);
  MUST(muster_end_session(supervisor, session, "it holds the lock", patience, &ended));
  CHECK(ended == 1);
  FAILS_WITH(MUSTER_FENCED, "it holds the lock",
             muster_store_set(other, muster_text("k"), muster_text("v"), NULL, patience, NULL));
  MUST(muster_store_reopen(other, patience));
  result end = {0}, again = {0};
  muster_end_session_async(supervisor, session_of(supervisor, "\"label\":\"in C\""), "and again",
                           patience, on_count, &end, NULL);
  MUST(awaited(&end));
  CHECK(end.count == 1);
  FAILS_WITH(MUSTER_FENCED, "and again",
             muster_store_set(other, muster_text("k"), muster_text("v"), NULL, patience, NULL));
  MUST(muster_store_reopen(other, patience));

  member first = start_member(server, "operate", "first", 0, 1);
  member second = start_member(server, "operate", "second", 0, 1);
  ended = 0;
  MUST(muster_end_sessions_of(supervisor, first.process_id, NULL, patience, &ended));
  CHECK(ended == 1);
  FAILS(MUSTER_NOT_FOUND,
        muster_end_sessions_of(supervisor, first.process_id, NULL, patience, NULL));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "32 hexadecimal digits",
             muster_end_sessions_of(supervisor, "4711", NULL, patience, NULL));
  result of_process = {0};
  muster_end_sessions_of_async(supervisor, second.process_id, "why", patience, on_count,
                               &of_process, NULL);
  MUST(awaited(&of_process));
  CHECK(of_process.count == 1);
  muster_end_sessions_of_async(supervisor, second.process_id, "why", patience, on_count, &again,
                               NULL);
  FAILS(MUSTER_NOT_FOUND, awaited(&again));
  kill_member(&first);
  kill_member(&second);
}

static void check_drain(server* server, muster_store* supervisor, muster_store* other) {
  const int64_t soon = 1000000, an_hour = 3600 * INT64_C(1000000);
  uint64_t sessions = 77;
  FAILS(MUSTER_PERMISSION_DENIED, muster_drain(other, -1, "why", patience, &sessions));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "time_max is negative",
             muster_drain(supervisor, -2, "why", patience, &sessions));
  FAILS(MUSTER_NOT_FOUND, muster_cancel_drain(supervisor, patience));
  CHECK(sessions == 77);
  MUST(muster_drain(supervisor, -1, "an update", patience, &sessions));
  CHECK(sessions == 1);
  muster_store* newcomer = NULL;
  FAILS_WITH(MUSTER_UNAVAILABLE, "an update",
             muster_store_connect(server->address, NULL, soon, &newcomer));
  FAILS(MUSTER_PERMISSION_DENIED, muster_cancel_drain(other, patience));
  MUST(muster_cancel_drain(supervisor, patience));
  MUST(muster_store_connect(server->address, NULL, patience, &newcomer));
  muster_store_free(newcomer);

  result drain = {0}, cancel = {0}, again = {0};
  muster_drain_async(supervisor, an_hour, NULL, patience, on_count, &drain, NULL);
  MUST(awaited(&drain));
  muster_cancel_drain_async(supervisor, patience, on_done, &cancel, NULL);
  MUST(awaited(&cancel));
  muster_cancel_drain_async(supervisor, patience, on_done, &again, NULL);
  FAILS(MUSTER_NOT_FOUND, awaited(&again));

  // The time that is over ends the server, although somebody is there.
  MUST(muster_drain(supervisor, 1000, "over", patience, NULL));
  CHECK(waitpid(server->pid, NULL, 0) == server->pid);
}

void test_operate(const server* shared) {
  (void)shared;
  server server = start_server(NULL, NULL);
  muster_store* const supervisor = connected_supervisor(&server);
  muster_store* const other = connected(&server, "operate");
  check_settings(supervisor, other);
  check_end_of_sessions(&server, supervisor, other);
  check_drain(&server, supervisor, other);
  muster_store_free(other);
  muster_store_free(supervisor);
}
