#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "support.h"

// What ends calls and groups: members that are killed, interrupts, servers that are stopped, and
// groups that one of the ranks hosts.

enum { codec = MUSTER_CODEC_RAW };

static muster_error* reported_dead(muster_store* store, const char* process_id) {
  result report = {0};
  muster_store_report_dead_async(store, process_id, "killed by a test", patience, on_done, &report,
                                 NULL);
  return awaited(&report);
}

/// The member is killed: this rank hears of it, and goes on alone.
static void check_killed_member(const server* server) {
  muster_store_options options = MUSTER_INIT(muster_store_options);
  options.role = MUSTER_ROLE_SUPERVISOR;
  options.name_space = "losses";
  muster_store* store = NULL;
  MUST(muster_store_connect(server->address, &options, patience, &store));
  member lost = start_member(server, "losses", "group", 1, 2);
  result on_loss = {0}, watched = {0}, unwatched = {0};
  muster_group_options group_options = MUSTER_INIT(muster_group_options);
  group_options.on_loss = on_done;
  group_options.user = &on_loss;
  muster_group* group = NULL;
  MUST(muster_group_create(store, "group", 0, 2, &group_options, &group));
  muster_watch* const watch = muster_group_watch(group, on_done, &watched);
  muster_watch* const ended = muster_group_watch(group, on_done, &unwatched);
  CHECK(watch != NULL && ended != NULL);
  muster_watch_free(ended);

  kill_member(&lost);
  MUST(reported_dead(store, lost.process_id));
  FAILS_WITH(MUSTER_RANK_LOST, "\"cause\":\"reported\"", awaited(&watched));
  FAILS_WITH(MUSTER_RANK_LOST, lost.process_id, awaited(&on_loss));
  CHECK(!is_told(&unwatched));
  muster_error* error = muster_group_barrier(group, patience, NULL);
  CHECK(error != NULL && strcmp(error->name, "rank_lost") == 0);
  CHECK(error->happened == MUSTER_HAPPENED_NO && strstr(error->message, "rank 1") != NULL);
  muster_error_free(error);
  FAILS(MUSTER_NOT_FOUND, muster_store_report_dead(store, lost.process_id, "again", patience));

  muster_watch_free(watch);  // it would be told of the regroup, too
  muster_regroup_options regroup = MUSTER_INIT(muster_regroup_options);
  muster_group* next = NULL;
  MUST(muster_group_regroup(group, &regroup, patience, &next));
  CHECK(muster_group_world_size(next) == 1);
  FAILS(MUSTER_STALE_EPOCH, muster_group_barrier(group, patience, NULL));
  muster_group_free(group);
  MUST(muster_group_barrier(next, patience, NULL));
  muster_group_free(next);
  muster_store_free(store);
}

static void check_interrupt(muster_group* group) {
  muster_list* list = NULL;
  result watched = {0}, interrupt = {0};
  if (muster_group_rank(group) == 0) {
    MUST(muster_group_barrier(group, patience, NULL));
    MUST(muster_group_interrupt(group, "something comes first", patience));
    MUST(muster_group_barrier(group, patience, NULL));
    muster_group_interrupt_async(group, "once more", patience, on_done, &interrupt, NULL);
    MUST(awaited(&interrupt));
  } else {
    muster_watch* const watch = muster_group_watch(group, on_done, &watched);
    MUST(muster_group_barrier(group, patience, NULL));
    FAILS_WITH(MUSTER_INTERRUPTED, "something comes first",
               muster_group_all_gather(group, codec, muster_text(""), patience, &list));
    FAILS(MUSTER_INTERRUPTED, awaited(&watched));
    muster_watch_free(watch);
    MUST(muster_group_barrier(group, patience, NULL));
    FAILS_WITH(MUSTER_INTERRUPTED, "once more",
               muster_group_all_gather(group, codec, muster_text(""), patience, &list));
  }
}

void test_losses(const server* server) {
  check_killed_member(server);
  in_group(server, "interrupt", 2, check_interrupt);
}

