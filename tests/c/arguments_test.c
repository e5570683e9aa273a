#include <string.h>

#include "support.h"

// What is refused: NULL where something is needed, and structs that are of no version.

static muster_view key(const char* text) { return muster_text(text); }

static void check_store_null(muster_store* store) {
  muster_bytes* bytes = NULL;
  muster_store* made = NULL;
  const muster_view broken = {NULL, 3};
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "store is NULL", muster_store_get(NULL, key("k"), 0, &bytes));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "value is NULL", muster_store_get(store, key("k"), 0, NULL));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "key has a size of 3",
             muster_store_get(store, broken, 0, &bytes));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "address is NULL",
             muster_store_connect(NULL, NULL, patience, &made));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "store is NULL",
             muster_store_connect("127.0.0.1:1", NULL, patience, NULL));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "keys is NULL",
             muster_store_wait(store, NULL, 1, MUSTER_DEFAULT_TIMEOUT));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "exist is NULL",
             muster_store_multi_exists(store, &broken, 1, patience, NULL));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "a key has a size of 3",
             muster_store_wait(store, &broken, 1, patience));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "entries is NULL",
             muster_store_multi_set(store, NULL, 1, 0, patience));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "32 hexadecimal digits",
             muster_store_report_dead(store, "4711", "why", patience));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "\"happened\":\"no\"",
             muster_store_set(store, key("k"), key("v"), NULL, -2, NULL));
  FAILS(MUSTER_INVALID_ARGUMENT, muster_inspect(store, 99, NULL, patience, &bytes));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "name is NULL",
             muster_inspect(store, MUSTER_INSPECT_GROUP, NULL, patience, &bytes));

  result told = {0};
  muster_call* call = (muster_call*)&told;
  muster_store_get_async(NULL, key("k"), 0, on_bytes, &told, &call);
  CHECK(is_told(&told) && call == NULL && told.bytes == NULL);
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "\"operation\":\"get\"", awaited(&told));
  muster_store_get_async(NULL, key("k"), 0, NULL, NULL, NULL);
}

static void check_group_null(muster_store* store) {
  muster_group* group = NULL;
  muster_bytes* bytes = NULL;
  muster_nccl_id id;
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "name is NULL",
             muster_group_create(store, NULL, 0, 1, NULL, &group));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "group is NULL",
             muster_group_create(store, "g", 0, 1, NULL, NULL));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "host is NULL",
             muster_group_create_hosted(NULL, 1, 0, 1, NULL, &group));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "group is NULL",
             muster_group_recv(NULL, 0, MUSTER_CODEC_RAW, 0, 0, &bytes, NULL));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "group is NULL", muster_group_barrier(NULL, patience, NULL));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "group is NULL",
             muster_nccl_unique_id(NULL, patience, NULL, NULL, &id));
  CHECK(muster_group_watch(NULL, on_done, NULL) == NULL);
  CHECK(muster_group_store(NULL) == NULL);
  CHECK(muster_group_rank(NULL) == -1 && muster_group_world_size(NULL) == 0);
  CHECK(muster_group_epoch(NULL) == 0 && strcmp(muster_group_name(NULL), "") == 0);
  CHECK(muster_recovered_round(NULL) == 0 && !muster_recovered_called(NULL));
  CHECK(muster_recovered_error(NULL) == NULL && muster_recovered_values(NULL) == NULL);
  CHECK(muster_delivery_view(NULL).size == 0 && muster_delivery_accept(NULL) == 0);
  CHECK(!muster_nccl_give_up(NULL));
}

static void check_null_is_freed(void) {
  CHECK(muster_text(NULL).size == 0 && muster_bytes_view(NULL).size == 0);
  CHECK(muster_list_count(NULL) == 0 && !muster_list_at(NULL, 0, NULL));
  CHECK(muster_ranks_count(NULL) == 0 && muster_ranks_at(NULL, 0) == -1);
  CHECK(muster_page_count(NULL) == 0 && muster_page_cursor(NULL) == 0);
  CHECK(!muster_page_at(NULL, 0, NULL));
  CHECK(strcmp(muster_store_address(NULL), "") == 0 && muster_store_incarnation(NULL) == 0);
  CHECK(muster_io_thread_descriptor(NULL) == -1 && !muster_io_thread_serve_ready(NULL));
  muster_io_thread_finish(NULL);
  muster_io_thread_free(NULL);
  muster_store_close(NULL);
  muster_store_cancel(NULL);
  muster_group_cancel(NULL);
  muster_call_cancel(NULL);
  muster_error_free(NULL);
  muster_bytes_free(NULL);
  muster_list_free(NULL);
  muster_ranks_free(NULL);
  muster_page_free(NULL);
  muster_call_free(NULL);
  muster_watch_free(NULL);
  muster_delivery_free(NULL);
  muster_recovered_free(NULL);
  muster_group_free(NULL);
  muster_store_free(NULL);
}

