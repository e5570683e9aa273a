#include <string.h>

#include "support.h"

// Groups whose ranks all go on: collectives, streams, and what a handle knows.

enum { codec = MUSTER_CODEC_RAW, own_codec = 256 };

static muster_view rank_text(int rank) {
  static const char* const texts[] = {"zero", "one", "two"};
  return muster_text(texts[rank]);
}

static void check_collectives(muster_group* group) {
  const int rank = muster_group_rank(group);
  muster_ranks* unconfirmed = NULL;
  MUST(muster_group_barrier(group, patience, &unconfirmed));
  CHECK(muster_ranks_count(unconfirmed) == 0 && muster_ranks_at(unconfirmed, 0) == -1);
  muster_ranks_free(unconfirmed);
  MUST(muster_group_barrier(group, MUSTER_DEFAULT_TIMEOUT, NULL));

  muster_bytes* bytes = NULL;
  MUST(muster_group_broadcast(group, codec, rank_text(rank), 2, patience, &bytes));
  CHECK(are_text(bytes, "two"));
  muster_list* list = NULL;
  MUST(muster_group_all_gather(group, MUSTER_CODEC_JSON, muster_text("{}"), patience, &list));
  CHECK(muster_list_count(list) == 3 && is_element(list, 2, "{}"));
  muster_list_free(list);
  MUST(muster_group_gather(group, own_codec, rank_text(rank), 1, patience, &list));
  CHECK(muster_list_count(list) == (rank == 1 ? 3 : 0));
  CHECK(rank != 1 || (is_element(list, 0, "zero") && is_element(list, 2, "two")));
  muster_list_free(list);
  const muster_view objects[] = {rank_text(2), rank_text(0), rank_text(1)};
  MUST(muster_group_scatter(group, codec, rank == 0 ? objects : NULL, 3, 0, patience, &bytes));
  CHECK(are_text(bytes, rank == 0 ? "two" : rank == 1 ? "zero" : "one"));
  FAILS(MUSTER_INVALID_ARGUMENT,
        muster_group_broadcast(group, codec, rank_text(0), 9, patience, &bytes));
}

/// Rank 0 sends to rank 1, which refuses the object once.
static void check_streams(muster_group* group) {
  const int rank = muster_group_rank(group);
  const uint64_t tag = 7;
  uint64_t sequence = 77;
  muster_bytes* bytes = NULL;
  if (rank == 0) {
    MUST(muster_group_send(group, 1, codec, muster_text("first"), tag, patience));
    MUST(muster_group_send(group, 1, codec, muster_text("second"), tag, patience));
  }
  if (rank == 1) {
    muster_delivery* delivery = NULL;
    MUST(muster_group_recv_delivery(group, 0, codec, tag, patience, &delivery));
    CHECK(has_text(muster_delivery_view(delivery), "first"));
    FAILS(MUSTER_BUSY, muster_group_recv(group, 0, codec, tag, patience, &bytes, NULL));
    muster_delivery_free(delivery);  // it is refused
    MUST(muster_group_recv_delivery(group, 0, codec, tag, patience, &delivery));
    CHECK(muster_delivery_accept(delivery) == 0 && muster_delivery_accept(delivery) == 0);
    CHECK(has_text(muster_delivery_view(delivery), "first"));
    muster_delivery_free(delivery);
    MUST(muster_group_recv(group, 0, codec, tag, patience, &bytes, &sequence));
    CHECK(sequence == 1 && are_text(bytes, "second"));
    FAILS_WITH(MUSTER_NOT_FOUND,
               "\"stream\":{\"source\":0,\"destination\":1,\"tag\":7,\"sequence\":2}",
               muster_group_recv(group, 0, codec, tag, 0, &bytes, NULL));
  }
  if (rank == 2) {
    MUST(muster_group_send(group, 2, own_codec, muster_text("own"), 0, patience));
    FAILS_WITH(MUSTER_CODEC_MISMATCH, "\"actual\":256",
               muster_group_recv(group, 2, codec, 0, patience, &bytes, NULL));
    uint64_t dropped = 77;
    MUST(muster_group_expire_data(group, 3600 * INT64_C(1000000), patience, &dropped));
    CHECK(dropped == 0);
    MUST(muster_group_expire_data(group, 1, patience, &dropped));
    CHECK(dropped == 1);
  }
}

static void check_handle(muster_group* group) {
  muster_group_counters counters = MUSTER_INIT(muster_group_counters);
  muster_group_counters_of(group, &counters);
  CHECK(counters.rounds == 6);
  CHECK(counters.objects_sent == (uint64_t)(muster_group_rank(group) == 0 ? 2 : 1) ||
        muster_group_rank(group) == 1);
  CHECK(counters.objects_received == (uint64_t)(muster_group_rank(group) == 1 ? 2 : 0));
  CHECK(muster_group_world_size(group) == 3 && muster_group_epoch(group) > 0);
  CHECK(strcmp(muster_group_name(group), "group") == 0);
  muster_store* const store = muster_group_store(group);
  MUST(muster_store_set(store, rank_text(muster_group_rank(group)), muster_text(""), NULL, patience,
                        NULL));
  MUST(muster_group_barrier(group, patience, NULL));
  uint64_t remaining = 77;
  MUST(muster_group_close(group, patience, &remaining));
  CHECK(remaining == 0 && muster_group_rank(group) == -1);
  FAILS(MUSTER_CLOSED, muster_group_barrier(group, patience, NULL));
  // A store that a group was on outlives it.
  MUST(muster_store_set(store, muster_text("k"), muster_text(""), NULL, patience, NULL));
  muster_store_free(store);
}

