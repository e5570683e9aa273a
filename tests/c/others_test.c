#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

// I/O threads and where callbacks run, what a server tells, ids of NCCL, and credentials.

static muster_view key(const char* text) { return muster_text(text); }

typedef struct place {
  pthread_t thread;
  muster_error* error;
  muster_store* store;
  bool is_told;
} place;

/// A blocking call is refused where callbacks run inline.
static void note_place(void* user, muster_error* error, bool flag) {
  place* const here = user;
  (void)flag;
  here->thread = pthread_self();
  here->error =
      error != NULL ? error : muster_store_touch(here->store, key("k"), 0, MUSTER_DEFAULT_TIMEOUT);
  here->is_told = true;
}

static int lines = 0;
static void count_line(void* user, int level, const char* line) {
  CHECK(user == &lines && level >= 0 && level <= 3 && strchr(line, '\n') == NULL);
  __atomic_add_fetch(&lines, 1, __ATOMIC_SEQ_CST);
}

static void check_host_loop(const server* server) {
  muster_io_thread* const loop = muster_io_thread_create_for_host_loop();
  muster_store_options options = MUSTER_INIT(muster_store_options);
  options.io_thread = loop;
  options.name_space = "threads";
  result connect = {0};
  muster_store_connect_async(server->address, &options, patience, on_store, &connect, NULL);
  struct pollfd waits = {.fd = muster_io_thread_descriptor(loop), .events = POLLIN};
  while (!is_told(&connect)) {
    CHECK(poll(&waits, 1, 30000) == 1);
    muster_io_thread_serve_ready(loop);
  }
  MUST(awaited(&connect));
  place here = {.store = connect.store};
  muster_store_set_async(connect.store, key("k"), key("v"), NULL, patience, note_place, &here,
                         NULL);
  while (!here.is_told) {
    CHECK(poll(&waits, 1, 30000) == 1);
    muster_io_thread_serve_ready(loop);
  }
  CHECK(pthread_equal(here.thread, pthread_self()));
  FAILS(MUSTER_WOULD_DEADLOCK, here.error);
  muster_store_free(connect.store);
  muster_io_thread_finish(loop);
  muster_io_thread_free(loop);
}

typedef struct queue {
  void (*work)(void* argument);
  void* argument;
  result queued;
} queue;

static void put(void* user, void (*work)(void* argument), void* argument) {
  queue* const to = user;
  to->work = work;
  to->argument = argument;
  on_done(&to->queued, NULL);
}

static void check_shared_thread(const server* server) {
  muster_io_thread* const thread = muster_io_thread_create("in C");
  CHECK(thread != NULL && muster_io_thread_descriptor(thread) == -1);
  CHECK(!muster_io_thread_serve_ready(thread));
  muster_store_options options = MUSTER_INIT(muster_store_options);
  options.io_thread = thread;
  options.name_space = "threads";
  options.busy_poll = 100;
  queue queue = {0};
  options.executor = put;
  options.executor_user = &queue;
  options.logger = count_line;
  options.logger_user = &lines;
  muster_store *queued = NULL, *inline_store = NULL;
  MUST(muster_store_connect(server->address, &options, patience, &queued));
  options.executor = NULL;
  options.inline_handlers = true;
  MUST(muster_store_connect(server->address, &options, patience, &inline_store));
  muster_io_thread_free(thread);

  result set = {0};
  muster_store_set_async(queued, key("k"), key("v"), NULL, patience, on_flag, &set, NULL);
  MUST(awaited(&queue.queued));
  CHECK(!is_told(&set));
  queue.work(queue.argument);
  MUST(awaited(&set));
  result deadlock = {0};
  place here = {.store = inline_store};
  muster_store_set_async(inline_store, key("k"), key("v"), NULL, patience, note_place, &here, NULL);
  // It is told after the one before, since both are inline.
  muster_store_exists_async(inline_store, key("k"), patience, on_flag, &deadlock, NULL);
  MUST(awaited(&deadlock));
  FAILS(MUSTER_WOULD_DEADLOCK, here.error);
  CHECK(!pthread_equal(here.thread, pthread_self()));
  muster_store_free(queued);
  muster_store_free(inline_store);
}

void test_threads(const server* server) {
  check_host_loop(server);
  check_shared_thread(server);
  CHECK(__atomic_load_n(&lines, __ATOMIC_SEQ_CST) >= 0);
}

static void check_document(muster_store* store, int what, const char* name, const char* part) {
  muster_bytes* json = NULL;
  MUST(muster_inspect(store, what, name, patience, &json));
  const char* const text = muster_bytes_view(json).data;
  if (strstr(text, part) == NULL) fprintf(stderr, "no %s in %s\n", part, text);
  CHECK(strstr(text, part) != NULL && strchr(text, '\n') == NULL);
  muster_bytes_free(json);
}

