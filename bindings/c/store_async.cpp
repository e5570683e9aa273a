#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calls.h"
#include "muster/store.h"
#include "options.h"

// The callback forms of a store's calls.

using muster::Compared;
using muster::Duration;
using muster::Handler;
using muster::KeyPage;
using muster::Store;
using muster::c::begin;
using muster::c::bytes_of;
using muster::c::entries_of;
using muster::c::keys_of;
using muster::c::needed;
using muster::c::store_of;
using muster::c::text_of;
using muster::c::time_or_none;

namespace {

using Flags = std::vector<bool>;
using Values = std::vector<std::optional<std::string>>;

}  // namespace

void muster_store_connect_async(const char* address, const muster_store_options* options,
                                int64_t timeout, muster_on_store done, void* user,
                                muster_call** call) {
  begin<Store>("connect", done, user, call, [&](Handler<Store> handler) {
    return Store::connect_async(text_of(address, "address"), muster::c::store_options_of(options),
                                Duration(timeout), std::move(handler));
  });
}

void muster_store_reopen_async(muster_store* store, int64_t timeout, muster_on_done done,
                               void* user, muster_call** call) {
  begin<void>("reopen", done, user, call, [&](Handler<void> handler) {
    return store_of(store).reopen_async(Duration(timeout), std::move(handler));
  });
}

void muster_store_set_async(muster_store* store, muster_view key, muster_view value,
                            const muster_set_options* options, int64_t timeout, muster_on_flag done,
                            void* user, muster_call** call) {
  begin<bool>("set", done, user, call, [&](Handler<bool> handler) {
    return store_of(store).set_async(bytes_of(key, "key"), bytes_of(value, "value"),
                                     muster::c::set_options_of(options), Duration(timeout),
                                     std::move(handler));
  });
}

void muster_store_get_async(muster_store* store, muster_view key, int64_t timeout,
                            muster_on_bytes done, void* user, muster_call** call) {
  begin<std::string>("get", done, user, call, [&](Handler<std::string> handler) {
    return store_of(store).get_async(bytes_of(key, "key"), Duration(timeout), std::move(handler));
  });
}

void muster_store_take_async(muster_store* store, muster_view key, int64_t timeout,
                             muster_on_bytes done, void* user, muster_call** call) {
  begin<std::string>("take", done, user, call, [&](Handler<std::string> handler) {
    return store_of(store).take_async(bytes_of(key, "key"), Duration(timeout), std::move(handler));
  });
}

void muster_store_add_async(muster_store* store, muster_view key, int64_t delta, int64_t timeout,
                            muster_on_number done, void* user, muster_call** call) {
  begin<std::int64_t>("add", done, user, call, [&](Handler<std::int64_t> handler) {
    return store_of(store).add_async(bytes_of(key, "key"), delta, Duration(timeout),
                                     std::move(handler));
  });
}

void muster_store_compare_set_async(muster_store* store, muster_view key,
                                    const muster_view* expected, muster_view desired, int64_t ttl,
                                    int64_t timeout, muster_on_compared done, void* user,
                                    muster_call** call) {
  begin<Compared>("compare_set", done, user, call, [&](Handler<Compared> handler) {
    return store_of(store).compare_set_async(
        bytes_of(key, "key"), muster::c::bytes_or_none(expected, "expected"),
        bytes_of(desired, "desired"), {time_or_none(ttl)}, Duration(timeout), std::move(handler));
  });
}

void muster_store_append_async(muster_store* store, muster_view key, muster_view suffix,
                               int64_t timeout, muster_on_count done, void* user,
                               muster_call** call) {
  begin<std::uint64_t>("append", done, user, call, [&](Handler<std::uint64_t> handler) {
    return store_of(store).append_async(bytes_of(key, "key"), bytes_of(suffix, "suffix"),
                                        Duration(timeout), std::move(handler));
  });
}

void muster_store_touch_async(muster_store* store, muster_view key, int64_t ttl, int64_t timeout,
                              muster_on_done done, void* user, muster_call** call) {
  begin<void>("touch", done, user, call, [&](Handler<void> handler) {
    return store_of(store).touch_async(bytes_of(key, "key"), time_or_none(ttl), Duration(timeout),
                                       std::move(handler));
  });
}

void muster_store_remove_async(muster_store* store, muster_view key, int64_t timeout,
                               muster_on_flag done, void* user, muster_call** call) {
  begin<bool>("remove", done, user, call, [&](Handler<bool> handler) {
    return store_of(store).remove_async(bytes_of(key, "key"), Duration(timeout),
                                        std::move(handler));
  });
}