static void check_rank(muster_group* group) {
  check_collectives(group);
  check_streams(group);
  check_handle(group);
}

void test_groups(const server* server) { in_group(server, "groups", 3, check_rank); }

static void check_collectives_async(muster_group* group) {
  const int rank = muster_group_rank(group);
  result barrier = {0}, broadcast = {0}, all_gather = {0}, gather = {0}, scatter = {0};
  muster_group_barrier_async(group, patience, on_ranks, &barrier, NULL);
  MUST(awaited(&barrier));
  CHECK(muster_ranks_count(barrier.ranks) == 0);
  muster_ranks_free(barrier.ranks);
  muster_group_broadcast_async(group, codec, rank_text(rank), 1, patience, on_bytes, &broadcast,
                               NULL);
  MUST(awaited(&broadcast));
  CHECK(are_text(broadcast.bytes, "one"));
  muster_group_all_gather_async(group, codec, rank_text(rank), patience, on_list, &all_gather,
                                NULL);
  MUST(awaited(&all_gather));
  CHECK(is_element(all_gather.list, 0, "zero") && is_element(all_gather.list, 1, "one"));
  muster_list_free(all_gather.list);
  muster_group_gather_async(group, codec, rank_text(rank), 0, patience, on_list, &gather, NULL);
  MUST(awaited(&gather));
  CHECK(muster_list_count(gather.list) == (rank == 0 ? 2 : 0));
  muster_list_free(gather.list);
  const muster_view objects[] = {rank_text(2), rank_text(0)};
  muster_group_scatter_async(group, codec, rank == 1 ? objects : NULL, 2, 1, patience, on_bytes,
                             &scatter, NULL);
  MUST(awaited(&scatter));
  CHECK(are_text(scatter.bytes, rank == 0 ? "two" : "zero"));
}

static void check_streams_async(muster_group* group) {
  const int rank = muster_group_rank(group);
  const int other = 1 - rank;
  result send = {0}, delivery = {0}, recv = {0}, expire = {0}, members = {0};
  muster_group_send_async(group, other, codec, rank_text(rank), 3, patience, on_done, &send, NULL);
  MUST(awaited(&send));
  muster_group_recv_delivery_async(group, other, codec, 3, patience, on_delivery, &delivery, NULL);
  MUST(awaited(&delivery));
  CHECK(has_text(muster_delivery_view(delivery.delivery), other == 0 ? "zero" : "one"));
  muster_delivery_free(delivery.delivery);
  muster_group_recv_async(group, other, codec, 3, patience, on_object, &recv, NULL);
  MUST(awaited(&recv));
  CHECK(recv.count == 0 && are_text(recv.bytes, other == 0 ? "zero" : "one"));
  muster_group_expire_data_async(group, 0, patience, on_count, &expire, NULL);
  MUST(awaited(&expire));
  CHECK(expire.count == 0);
  muster_group_members_async(group, patience, on_bytes, &members, NULL);
  MUST(awaited(&members));
  CHECK(strstr(muster_bytes_view(members.bytes).data, "\"label\":\"in C\"") != NULL);
  muster_bytes_free(members.bytes);

  // Rank 1 leaves when rank 0 waits for it no more.
  MUST(muster_group_barrier(group, patience, NULL));
  result pending = {0}, leave = {0};
  if (rank == 0) {
    muster_group_recv_async(group, 1, codec, 9, patience, on_object, &pending, NULL);
    muster_group_cancel(group);
    FAILS(MUSTER_CANCELLED, awaited(&pending));
    CHECK(pending.bytes == NULL);
  }
  MUST(muster_group_barrier(group, patience, NULL));
  if (rank == 1) {
    muster_group_leave_async(group, patience, on_done, &leave, NULL);
    MUST(awaited(&leave));
  } else {
    FAILS_WITH(MUSTER_RANK_LEFT, "\"ranks_at_fault\":[1]",
               muster_group_barrier(group, patience, NULL));
    MUST(muster_group_leave(group, patience));
  }
}

static void check_rank_async(muster_group* group) {
  check_collectives_async(group);
  check_streams_async(group);
}

void test_groups_async(const server* server) {
  in_group(server, "groups_async", 2, check_rank_async);
  muster_store* const store = connected(server, "groups_async");
  result create = {0}, regroup = {0}, recover = {0};
  muster_group_create_async(store, "alone", 0, 1, NULL, on_group, &create, NULL);
  MUST(awaited(&create));
  muster_group_recover_async(create.group, patience, on_recovered, &recover, NULL);
  MUST(awaited(&recover));
  CHECK(muster_recovered_round(recover.recovered) == 0);  // none is in doubt
  muster_recovered_free(recover.recovered);
  muster_group_regroup_async(create.group, NULL, patience, on_group, &regroup, NULL);
  MUST(awaited(&regroup));
  CHECK(muster_group_epoch(regroup.group) > muster_group_epoch(create.group));
  muster_group_free(create.group);
  muster_group_free(regroup.group);
  muster_store_free(store);
}
