#include "muster/store.h"

#include <algorithm>

#include "calls.h"
#include "options.h"

// Stores, and their blocking calls.

using muster::Duration;
using muster::Store;
using muster::c::bytes_of;
using muster::c::entries_of;
using muster::c::fill;
using muster::c::give;
using muster::c::guarded;
using muster::c::guarded_or;
using muster::c::keys_of;
using muster::c::needed;
using muster::c::store_of;
using muster::c::text_of;
using muster::c::time_or_none;

muster_error* muster_store_connect(const char* address, const muster_store_options* options,
                                   int64_t timeout, muster_store** store) {
  return guarded("connect", [&] {
    needed(store, "store");
    return give(Store::connect(text_of(address, "address"), muster::c::store_options_of(options),
                               Duration(timeout)),
                store);
  });
}

void muster_store_free(muster_store* store) { delete store; }

void muster_store_close(muster_store* store) {
  guarded_or(false, [&] {
    if (store != nullptr) store->store.close();
    return true;
  });
}

void muster_store_cancel(muster_store* store) {
  if (store != nullptr) store->store.cancel();
}

muster_error* muster_store_reopen(muster_store* store, int64_t timeout) {
  return guarded("reopen", [&] { return give(store_of(store).reopen(Duration(timeout))); });
}

void muster_store_limits(const muster_store* store, muster_limits* limits) {
  if (store == nullptr) return;
  const muster::Limits from = store->store.limits();
  muster_limits known{};
  known.key_bytes_max = from.key_bytes_max;
  known.value_bytes_max = from.value_bytes_max;
  known.round_bytes_max = from.round_bytes_max;
  known.keys_per_operation_max = from.keys_per_operation_max;
  known.world_size_max = from.world_size_max;
  known.heartbeat = from.heartbeat.count();
  known.session_timeout = from.session_timeout.count();
  known.grace = from.grace.count();
  known.slack = from.slack.count();
  fill(limits, known);
}

const char* muster_store_address(const muster_store* store) {
  return store == nullptr ? "" : store->store.address().c_str();
}

const char* muster_store_process_id(const muster_store* store) {
  return store == nullptr ? "" : store->process_id.c_str();
}

uint64_t muster_store_incarnation(const muster_store* store) {
  return store == nullptr ? 0 : store->store.incarnation();
}

muster_error* muster_store_set(muster_store* store, muster_view key, muster_view value,
                               const muster_set_options* options, int64_t timeout, bool* was_set) {
  return guarded("set", [&] {
    return give(store_of(store).set(bytes_of(key, "key"), bytes_of(value, "value"),
                                    muster::c::set_options_of(options), Duration(timeout)),
                was_set);
  });
}

muster_error* muster_store_get(muster_store* store, muster_view key, int64_t timeout,
                               muster_bytes** value) {
  return guarded("get", [&] {
    needed(value, "value");
    return give(store_of(store).get(bytes_of(key, "key"), Duration(timeout)), value);
  });
}

muster_error* muster_store_take(muster_store* store, muster_view key, int64_t timeout,
                                muster_bytes** value) {
  return guarded("take", [&] {
    needed(value, "value");
    return give(store_of(store).take(bytes_of(key, "key"), Duration(timeout)), value);
  });
}

muster_error* muster_store_add(muster_store* store, muster_view key, int64_t delta, int64_t timeout,
                               int64_t* sum) {
  return guarded("add", [&] {
    return give(store_of(store).add(bytes_of(key, "key"), delta, Duration(timeout)), sum);
  });
}

muster_error* muster_store_compare_set(muster_store* store, muster_view key,
                                       const muster_view* expected, muster_view desired,
                                       int64_t ttl, int64_t timeout, bool* applied,
                                       muster_bytes** current) {
  return guarded("compare_set", [&] {
    return give(store_of(store).compare_set(
                    bytes_of(key, "key"), muster::c::bytes_or_none(expected, "expected"),
                    bytes_of(desired, "desired"), {time_or_none(ttl)}, Duration(timeout)),
                applied, current);
  });
}

muster_error* muster_store_append(muster_store* store, muster_view key, muster_view suffix,
                                  int64_t timeout, uint64_t* value_bytes) {
  return guarded("append", [&] {
    return give(
        store_of(store).append(bytes_of(key, "key"), bytes_of(suffix, "suffix"), Duration(timeout)),
        value_bytes);
  });
}

