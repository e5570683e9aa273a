#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const int64_t patience = 30 * INT64_C(1000000);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;

void check_that(bool holds, const char* text, const char* file, int line) {
  if (holds) return;
  fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
  exit(1);
}

void must_work(muster_error* error, const char* text, const char* file, int line) {
  if (error == NULL) return;
  fprintf(stderr, "%s:%d: %s: %s\n%s\n", file, line, text, error->message, error->json);
  exit(1);
}

void must_fail(muster_error* error, int code, const char* part, const char* text, const char* file,
               int line) {
  if (error == NULL) {
    fprintf(stderr, "%s:%d: %s works, and should not\n", file, line, text);
    exit(1);
  }
  const bool is_meant = error->code == code && (part == NULL || strstr(error->json, part) != NULL);
  if (!is_meant) {
    fprintf(stderr, "%s:%d: %s: expected %d %s: %s\n%s\n", file, line, text, code,
            part == NULL ? "" : part, error->message, error->json);
    exit(1);
  }
  check_that(error->size == sizeof(muster_error), "an error has its size", file, line);
  check_that(strstr(error->json, error->name) != NULL, "its document has its name", file, line);
  muster_error_free(error);
}

bool has_text(muster_view view, const char* text) {
  return view.size == strlen(text) && (view.size == 0 || memcmp(view.data, text, view.size) == 0);
}

bool are_text(muster_bytes* bytes, const char* text) {
  const muster_view view = muster_bytes_view(bytes);
  const bool is_ended = bytes != NULL && ((const char*)view.data)[view.size] == 0;
  const bool is_same = is_ended && has_text(view, text);
  muster_bytes_free(bytes);
  return is_same;
}

bool is_element(const muster_list* list, size_t index, const char* text) {
  muster_view element;
  return muster_list_at(list, index, &element) && has_text(element, text);
}

static result* begin_result(void* user, muster_error* error) {
  pthread_mutex_lock(&mutex);
  result* const told_result = user;
  told_result->error = error;
  ++told_result->times;
  return told_result;
}

static void end_result(result* result) {
  result->is_done = true;
  pthread_cond_broadcast(&told);
  pthread_mutex_unlock(&mutex);
}

void on_done(void* user, muster_error* error) { end_result(begin_result(user, error)); }

#define CALLBACK(function, type, field)                        \
  void function(void* user, muster_error* error, type field) { \
    result* const to = begin_result(user, error);              \
    to->field = field;                                         \
    end_result(to);                                            \
  }

CALLBACK(on_flag, bool, flag)
CALLBACK(on_number, int64_t, number)
CALLBACK(on_count, uint64_t, count)
CALLBACK(on_bytes, muster_bytes*, bytes)
CALLBACK(on_list, muster_list*, list)
CALLBACK(on_page, muster_page*, page)
CALLBACK(on_delivery, muster_delivery*, delivery)
CALLBACK(on_ranks, muster_ranks*, ranks)
CALLBACK(on_recovered, muster_recovered*, recovered)
CALLBACK(on_store, muster_store*, store)
CALLBACK(on_group, muster_group*, group)

void on_flags(void* user, muster_error* error, const bool* flags, size_t count) {
  result* const to = begin_result(user, error);
  to->count = count;
  for (size_t index = 0; index < count && index < 4; ++index) to->flags[index] = flags[index];
  end_result(to);
}

void on_compared(void* user, muster_error* error, bool applied, muster_bytes* current) {
  result* const to = begin_result(user, error);
  to->flag = applied;
  to->bytes = current;
  end_result(to);
}

void on_object(void* user, muster_error* error, muster_bytes* object, uint64_t sequence) {
  result* const to = begin_result(user, error);
  to->bytes = object;
  to->count = sequence;
  end_result(to);
}

muster_error* awaited(result* result) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 30;
  pthread_mutex_lock(&mutex);
  while (!result->is_done) CHECK(pthread_cond_timedwait(&told, &mutex, &until) == 0);
  CHECK(result->times == 1);
  pthread_mutex_unlock(&mutex);
  return result->error;
}

bool is_told(result* result) {
  pthread_mutex_lock(&mutex);
  const bool is_done = result->is_done;
  pthread_mutex_unlock(&mutex);
  return is_done;
}

