#include <stdlib.h>
#include <string.h>

#include "support.h"

// Keys and values, blocking and in the callback form.

static muster_view key(const char* text) { return muster_text(text); }

static void check_one_key(muster_store* store) {
  const muster_view value = {"a\0b", 3};
  bool flag = false;
  MUST(muster_store_set(store, key("k"), value, NULL, MUSTER_DEFAULT_TIMEOUT, &flag));
  CHECK(flag);
  muster_bytes* bytes = NULL;
  MUST(muster_store_get(store, key("k"), patience, &bytes));
  CHECK(muster_bytes_view(bytes).size == 3);
  CHECK(memcmp(muster_bytes_view(bytes).data, "a\0b", 4) == 0);
  muster_bytes_free(bytes);

  muster_set_options once = MUSTER_INIT(muster_set_options);
  once.only_if_absent = true;
  MUST(muster_store_set(store, key("k"), key("other"), &once, patience, &flag));
  CHECK(!flag);
  MUST(muster_store_take(store, key("k"), patience, &bytes));
  muster_bytes_free(bytes);
  MUST(muster_store_exists(store, key("k"), patience, &flag));
  CHECK(!flag);
  bytes = NULL;
  FAILS_WITH(MUSTER_NOT_FOUND, "\"operation\":\"get\"",
             muster_store_get(store, key("k"), 0, &bytes));
  CHECK(bytes == NULL);
  FAILS_WITH(MUSTER_TIMED_OUT, "\"decided_by\":\"server\"",
             muster_store_get(store, key("k"), 20000, &bytes));

  int64_t sum = 0;
  MUST(muster_store_add(store, key("n"), INT64_C(-5), patience, &sum));
  MUST(muster_store_add(store, key("n"), 7, patience, &sum));
  CHECK(sum == 2);
  uint64_t value_bytes = 0;
  MUST(muster_store_append(store, key("n"), key("x"), patience, &value_bytes));
  CHECK(value_bytes == 2);
  FAILS_WITH(MUSTER_NOT_A_NUMBER, "\"happened\":\"no\"",
             muster_store_add(store, key("n"), 1, patience, NULL));
  MUST(muster_store_touch(store, key("n"), patience, patience));
  MUST(muster_store_touch(store, key("n"), 0, patience));
  FAILS(MUSTER_NOT_FOUND, muster_store_touch(store, key("none"), 0, patience));
  MUST(muster_store_remove(store, key("n"), patience, &flag));
  CHECK(flag);
  MUST(muster_store_remove(store, key("n"), patience, NULL));
}

static void check_queue(muster_store* store) {
  uint64_t count = 0;
  MUST(muster_store_queue_push(store, key("q"), key("one"), patience, &count));
  MUST(muster_store_queue_push(store, key("q"), key("two"), patience, &count));
  CHECK(count == 2);
  muster_bytes* item = NULL;
  MUST(muster_store_queue_pop(store, key("q"), 0, &item));
  CHECK(are_text(item, "one"));
  MUST(muster_store_queue_length(store, key("q"), patience, &count));
  CHECK(count == 1);
  MUST(muster_store_queue_pop(store, key("q"), patience, &item));
  muster_bytes_free(item);
  item = NULL;
  FAILS_WITH(MUSTER_NOT_FOUND, "\"operation\":\"queue_pop\"",
             muster_store_queue_pop(store, key("q"), 0, &item));
  CHECK(item == NULL);
}

static void check_queue_async(muster_store* store) {
  result popped = {0}, pushed = {0}, counted = {0};
  muster_store_queue_pop_async(store, key("q"), patience, on_bytes, &popped, NULL);
  muster_store_queue_push_async(store, key("q"), key("item"), patience, on_count, &pushed, NULL);
  MUST(awaited(&pushed));
  CHECK(pushed.count == 1);
  MUST(awaited(&popped));
  CHECK(are_text(popped.bytes, "item"));
  muster_store_queue_length_async(store, key("q"), patience, on_count, &counted, NULL);
  MUST(awaited(&counted));
  CHECK(counted.count == 0);
}

static void check_compare_set(muster_store* store) {
  const muster_view one = key("1");
  bool applied = false;
  muster_bytes* current = NULL;
  MUST(
      muster_store_compare_set(store, key("c"), NULL, one, patience, patience, &applied, &current));
  CHECK(applied && current == NULL);
  MUST(muster_store_compare_set(store, key("c"), NULL, one, 0, patience, &applied, &current));
  CHECK(!applied && are_text(current, "1"));
  MUST(muster_store_compare_set(store, key("none"), &one, one, 0, patience, &applied, &current));
  CHECK(!applied && current == NULL);
  MUST(muster_store_compare_set(store, key("c"), NULL, one, 0, patience, &applied, NULL));
}

