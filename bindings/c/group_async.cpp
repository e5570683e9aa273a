#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "calls.h"
#include "muster/process_group.h"

// The callback forms of streams and collectives.

using muster::Delivery;
using muster::Duration;
using muster::Handler;
using muster::Rank;
using muster::ReceivedBytes;
using muster::StatelessProcessGroup;
using muster::Tag;
using muster::c::begin;
using muster::c::bytes_of;
using muster::c::group_of;
using muster::c::needed;

namespace {

using Objects = std::vector<std::string>;

}  // namespace

void muster_group_send_async(muster_group* group, int destination, uint32_t codec,
                             muster_view object, uint64_t tag, int64_t timeout, muster_on_done done,
                             void* user, muster_call** call) {
  begin<void>("send_obj", done, user, call, [&](Handler<void> handler) {
    return group_of(group).send_bytes_async(Rank{destination}, codec, bytes_of(object, "object"),
                                            Tag{tag}, Duration(timeout), std::move(handler));
  });
}

void muster_group_recv_async(muster_group* group, int source, uint32_t codec, uint64_t tag,
                             int64_t timeout, muster_on_object done, void* user,
                             muster_call** call) {
  begin<ReceivedBytes>("recv_obj", done, user, call, [&](Handler<ReceivedBytes> handler) {
    return group_of(group).recv_bytes_async(Rank{source}, codec, Tag{tag}, Duration(timeout),
                                            std::move(handler));
  });
}

void muster_group_recv_delivery_async(muster_group* group, int source, uint32_t codec, uint64_t tag,
                                      int64_t timeout, muster_on_delivery done, void* user,
                                      muster_call** call) {
  begin<Delivery>("recv_obj", done, user, call, [&](Handler<Delivery> handler) {
    return group_of(group).recv_delivery_async(Rank{source}, codec, Tag{tag}, Duration(timeout),
                                               std::move(handler));
  });
}

void muster_group_expire_data_async(muster_group* group, int64_t older_than, int64_t timeout,
                                    muster_on_count done, void* user, muster_call** call) {
  begin<std::uint64_t>("expire_data", done, user, call, [&](Handler<std::uint64_t> handler) {
    return group_of(group).expire_data_async(muster::c::time_or_none(older_than), Duration(timeout),
                                             std::move(handler));
  });
}

void muster_group_barrier_async(muster_group* group, int64_t timeout, muster_on_ranks done,
                                void* user, muster_call** call) {
  using Passed = muster::BarrierResult;
  begin<Passed>("barrier", done, user, call, [&](Handler<Passed> handler) {
    return group_of(group).barrier_async(Duration(timeout), std::move(handler));
  });
}

void muster_group_broadcast_async(muster_group* group, uint32_t codec, muster_view object, int root,
                                  int64_t timeout, muster_on_bytes done, void* user,
                                  muster_call** call) {
  begin<std::string>("broadcast_obj", done, user, call, [&](Handler<std::string> handler) {
    return group_of(group).broadcast_bytes_async(bytes_of(object, "object"), codec, Rank{root},
                                                 Duration(timeout), std::move(handler));
  });
}

void muster_group_all_gather_async(muster_group* group, uint32_t codec, muster_view object,
                                   int64_t timeout, muster_on_list done, void* user,
                                   muster_call** call) {
  begin<Objects>("all_gather_obj", done, user, call, [&](Handler<Objects> handler) {
    return group_of(group).all_gather_bytes_async(bytes_of(object, "object"), codec,
                                                  Duration(timeout), std::move(handler));
  });
}

void muster_group_gather_async(muster_group* group, uint32_t codec, muster_view object, int root,
                               int64_t timeout, muster_on_list done, void* user,
                               muster_call** call) {
  begin<Objects>("gather_obj", done, user, call, [&](Handler<Objects> handler) {
    return group_of(group).gather_bytes_async(bytes_of(object, "object"), codec, Rank{root},
                                              Duration(timeout), std::move(handler));
  });
}

void muster_group_scatter_async(muster_group* group, uint32_t codec, const muster_view* objects,
                                size_t count, int root, int64_t timeout, muster_on_bytes done,
                                void* user, muster_call** call) {
  begin<std::string>("scatter_obj", done, user, call, [&](Handler<std::string> handler) {
    auto& beginner = group_of(group);
    const Objects owned = muster::c::objects_of(objects, beginner.rank() == root ? count : 0);
    return beginner.scatter_bytes_async(owned, codec, Rank{root}, Duration(timeout),
                                        std::move(handler));
  });
}