/// The server does not answer: nobody knows whether it has done what it was asked.
static void check_doubt(const server* stopped, muster_store* store, muster_group* group) {
  const int64_t soon = 100000;
  muster_list* list = NULL;
  kill(stopped->pid, SIGSTOP);
  muster_error* error =
      muster_store_set(store, muster_text("k"), muster_text("v"), NULL, soon, NULL);
  CHECK(error != NULL && error->code == MUSTER_OUTCOME_UNKNOWN);
  CHECK(error->happened == MUSTER_HAPPENED_MAYBE);
  CHECK(strstr(error->json, "\"happened\":\"maybe\"") != NULL);
  muster_error_free(error);
  error = muster_group_all_gather(group, codec, muster_text("mine"), soon, &list);
  CHECK(error != NULL && error->happened == MUSTER_HAPPENED_MAYBE);
  CHECK(strstr(error->json, "\"round\":1") != NULL);
  muster_error_free(error);
  kill(stopped->pid, SIGCONT);
}

/// The round whose outcome nobody knew has failed: the other rank has not come.
static void check_recovered_error(void) {
  server server = start_server(NULL, NULL);
  muster_store* const store = connected(&server, "");
  member other = start_member(&server, "", "pair", 1, 2);
  muster_group* group = NULL;
  MUST(muster_group_create(store, "pair", 0, 2, NULL, &group));
  check_doubt(&server, store, group);
  muster_recovered* outcome = NULL;
  MUST(muster_group_recover(group, patience, &outcome));
  CHECK(muster_recovered_round(outcome) == 1 && muster_recovered_called(outcome));
  const muster_error* const error = muster_recovered_error(outcome);
  CHECK(error != NULL && error->code == MUSTER_TIMED_OUT);
  CHECK(strstr(error->json, "\"ranks_at_fault\":[1]") != NULL);
  muster_recovered_free(outcome);
  muster_group_free(group);
  muster_store_free(store);
  kill_member(&other);
  stop_server(&server);
}

void test_doubts(const server* shared) {
  (void)shared;
  check_recovered_error();
  server server = start_server(NULL, NULL);
  muster_store* const store = connected(&server, "");
  muster_group* group = NULL;
  MUST(muster_group_create(store, "group", 0, 1, NULL, &group));
  check_doubt(&server, store, group);
  muster_list* list = NULL;
  FAILS(MUSTER_OUTCOME_UNKNOWN,
        muster_group_all_gather(group, codec, muster_text("other"), patience, &list));
  muster_recovered* outcome = NULL;
  MUST(muster_group_recover(group, patience, &outcome));
  CHECK(muster_recovered_round(outcome) == 1 && muster_recovered_called(outcome));
  CHECK(muster_recovered_error(outcome) == NULL);
  CHECK(is_element(muster_recovered_values(outcome), 0, "mine"));
  muster_recovered_free(outcome);
  MUST(muster_group_all_gather(group, codec, muster_text("other"), patience, &list));
  CHECK(is_element(list, 0, "other"));
  muster_list_free(list);
  muster_group_free(group);
  muster_store_free(store);
  stop_server(&server);
}

typedef struct hosted_rank {
  int rank;
  uint16_t port;
  int socket;
} hosted_rank;

static void* run_hosted(void* argument) {
  const hosted_rank* const mine = argument;
  muster_group_options group_options = MUSTER_INIT(muster_group_options);
  group_options.timeout = patience;
  group_options.data_expiration = patience;
  group_options.info = muster_text(mine->rank == 0 ? "host" : "guest");
  muster_store_options store_options = MUSTER_INIT(muster_store_options);
  store_options.label = "hosted";
  muster_hosted_options options = MUSTER_INIT(muster_hosted_options);
  options.name = "hosted";
  options.host_server = MUSTER_HOST_ALWAYS;
  options.group = &group_options;
  options.store = &store_options;
  options.has_listening_socket = mine->rank == 0;
  options.listening_socket = mine->socket;
  muster_group* group = NULL;
  MUST(muster_group_create_hosted("127.0.0.1", mine->port, mine->rank, 2, &options, &group));
  muster_bytes* members = NULL;
  MUST(muster_group_members(group, patience, &members));
  CHECK(strstr(muster_bytes_view(members).data, "\"info\":\"guest\"") != NULL);
  muster_bytes_free(members);
  MUST(muster_group_barrier(group, patience, NULL));
  uint64_t remaining = 77;
  MUST(muster_group_close(group, patience, &remaining));
  CHECK(remaining == 0);
  muster_group_free(group);
  return NULL;
}