/// Starts a program that ends with this one, and reads its first line.
static pid_t start(char* const* command, char* line, int line_bytes) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(command[0], command);
    _exit(127);
  }
  CHECK(pid > 0);
  close(ends[1]);
  FILE* const output = fdopen(ends[0], "r");
  CHECK(output != NULL && fgets(line, line_bytes, output) != NULL);
  line[strcspn(line, "\n")] = 0;
  fclose(output);
  return pid;
}

server start_server(const char* argument, const char* value) {
  char line[256];
  char* command[] = {
      getenv("MUSTERD"), (char*)"--listen", (char*)"127.0.0.1:0", (char*)"--log-level",
      (char*)"warning",  (char*)argument,   (char*)value,         NULL};
  server started;
  started.pid = start(command, line, sizeof(line));
  const char* const last = strrchr(line, ' ');
  snprintf(started.address, sizeof(started.address), "%.100s", last == NULL ? line : last + 1);
  return started;
}

static void end(pid_t pid, int signal_number) {
  kill(pid, signal_number);
  while (waitpid(pid, NULL, 0) == -1 && errno == EINTR) {
  }
}

void stop_server(server* server) { end(server->pid, SIGTERM); }

member start_member(const server* server, const char* name_space, const char* group, int rank,
                    int world_size) {
  char line[256];
  char numbers[2][16];
  snprintf(numbers[0], sizeof(numbers[0]), "%d", rank);
  snprintf(numbers[1], sizeof(numbers[1]), "%d", world_size);
  char* command[] = {(char*)"/proc/self/exe",
                     (char*)"member",
                     (char*)server->address,
                     (char*)name_space,
                     (char*)group,
                     numbers[0],
                     numbers[1],
                     NULL};
  member started;
  started.pid = start(command, line, sizeof(line));
  snprintf(started.process_id, sizeof(started.process_id), "%.60s", line);
  return started;
}

void kill_member(member* member) { end(member->pid, SIGKILL); }

int be_member(char** arguments) {
  server at = {0};
  snprintf(at.address, sizeof(at.address), "%.100s", arguments[0]);
  muster_store* const store = connected(&at, arguments[1]);
  printf("%s\n", muster_store_process_id(store));
  fflush(stdout);
  muster_group* group;
  MUST(muster_group_create(store, arguments[2], atoi(arguments[3]), atoi(arguments[4]), NULL,
                           &group));
  muster_bytes* object;
  const int64_t forever = 3600 * INT64_C(1000000);
  muster_error_free(muster_group_recv(group, 0, MUSTER_CODEC_RAW, 0, forever, &object, NULL));
  return 0;
}

muster_store* connected(const server* server, const char* name_space) {
  muster_store_options options = MUSTER_INIT(muster_store_options);
  options.name_space = name_space;
  options.label = "in C";
  options.timeout = patience;
  muster_store* store = NULL;
  MUST(muster_store_connect(server->address, &options, patience, &store));
  return store;
}

typedef struct rank_of_group {
  const server* server;
  const char* name_space;
  int rank;
  int world_size;
  group_part part;
  pthread_t thread;
} rank_of_group;

static void* run_rank(void* argument) {
  const rank_of_group* const mine = argument;
  muster_store* const store = connected(mine->server, mine->name_space);
  muster_group_options options = MUSTER_INIT(muster_group_options);
  options.timeout = patience;
  muster_group* group;
  MUST(muster_group_create(store, "group", mine->rank, mine->world_size, &options, &group));
  muster_store_free(store);
  mine->part(group);
  muster_group_free(group);
  return NULL;
}

void in_group(const server* server, const char* name_space, int world_size, group_part part) {
  rank_of_group ranks[8];
  CHECK(world_size <= 8);
  for (int rank = 0; rank < world_size; ++rank) {
    ranks[rank] = (rank_of_group){server, name_space, rank, world_size, part, 0};
    CHECK(pthread_create(&ranks[rank].thread, NULL, run_rank, &ranks[rank]) == 0);
  }
  for (int rank = 0; rank < world_size; ++rank) {
    CHECK(pthread_join(ranks[rank].thread, NULL) == 0);
  }
}