void test_inspect(const server* server) {
  muster_store* const store = connected(server, "inspect");
  muster_group* group = NULL;
  MUST(muster_group_create(store, "group", 0, 1, NULL, &group));
  MUST(muster_group_send(group, 0, MUSTER_CODEC_RAW, key("object"), 5, patience));
  result waits = {0};
  muster_store_get_async(store, key("awaited"), patience, on_bytes, &waits, NULL);
  result behind = {0};
  muster_store_exists_async(store, key("k"), patience, on_flag, &behind, NULL);
  MUST(awaited(&behind));  // so the server has the one before

  check_document(store, MUSTER_INSPECT_STATUS, NULL, "\"namespace\":\"inspect\"");
  check_document(store, MUSTER_INSPECT_SESSIONS, NULL, muster_store_process_id(store));
  check_document(store, MUSTER_INSPECT_GROUPS, NULL, "\"world_size\":1");
  check_document(store, MUSTER_INSPECT_WAITERS, NULL, "awaited");
  check_document(store, MUSTER_INSPECT_OBJECTS, "group/group/", "\"value_bytes\":6");
  check_document(store, MUSTER_INSPECT_OBJECTS, "none", "[]");
  check_document(store, MUSTER_INSPECT_NAMESPACES, NULL, "\"namespace\":\"inspect\"");
  check_document(store, MUSTER_INSPECT_GROUP, "group", "\"explanation\":[");
  check_document(store, MUSTER_INSPECT_IDENTITY, NULL, "\"identity\":null");
  check_document(store, MUSTER_INSPECT_HISTORY, NULL, "\"what\":\"formed\"");
  check_document(store, MUSTER_INSPECT_HISTORY, "no such group", "\"events\":[]");
  muster_bytes* json = NULL;
  FAILS(MUSTER_NOT_FOUND, muster_inspect(store, MUSTER_INSPECT_GROUP, "none", patience, &json));
  MUST(muster_group_members(group, patience, &json));
  CHECK(strstr(muster_bytes_view(json).data, "\"state\":\"live\"") != NULL);
  muster_bytes_free(json);
  muster_group_free(group);
  muster_store_free(store);
  FAILS(MUSTER_CLOSED, awaited(&waits));
}

void test_nccl(const server* server) {
  muster_store* const store = connected(server, "nccl");
  muster_group* group = NULL;
  MUST(muster_group_create(store, "group", 0, 1, NULL, &group));
  muster_nccl_id given, id;
  memset(given.bytes, 'm', sizeof(given.bytes));
  memset(id.bytes, 0, sizeof(id.bytes));
  MUST(muster_nccl_unique_id(group, patience, &given, NULL, &id));
  CHECK(memcmp(&given, &id, sizeof(id)) == 0 && !muster_nccl_give_up(&given));
  FAILS(MUSTER_LIBRARY_MISSING,
        muster_nccl_unique_id(group, patience, NULL, "/nowhere/libnccl.so.2", &id));
  FAILS(MUSTER_INVALID_ARGUMENT,
        muster_nccl_unique_id(group, MUSTER_DEFAULT_TIMEOUT, NULL, NULL, &id));
  const char* const library = getenv("NCCL_DOUBLE");
  MUST(muster_nccl_unique_id(group, patience, NULL, library, &id));
  CHECK(memcmp(&given, &id, sizeof(id)) != 0);
  CHECK(muster_nccl_give_up(&id) && !muster_nccl_give_up(&id));
  muster_group_free(group);
  muster_store_free(store);
}

void test_credentials(void) {
  if (getenv("WITHOUT_TLS") != NULL) {
    printf("credentials: skipped, since there is no TLS\n");
    return;
  }
  char folder[] = "/tmp/muster-c-XXXXXX";
  char path[64];
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof(path), "%s/key", folder);
  FILE* const file = fopen(path, "w");
  CHECK(file != NULL && chmod(path, S_IRUSR | S_IWUSR) == 0);
  fputs("team/trainer ZXhhbXBsZSAxLCBldmVyeWJvZHkga25vd3MgdGhpcy4= * all\n", file);
  fclose(file);

  server server = start_server("--credentials", path);
  muster_store_options options = MUSTER_INIT(muster_store_options);
  options.credential_file = path;
  muster_store* store = NULL;
  MUST(muster_store_connect(server.address, &options, patience, &store));
  check_document(store, MUSTER_INSPECT_IDENTITY, NULL, "\"identity\":\"team/trainer\"");
  const char* const tenants[] = {"other", "third"};
  muster_group_options group_options = MUSTER_INIT(muster_group_options);
  group_options.other_tenants = tenants;
  group_options.other_tenants_count = 2;
  muster_group* group = NULL;
  MUST(muster_group_create(store, "group", 0, 1, &group_options, &group));
  muster_group_free(group);
  muster_store_free(store);
  stop_server(&server);
  CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}