muster_error* muster_store_touch(muster_store* store, muster_view key, int64_t ttl,
                                 int64_t timeout) {
  return guarded("touch", [&] {
    return give(store_of(store).touch(bytes_of(key, "key"), time_or_none(ttl), Duration(timeout)));
  });
}

muster_error* muster_store_remove(muster_store* store, muster_view key, int64_t timeout,
                                  bool* existed) {
  return guarded("remove", [&] {
    return give(store_of(store).remove(bytes_of(key, "key"), Duration(timeout)), existed);
  });
}

muster_error* muster_store_exists(muster_store* store, muster_view key, int64_t timeout,
                                  bool* exists) {
  return guarded("exists", [&] {
    return give(store_of(store).exists(bytes_of(key, "key"), Duration(timeout)), exists);
  });
}

muster_error* muster_store_queue_push(muster_store* store, muster_view key, muster_view item,
                                      int64_t timeout, uint64_t* count) {
  return guarded("queue_push", [&] {
    return give(
        store_of(store).queue_push(bytes_of(key, "key"), bytes_of(item, "item"), Duration(timeout)),
        count);
  });
}

muster_error* muster_store_queue_pop(muster_store* store, muster_view key, int64_t timeout,
                                     muster_bytes** item) {
  return guarded("queue_pop", [&] {
    needed(item, "item");
    return give(store_of(store).queue_pop(bytes_of(key, "key"), Duration(timeout)), item);
  });
}

muster_error* muster_store_queue_length(muster_store* store, muster_view key, int64_t timeout,
                                        uint64_t* count) {
  return guarded("queue_length", [&] {
    return give(store_of(store).queue_length(bytes_of(key, "key"), Duration(timeout)), count);
  });
}

muster_error* muster_store_multi_remove(muster_store* store, const muster_view* keys, size_t count,
                                        int64_t timeout, uint64_t* removed) {
  return guarded("multi_remove", [&] {
    return give(store_of(store).multi_remove(keys_of(keys, count), Duration(timeout)), removed);
  });
}

muster_error* muster_store_multi_exists(muster_store* store, const muster_view* keys, size_t count,
                                        int64_t timeout, bool* exist) {
  return guarded("multi_exists", [&]() -> muster_error* {
    if (count != 0) needed(exist, "exist");
    const auto flags = store_of(store).multi_exists(keys_of(keys, count), Duration(timeout));
    if (!flags) return muster::c::error_of(flags.error());
    std::copy(flags->begin(), flags->end(), exist);
    return nullptr;
  });
}

muster_error* muster_store_wait(muster_store* store, const muster_view* keys, size_t count,
                                int64_t timeout) {
  return guarded(
      "wait", [&] { return give(store_of(store).wait(keys_of(keys, count), Duration(timeout))); });
}

muster_error* muster_store_multi_get(muster_store* store, const muster_view* keys, size_t count,
                                     int64_t timeout, muster_list** values) {
  return guarded("multi_get", [&] {
    needed(values, "values");
    return give(store_of(store).multi_get(keys_of(keys, count), Duration(timeout)), values);
  });
}

muster_error* muster_store_multi_set(muster_store* store, const muster_entry* entries, size_t count,
                                     int64_t ttl, int64_t timeout) {
  return guarded("multi_set", [&] {
    return give(store_of(store).multi_set(entries_of(entries, count), {time_or_none(ttl)},
                                          Duration(timeout)));
  });
}

muster_error* muster_store_list(muster_store* store, muster_view prefix, uint64_t cursor,
                                int64_t timeout, muster_page** page) {
  return guarded("list", [&] {
    needed(page, "page");
    return give(store_of(store).list(bytes_of(prefix, "prefix"), cursor, Duration(timeout)), page);
  });
}

muster_error* muster_store_report_dead(muster_store* store, const char* process_id,
                                       const char* reason, int64_t timeout) {
  return guarded("report_dead", [&] {
    return give(store_of(store).report_dead(muster::c::process_id_of(process_id),
                                            muster::c::text_or_none(reason), Duration(timeout)));
  });
}

muster_error* muster_store_drop_namespace(muster_store* store, const char* name, int64_t timeout,
                                          uint64_t* keys) {
  return guarded("drop_namespace", [&] {
    return give(store_of(store).drop_namespace(text_of(name, "name"), Duration(timeout)), keys);
  });
}