void test_arguments(const server* server) {
  muster_store* const store = connected(server, "arguments");
  check_store_null(store);
  check_group_null(store);
  check_null_is_freed();
  muster_store_free(store);
}

/// What a later version may have behind muster_set_options.
typedef struct later_options {
  muster_set_options known;
  int64_t further;
} later_options;

static void check_options(muster_store* store) {
  muster_set_options unprepared = {0};
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "options of set",
             muster_store_set(store, key("k"), key("v"), &unprepared, patience, NULL));
  // Of an older version, which ends before `only_if_absent`: what it lacks is a default.
  muster_set_options older = MUSTER_INIT(muster_set_options);
  older.size = offsetof(muster_set_options, only_if_absent);
  older.only_if_absent = true;
  bool was_set = false;
  MUST(muster_store_set(store, key("k"), key("v"), NULL, patience, NULL));
  MUST(muster_store_set(store, key("k"), key("v"), &older, patience, &was_set));
  CHECK(was_set);
  // Of a later one: what it leaves zero is nothing.
  later_options later = {{.size = sizeof(later_options), .only_if_absent = true}, 0};
  MUST(muster_store_set(store, key("k"), key("v"), &later.known, patience, &was_set));
  CHECK(!was_set);
  later.further = 1;
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "this version of the library lacks",
             muster_store_set(store, key("k"), key("v"), &later.known, patience, NULL));
  older.size = (size_t)-1;
  FAILS(MUSTER_INVALID_ARGUMENT,
        muster_store_set(store, key("k"), key("v"), &older, patience, NULL));
}

static void check_all_options_are_looked_at(const server* server, muster_store* store) {
  const muster_store_options no_store = {0};
  const muster_group_options no_group = {0};
  const muster_hosted_options no_hosted = {0};
  muster_store* made = NULL;
  muster_group* group = NULL;
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "options of the store",
             muster_store_connect(server->address, &no_store, patience, &made));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "options of the group",
             muster_group_create(store, "g", 0, 1, &no_group, &group));
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "options of the hosted group",
             muster_group_create_hosted("127.0.0.1", 1, 0, 1, &no_hosted, &group));
  muster_store_options options = MUSTER_INIT(muster_store_options);
  options.role = 7;
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "role: there is none of number 7",
             muster_store_connect(server->address, &options, patience, &made));
  muster_hosted_options hosted = MUSTER_INIT(muster_hosted_options);
  hosted.host_server = -1;
  FAILS_WITH(MUSTER_INVALID_ARGUMENT, "host_server",
             muster_group_create_hosted("127.0.0.1", 1, 0, 1, &hosted, &group));
}

typedef struct later_limits {
  muster_limits known;
  int64_t further;
} later_limits;

static void check_filled(muster_store* store) {
  muster_limits older = MUSTER_INIT(muster_limits);
  older.size = offsetof(muster_limits, round_bytes_max);
  older.round_bytes_max = 77;
  muster_store_limits(store, &older);
  CHECK(older.size == offsetof(muster_limits, round_bytes_max));
  CHECK(older.value_bytes_max > 0 && older.round_bytes_max == 77);
  later_limits later = {{.size = sizeof(later_limits)}, 77};
  muster_store_limits(store, &later.known);
  CHECK(later.known.size == sizeof(later_limits) && later.known.slack > 0 && later.further == 0);
  muster_limits unprepared = {0};
  muster_store_limits(store, &unprepared);
  CHECK(unprepared.key_bytes_max == 0);
  muster_store_limits(store, NULL);
  muster_store_limits(NULL, &later.known);
}

void test_sizes(const server* server) {
  muster_store* const store = connected(server, "sizes");
  check_options(store);
  check_all_options_are_looked_at(server, store);
  check_filled(store);
  muster_store_free(store);
}
