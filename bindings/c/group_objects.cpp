#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "calls.h"
#include "muster/process_group.h"

// Streams and collectives, blocking.

using muster::Duration;
using muster::Rank;
using muster::StatelessProcessGroup;
using muster::Tag;
using muster::c::bytes_of;
using muster::c::give;
using muster::c::group_of;
using muster::c::guarded;
using muster::c::guarded_or;
using muster::c::needed;

muster_error* muster_group_send(muster_group* group, int destination, uint32_t codec,
                                muster_view object, uint64_t tag, int64_t timeout) {
  return guarded("send_obj", [&] {
    return give(group_of(group).send_bytes(Rank{destination}, codec, bytes_of(object, "object"),
                                           Tag{tag}, Duration(timeout)));
  });
}

muster_error* muster_group_recv(muster_group* group, int source, uint32_t codec, uint64_t tag,
                                int64_t timeout, muster_bytes** object, uint64_t* sequence) {
  return guarded("recv_obj", [&] {
    needed(object, "object");
    return give(group_of(group).recv_bytes(Rank{source}, codec, Tag{tag}, Duration(timeout)),
                object, sequence);
  });
}

muster_error* muster_group_recv_delivery(muster_group* group, int source, uint32_t codec,
                                         uint64_t tag, int64_t timeout,
                                         muster_delivery** delivery) {
  return guarded("recv_obj", [&] {
    needed(delivery, "delivery");
    return give(group_of(group).recv_delivery(Rank{source}, codec, Tag{tag}, Duration(timeout)),
                delivery);
  });
}

muster_view muster_delivery_view(const muster_delivery* delivery) {
  if (delivery == nullptr) return {nullptr, 0};
  if (delivery->accepted) {
    return {delivery->accepted->bytes.data(), delivery->accepted->bytes.size()};
  }
  const std::string_view bytes = delivery->delivery.bytes();
  return {bytes.data(), bytes.size()};
}

uint64_t muster_delivery_accept(muster_delivery* delivery) {
  return guarded_or<std::uint64_t>(0, [&]() -> std::uint64_t {
    if (delivery == nullptr) return 0;
    if (!delivery->accepted) delivery->accepted = delivery->delivery.accept();
    return delivery->accepted->sequence;
  });
}

void muster_delivery_free(muster_delivery* delivery) { delete delivery; }

muster_error* muster_group_expire_data(muster_group* group, int64_t older_than, int64_t timeout,
                                       uint64_t* dropped) {
  return guarded("expire_data", [&] {
    return give(group_of(group).expire_data(muster::c::time_or_none(older_than), Duration(timeout)),
                dropped);
  });
}

muster_error* muster_group_barrier(muster_group* group, int64_t timeout,
                                   muster_ranks** unconfirmed) {
  return guarded("barrier",
                 [&] { return give(group_of(group).barrier(Duration(timeout)), unconfirmed); });
}

muster_error* muster_group_broadcast(muster_group* group, uint32_t codec, muster_view object,
                                     int root, int64_t timeout, muster_bytes** received) {
  return guarded("broadcast_obj", [&] {
    needed(received, "received");
    return give(group_of(group).broadcast_bytes(bytes_of(object, "object"), codec, Rank{root},
                                                Duration(timeout)),
                received);
  });
}

muster_error* muster_group_all_gather(muster_group* group, uint32_t codec, muster_view object,
                                      int64_t timeout, muster_list** objects) {
  return guarded("all_gather_obj", [&] {
    needed(objects, "objects");
    return give(
        group_of(group).all_gather_bytes(bytes_of(object, "object"), codec, Duration(timeout)),
        objects);
  });
}

muster_error* muster_group_gather(muster_group* group, uint32_t codec, muster_view object, int root,
                                  int64_t timeout, muster_list** objects) {
  return guarded("gather_obj", [&] {
    needed(objects, "objects");
    return give(group_of(group).gather_bytes(bytes_of(object, "object"), codec, Rank{root},
                                             Duration(timeout)),
                objects);
  });
}

muster_error* muster_group_scatter(muster_group* group, uint32_t codec, const muster_view* objects,
                                   size_t count, int root, int64_t timeout,
                                   muster_bytes** received) {
  return guarded("scatter_obj", [&] {
    needed(received, "received");
    auto& caller = group_of(group);
    const std::vector<std::string> owned =
        muster::c::objects_of(objects, caller.rank() == root ? count : 0);
    return give(caller.scatter_bytes(owned, codec, Rank{root}, Duration(timeout)), received);
  });
}
