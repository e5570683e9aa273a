#include <cstdint>
#include <string>

#include "calls.h"
#include "muster/process_group.h"
#include "options.h"

// Groups: making them, what ends them, and what their handles know.

using muster::Duration;
using muster::Handler;
using muster::StatelessProcessGroup;
using muster::c::begin;
using muster::c::give;
using muster::c::group_of;
using muster::c::guarded;
using muster::c::guarded_or;
using muster::c::needed;
using muster::c::text_of;

muster_error* muster_group_create(muster_store* store, const char* name, int rank, int world_size,
                                  const muster_group_options* options, muster_group** group) {
  return guarded("create", [&] {
    needed(group, "group");
    return give(
        StatelessProcessGroup::create(muster::c::store_of(store), text_of(name, "name"), rank,
                                      world_size, muster::c::group_options_of(options)),
        group);
  });
}

void muster_group_create_async(muster_store* store, const char* name, int rank, int world_size,
                               const muster_group_options* options, muster_on_group done,
                               void* user, muster_call** call) {
  using Group = StatelessProcessGroup;
  begin<Group>("create", done, user, call, [&](Handler<Group> handler) {
    return Group::create_async(muster::c::store_of(store), text_of(name, "name"), rank, world_size,
                               muster::c::group_options_of(options), std::move(handler));
  });
}

muster_error* muster_group_create_hosted(const char* host, uint16_t port, int rank, int world_size,
                                         const muster_hosted_options* options,
                                         muster_group** group) {
  return guarded("create", [&] {
    needed(group, "group");
    const std::string_view address = text_of(host, "host");
    auto given = muster::c::hosted_options_of(options);
    const Duration expiration = given.data_expiration;
    const Duration timeout = given.timeout;
    return give(StatelessProcessGroup::create(address, port, rank, world_size, expiration, timeout,
                                              std::move(given)),
                group);
  });
}

void muster_group_free(muster_group* group) { delete group; }

muster_error* muster_group_close(muster_group* group, int64_t linger, uint64_t* remaining) {
  return guarded("close", [&] { return give(group_of(group).close(Duration(linger)), remaining); });
}

muster_error* muster_group_leave(muster_group* group, int64_t timeout) {
  return guarded("leave", [&] { return give(group_of(group).leave(Duration(timeout))); });
}

void muster_group_leave_async(muster_group* group, int64_t timeout, muster_on_done done, void* user,
                              muster_call** call) {
  begin<void>("leave", done, user, call, [&](Handler<void> handler) {
    return group_of(group).leave_async(Duration(timeout), std::move(handler));
  });
}

void muster_group_cancel(muster_group* group) {
  if (group != nullptr) group->group.cancel();
}

int muster_group_rank(const muster_group* group) {
  return group == nullptr ? -1 : group->group.rank();
}

int muster_group_world_size(const muster_group* group) {
  return group == nullptr ? 0 : group->group.world_size();
}

uint64_t muster_group_epoch(const muster_group* group) {
  return group == nullptr ? 0 : group->group.epoch();
}

const char* muster_group_name(const muster_group* group) {
  return group == nullptr ? "" : group->group.name().c_str();
}

void muster_group_counters_of(const muster_group* group, muster_group_counters* counters) {
  if (group == nullptr) return;
  const muster::GroupCounters from = group->group.counters();
  muster_group_counters known{};
  known.rounds = from.rounds;
  known.objects_sent = from.objects_sent;
  known.objects_received = from.objects_received;
  muster::c::fill(counters, known);
}

muster_store* muster_group_store(const muster_group* group) {
  return guarded_or<muster_store*>(nullptr, [&]() -> muster_store* {
    if (group == nullptr) return nullptr;
    return new muster_store(group->group.store().share());
  });
}

// When ranks are lost.

muster_error* muster_group_interrupt(muster_group* group, const char* reason, int64_t timeout) {
  return guarded("interrupt", [&] {
    return give(group_of(group).interrupt(muster::c::text_or_none(reason), Duration(timeout)));
  });
}

void muster_group_interrupt_async(muster_group* group, const char* reason, int64_t timeout,
                                  muster_on_done done, void* user, muster_call** call) {
  begin<void>("interrupt", done, user, call, [&](Handler<void> handler) {
    return group_of(group).interrupt_async(muster::c::text_or_none(reason), Duration(timeout),
                                           std::move(handler));
  });
}

muster_watch* muster_group_watch(muster_group* group, muster_on_done handler, void* user) {
  return guarded_or<muster_watch*>(nullptr, [&]() -> muster_watch* {
    if (group == nullptr || handler == nullptr) return nullptr;
    auto watch = std::make_unique<muster_watch>();
    watch->watch = group->group.watch(muster::c::event_of(handler, user));
    return watch.release();
  });
}

void muster_watch_free(muster_watch* watch) { delete watch; }

muster_error* muster_group_regroup(muster_group* group, const muster_regroup_options* options,
                                   int64_t timeout, muster_group** next) {
  return guarded("regroup", [&] {
    needed(next, "next");
    return give(group_of(group).regroup(muster::c::regroup_options_of(options), Duration(timeout)),
                next);
  });
}

void muster_group_regroup_async(muster_group* group, const muster_regroup_options* options,
                                int64_t timeout, muster_on_group done, void* user,
                                muster_call** call) {
  using Group = StatelessProcessGroup;
  begin<Group>("regroup", done, user, call, [&](Handler<Group> handler) {
    return group_of(group).regroup_async(muster::c::regroup_options_of(options), Duration(timeout),
                                         std::move(handler));
  });
}

muster_error* muster_group_recover(muster_group* group, int64_t timeout,
                                   muster_recovered** outcome) {
  return guarded("recover", [&] {
    needed(outcome, "outcome");
    return give(group_of(group).recover(Duration(timeout)), outcome);
  });
}

void muster_group_recover_async(muster_group* group, int64_t timeout, muster_on_recovered done,
                                void* user, muster_call** call) {
  using Outcome = muster::RecoveredRound;
  begin<Outcome>("recover", done, user, call, [&](Handler<Outcome> handler) {
    return group_of(group).recover_async(Duration(timeout), std::move(handler));
  });
}

uint64_t muster_recovered_round(const muster_recovered* outcome) {
  return outcome == nullptr ? 0 : outcome->round;
}

bool muster_recovered_called(const muster_recovered* outcome) {
  return outcome != nullptr && outcome->called;
}

const muster_error* muster_recovered_error(const muster_recovered* outcome) {
  return outcome == nullptr ? nullptr : outcome->error.get();
}

const muster_list* muster_recovered_values(const muster_recovered* outcome) {
  return outcome == nullptr ? nullptr : &outcome->values;
}

void muster_recovered_free(muster_recovered* outcome) { delete outcome; }