void muster_store_exists_async(muster_store* store, muster_view key, int64_t timeout,
                               muster_on_flag done, void* user, muster_call** call) {
  begin<bool>("exists", done, user, call, [&](Handler<bool> handler) {
    return store_of(store).exists_async(bytes_of(key, "key"), Duration(timeout),
                                        std::move(handler));
  });
}

void muster_store_queue_push_async(muster_store* store, muster_view key, muster_view item,
                                   int64_t timeout, muster_on_count done, void* user,
                                   muster_call** call) {
  begin<std::uint64_t>("queue_push", done, user, call, [&](Handler<std::uint64_t> handler) {
    return store_of(store).queue_push_async(bytes_of(key, "key"), bytes_of(item, "item"),
                                            Duration(timeout), std::move(handler));
  });
}

void muster_store_queue_pop_async(muster_store* store, muster_view key, int64_t timeout,
                                  muster_on_bytes done, void* user, muster_call** call) {
  begin<std::string>("queue_pop", done, user, call, [&](Handler<std::string> handler) {
    return store_of(store).queue_pop_async(bytes_of(key, "key"), Duration(timeout),
                                           std::move(handler));
  });
}

void muster_store_queue_length_async(muster_store* store, muster_view key, int64_t timeout,
                                     muster_on_count done, void* user, muster_call** call) {
  begin<std::uint64_t>("queue_length", done, user, call, [&](Handler<std::uint64_t> handler) {
    return store_of(store).queue_length_async(bytes_of(key, "key"), Duration(timeout),
                                              std::move(handler));
  });
}

void muster_store_multi_remove_async(muster_store* store, const muster_view* keys, size_t count,
                                     int64_t timeout, muster_on_count done, void* user,
                                     muster_call** call) {
  begin<std::uint64_t>("multi_remove", done, user, call, [&](Handler<std::uint64_t> handler) {
    return store_of(store).multi_remove_async(keys_of(keys, count), Duration(timeout),
                                              std::move(handler));
  });
}

void muster_store_multi_exists_async(muster_store* store, const muster_view* keys, size_t count,
                                     int64_t timeout, muster_on_flags done, void* user,
                                     muster_call** call) {
  begin<Flags>("multi_exists", done, user, call, [&](Handler<Flags> handler) {
    return store_of(store).multi_exists_async(keys_of(keys, count), Duration(timeout),
                                              std::move(handler));
  });
}

void muster_store_wait_async(muster_store* store, const muster_view* keys, size_t count,
                             int64_t timeout, muster_on_done done, void* user, muster_call** call) {
  begin<void>("wait", done, user, call, [&](Handler<void> handler) {
    return store_of(store).wait_async(keys_of(keys, count), Duration(timeout), std::move(handler));
  });
}

void muster_store_multi_get_async(muster_store* store, const muster_view* keys, size_t count,
                                  int64_t timeout, muster_on_list done, void* user,
                                  muster_call** call) {
  begin<Values>("multi_get", done, user, call, [&](Handler<Values> handler) {
    return store_of(store).multi_get_async(keys_of(keys, count), Duration(timeout),
                                           std::move(handler));
  });
}

void muster_store_multi_set_async(muster_store* store, const muster_entry* entries, size_t count,
                                  int64_t ttl, int64_t timeout, muster_on_done done, void* user,
                                  muster_call** call) {
  begin<void>("multi_set", done, user, call, [&](Handler<void> handler) {
    return store_of(store).multi_set_async(entries_of(entries, count), {time_or_none(ttl)},
                                           Duration(timeout), std::move(handler));
  });
}

void muster_store_list_async(muster_store* store, muster_view prefix, uint64_t cursor,
                             int64_t timeout, muster_on_page done, void* user, muster_call** call) {
  begin<KeyPage>("list", done, user, call, [&](Handler<KeyPage> handler) {
    return store_of(store).list_async(bytes_of(prefix, "prefix"), cursor, Duration(timeout),
                                      std::move(handler));
  });
}

void muster_store_report_dead_async(muster_store* store, const char* process_id, const char* reason,
                                    int64_t timeout, muster_on_done done, void* user,
                                    muster_call** call) {
  begin<void>("report_dead", done, user, call, [&](Handler<void> handler) {
    return store_of(store).report_dead_async(muster::c::process_id_of(process_id),
                                             muster::c::text_or_none(reason), Duration(timeout),
                                             std::move(handler));
  });
}

void muster_store_drop_namespace_async(muster_store* store, const char* name, int64_t timeout,
                                       muster_on_count done, void* user, muster_call** call) {
  begin<std::uint64_t>("drop_namespace", done, user, call, [&](Handler<std::uint64_t> handler) {
    return store_of(store).drop_namespace_async(text_of(name, "name"), Duration(timeout),
                                                std::move(handler));
  });
}