static void check_hosted(void) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof(address);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(bind(listening, (struct sockaddr*)&address, size) == 0 && listen(listening, 16) == 0);
  CHECK(getsockname(listening, (struct sockaddr*)&address, &size) == 0);
  hosted_rank ranks[] = {{0, ntohs(address.sin_port), listening}, {1, ntohs(address.sin_port), -1}};
  pthread_t threads[2];
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(pthread_create(&threads[rank], NULL, run_hosted, &ranks[rank]) == 0);
  }
  for (int rank = 0; rank < 2; ++rank) CHECK(pthread_join(threads[rank], NULL) == 0);
}

static void check_dropped_namespace(const server* server) {
  muster_store* const used = connected(server, "dropped");
  MUST(muster_store_set(used, muster_text("k"), muster_text("v"), NULL, patience, NULL));
  muster_store_options options = MUSTER_INIT(muster_store_options);
  options.role = MUSTER_ROLE_SUPERVISOR;
  muster_store* supervisor = NULL;
  MUST(muster_store_connect(server->address, &options, patience, &supervisor));
  FAILS(MUSTER_BUSY, muster_store_drop_namespace(supervisor, "dropped", patience, NULL));
  FAILS(MUSTER_PERMISSION_DENIED, muster_store_drop_namespace(used, "other", patience, NULL));
  muster_store_free(used);
  // Its goodbye may come later than this.
  uint64_t keys = 0;
  muster_error* error = NULL;
  do {
    muster_error_free(error);
    error = muster_store_drop_namespace(supervisor, "dropped", patience, &keys);
  } while (error != NULL && error->code == MUSTER_BUSY);
  MUST(error);
  CHECK(keys == 1);
  result drop = {0};
  muster_store_drop_namespace_async(supervisor, "dropped", patience, on_count, &drop, NULL);
  FAILS(MUSTER_NOT_FOUND, awaited(&drop));
  muster_store_free(supervisor);
}

/// The server restarts: the session ends, and another one begins.
static void check_restarted_server(void) {
  server first = start_server(NULL, NULL);
  result ended = {0}, reopened = {0};
  muster_store_options options = MUSTER_INIT(muster_store_options);
  options.on_session_end = on_done;
  options.on_session_end_user = &ended;
  options.timeout = patience;
  muster_store* store = NULL;
  MUST(muster_store_connect(first.address, &options, patience, &store));
  MUST(muster_store_reopen(store, patience));  // nothing to do
  const uint64_t before = muster_store_incarnation(store);
  stop_server(&first);
  server second = start_server("--listen", first.address);
  FAILS(MUSTER_SERVER_RESTARTED, awaited(&ended));
  muster_bytes* bytes = NULL;
  FAILS(MUSTER_SERVER_RESTARTED, muster_store_get(store, muster_text("k"), 0, &bytes));
  muster_store_reopen_async(store, patience, on_done, &reopened, NULL);
  MUST(awaited(&reopened));
  CHECK(muster_store_incarnation(store) != before);
  MUST(muster_store_set(store, muster_text("k"), muster_text("v"), NULL, patience, NULL));
  muster_store_close(store);
  FAILS(MUSTER_CLOSED, muster_store_get(store, muster_text("k"), 0, &bytes));
  muster_store_free(store);
  stop_server(&second);
}

void test_sessions(const server* server) {
  check_hosted();
  check_dropped_namespace(server);
  check_restarted_server();
}