static void check_many_keys(muster_store* store) {
  const muster_entry entries[] = {{key("m/a"), key("A")}, {key("m/b"), key("")}};
  const muster_view keys[] = {key("m/a"), key("none"), key("m/b")};
  const muster_view present[] = {key("m/a"), key("m/b")};
  MUST(muster_store_multi_set(store, entries, 2, patience, patience));
  MUST(muster_store_multi_set(store, entries + 1, 1, 0, patience));
  MUST(muster_store_wait(store, present, 2, patience));
  FAILS(MUSTER_NOT_FOUND, muster_store_wait(store, keys, 3, 0));
  bool exist[3] = {false, true, false};
  MUST(muster_store_multi_exists(store, keys, 3, patience, exist));
  CHECK(exist[0] && !exist[1] && exist[2]);
  muster_list* values = NULL;
  MUST(muster_store_multi_get(store, keys, 3, patience, &values));
  muster_view element = {NULL, 77};
  CHECK(muster_list_count(values) == 3);
  CHECK(is_element(values, 0, "A") && is_element(values, 2, ""));
  CHECK(!muster_list_at(values, 1, &element) && !muster_list_at(values, 3, &element));
  CHECK(element.size == 77);
  muster_list_free(values);

  size_t found = 0;
  uint64_t cursor = 0;
  do {
    muster_page* page = NULL;
    MUST(muster_store_list(store, key("m/"), cursor, patience, &page));
    for (size_t index = 0; index < muster_page_count(page); ++index) {
      muster_key_info info = MUSTER_INIT(muster_key_info);
      CHECK(muster_page_at(page, index, &info));
      const bool is_first = has_text(info.key, "m/a");
      CHECK(is_first || has_text(info.key, "m/b"));
      CHECK(info.value_bytes == (is_first ? 1 : 0) && !info.bound);
      CHECK(is_first ? info.ttl > 0 && info.ttl <= patience : info.ttl == -1);
      ++found;
    }
    muster_key_info info = MUSTER_INIT(muster_key_info);
    CHECK(!muster_page_at(page, muster_page_count(page), &info));
    cursor = muster_page_cursor(page);
    muster_page_free(page);
  } while (cursor != 0);
  CHECK(found == 2);
  uint64_t removed = 0;
  MUST(muster_store_multi_remove(store, keys, 3, patience, &removed));
  CHECK(removed == 2);
}

void test_store(const server* server) {
  CHECK(strcmp(muster_version(), getenv("EXPECTED_VERSION")) == 0);
  muster_store* const store = connected(server, "store");
  check_one_key(store);
  check_queue(store);
  check_compare_set(store);
  check_many_keys(store);
  CHECK(strcmp(muster_store_address(store), server->address) == 0);
  CHECK(strlen(muster_store_process_id(store)) == 32);
  CHECK(muster_store_incarnation(store) != 0);
  muster_limits limits = MUSTER_INIT(muster_limits);
  muster_store_limits(store, &limits);
  CHECK(limits.key_bytes_max > 0 && limits.value_bytes_max > 0 && limits.round_bytes_max > 0);
  CHECK(limits.keys_per_operation_max > 0 && limits.world_size_max > 0 && limits.heartbeat > 0);
  CHECK(limits.session_timeout > 0 && limits.grace > 0 && limits.slack > 0);
  muster_store_free(store);
}

static void check_one_key_async(muster_store* store) {
  result set = {0}, get = {0}, take = {0}, add = {0}, append = {0}, touch = {0};
  muster_store_set_async(store, key("k"), key("v"), NULL, patience, on_flag, &set, NULL);
  MUST(awaited(&set));
  CHECK(set.flag);
  muster_store_get_async(store, key("k"), patience, on_bytes, &get, NULL);
  MUST(awaited(&get));
  CHECK(are_text(get.bytes, "v"));
  muster_store_take_async(store, key("k"), patience, on_bytes, &take, NULL);
  MUST(awaited(&take));
  CHECK(are_text(take.bytes, "v"));
  muster_store_add_async(store, key("n"), 4, patience, on_number, &add, NULL);
  MUST(awaited(&add));
  CHECK(add.number == 4);
  muster_store_append_async(store, key("n"), key("2"), patience, on_count, &append, NULL);
  MUST(awaited(&append));
  CHECK(append.count == 2);
  muster_store_touch_async(store, key("n"), patience, patience, on_done, &touch, NULL);
  MUST(awaited(&touch));

  result exists = {0}, removed = {0}, compared = {0}, again = {0};
  muster_store_exists_async(store, key("n"), patience, on_flag, &exists, NULL);
  MUST(awaited(&exists));
  CHECK(exists.flag);
  muster_store_remove_async(store, key("n"), patience, on_flag, &removed, NULL);
  MUST(awaited(&removed));
  CHECK(removed.flag);
  const muster_view old = key("old");
  muster_store_compare_set_async(store, key("c"), NULL, old, 0, patience, on_compared, &compared,
                                 NULL);
  MUST(awaited(&compared));
  CHECK(compared.flag && compared.bytes == NULL);
  muster_store_compare_set_async(store, key("c"), NULL, old, 0, patience, on_compared, &again,
                                 NULL);
  MUST(awaited(&again));
  CHECK(!again.flag && are_text(again.bytes, "old"));
}

static void check_many_keys_async(muster_store* store) {
  const muster_entry entries[] = {{key("m/a"), key("A")}, {key("m/b"), key("B")}};
  const muster_view keys[] = {key("m/a"), key("none"), key("m/b")};
  result set = {0}, wait = {0}, exist = {0}, get = {0}, list = {0}, remove = {0};
  muster_store_multi_set_async(store, entries, 2, 0, patience, on_done, &set, NULL);
  MUST(awaited(&set));
  muster_store_wait_async(store, keys, 1, patience, on_done, &wait, NULL);
  MUST(awaited(&wait));
  muster_store_multi_exists_async(store, keys, 3, patience, on_flags, &exist, NULL);
  MUST(awaited(&exist));
  CHECK(exist.count == 3 && exist.flags[0] && !exist.flags[1] && exist.flags[2]);
  muster_store_multi_get_async(store, keys, 3, patience, on_list, &get, NULL);
  MUST(awaited(&get));
  CHECK(muster_list_count(get.list) == 3 && is_element(get.list, 2, "B"));
  muster_list_free(get.list);
  muster_store_list_async(store, key("m/"), 0, patience, on_page, &list, NULL);
  MUST(awaited(&list));
  muster_page_free(list.page);
  muster_store_multi_remove_async(store, keys, 3, patience, on_count, &remove, NULL);
  MUST(awaited(&remove));
  CHECK(remove.count == 2);
}

/// One of two calls is cancelled, and the other goes on.
static void check_cancel_of_one(muster_store* store) {
  result first = {0}, second = {0};
  muster_call* calls[2] = {NULL, NULL};
  muster_store_get_async(store, key("later"), patience, on_bytes, &first, &calls[0]);
  muster_store_get_async(store, key("later"), patience, on_bytes, &second, &calls[1]);
  CHECK(calls[0] != NULL && calls[1] != NULL);
  muster_call_cancel(calls[0]);
  FAILS(MUSTER_CANCELLED, awaited(&first));
  CHECK(!is_told(&second));
  MUST(muster_store_set(store, key("later"), key("now"), NULL, patience, NULL));
  MUST(awaited(&second));
  CHECK(are_text(second.bytes, "now"));
  muster_call_cancel(calls[1]);  // it is over
  muster_call_free(calls[0]);
  muster_call_free(calls[1]);
}

static void check_cancel_of_all(muster_store* store) {
  result first = {0}, second = {0};
  muster_call* call = NULL;
  muster_store_get_async(store, key("never"), patience, on_bytes, &first, NULL);
  muster_store_get_async(store, key("never"), patience, on_bytes, &second, &call);
  muster_call_free(call);  // which changes nothing
  muster_store_cancel(store);
  FAILS(MUSTER_CANCELLED, awaited(&first));
  FAILS(MUSTER_CANCELLED, awaited(&second));
}

static muster_error* connect_until_refused(const char* address, muster_store_options* options) {
  for (;;) {
    muster_store* store = NULL;
    muster_error* const why = muster_store_connect(address, options, patience, &store);
    if (why != NULL) return why;
    muster_store_free(store);
  }
}

static void check_runs(const char* address) {
  muster_store_options options = MUSTER_INIT(muster_store_options);
  options.name_space = "runs";
  options.namespace_idle_lifetime = patience;
  options.run = "1";
  FAILS(MUSTER_CLOSED, connect_until_refused(address, &options));
  options.namespace_idle_lifetime = -1;  // 0 of C++: the keys go with the session
  options.run = "2";
  muster_store* store = NULL;
  MUST(muster_store_connect(address, &options, patience, &store));
  MUST(muster_store_set(store, key("k"), key("v"), NULL, patience, NULL));
  muster_store_free(store);
  options.run = "3";
  MUST(muster_store_connect(address, &options, patience, &store));
  bool is_there = true;
  MUST(muster_store_exists(store, key("k"), patience, &is_there));
  CHECK(!is_there);
  muster_store_free(store);
}

void test_store_async(const server* server) {
  check_runs(server->address);
  result connect = {0}, refused = {0};
  muster_store_options options = MUSTER_INIT(muster_store_options);
  options.name_space = "store_async";
  muster_store_connect_async(server->address, &options, patience, on_store, &connect, NULL);
  MUST(awaited(&connect));
  check_one_key_async(connect.store);
  check_queue_async(connect.store);
  check_many_keys_async(connect.store);
  check_cancel_of_one(connect.store);
  check_cancel_of_all(connect.store);
  // Nobody is told, and a pending call outlives its handle.
  muster_store_set_async(connect.store, key("k"), key("v"), NULL, patience, NULL, NULL, NULL);
  result left = {0};
  muster_store_get_async(connect.store, key("never"), patience, on_bytes, &left, NULL);
  muster_store_free(connect.store);
  FAILS(MUSTER_CLOSED, awaited(&left));

  options.wait_for_server = -1;
  muster_store_connect_async("127.0.0.1:1", &options, 60 * patience, on_store, &refused, NULL);
  FAILS_WITH(MUSTER_UNAVAILABLE, "\"where\":\"127.0.0.1:1\"", awaited(&refused));
  CHECK(refused.store == NULL);
}
