#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "muster/c.h"

// What the tests in C share: checks that end the program, results of calls in their callback form,
// servers, other processes, and ranks as threads.

#define CHECK(condition) check_that((condition), #condition, __FILE__, __LINE__)
/// The call works.
#define MUST(call) must_work((call), #call, __FILE__, __LINE__)
/// It fails with that code; the error is freed.
#define FAILS(code, call) must_fail((call), (code), NULL, #call, __FILE__, __LINE__)
/// The same, and its document has that text.
#define FAILS_WITH(code, text, call) must_fail((call), (code), (text), #call, __FILE__, __LINE__)

void check_that(bool holds, const char* text, const char* file, int line);
void must_work(muster_error* error, const char* text, const char* file, int line);
void must_fail(muster_error* error, int code, const char* part, const char* text, const char* file,
               int line);

/// Long enough for everything, in microseconds.
extern const int64_t patience;

bool has_text(muster_view view, const char* text);
/// And frees them.
bool are_text(muster_bytes* bytes, const char* text);
bool is_element(const muster_list* list, size_t index, const char* text);

/// What `done` got. Its functions are callbacks whose `user` it is.
typedef struct result {
  bool is_done;
  int times;
  muster_error* error;
  bool flag;
  int64_t number;
  uint64_t count;
  muster_bytes* bytes;
  muster_list* list;
  muster_page* page;
  muster_ranks* ranks;
  muster_delivery* delivery;
  muster_recovered* recovered;
  muster_store* store;
  muster_group* group;
  bool flags[4];
} result;

void on_done(void* user, muster_error* error);
void on_flag(void* user, muster_error* error, bool flag);
void on_number(void* user, muster_error* error, int64_t number);
void on_count(void* user, muster_error* error, uint64_t count);
void on_bytes(void* user, muster_error* error, muster_bytes* bytes);
void on_list(void* user, muster_error* error, muster_list* list);
void on_page(void* user, muster_error* error, muster_page* page);
void on_flags(void* user, muster_error* error, const bool* flags, size_t count);
void on_compared(void* user, muster_error* error, bool applied, muster_bytes* current);
void on_object(void* user, muster_error* error, muster_bytes* object, uint64_t sequence);
void on_delivery(void* user, muster_error* error, muster_delivery* delivery);
void on_ranks(void* user, muster_error* error, muster_ranks* ranks);
void on_recovered(void* user, muster_error* error, muster_recovered* outcome);
void on_store(void* user, muster_error* error, muster_store* store);
void on_group(void* user, muster_error* error, muster_group* group);

/// Waits until `done` was called; its error is the caller's.
muster_error* awaited(result* result);
/// Whether it was called; does not wait.
bool is_told(result* result);

/// A musterd that ends with this process; `argument`s may be NULL.
typedef struct server {
  pid_t pid;
  char address[128];
} server;
server start_server(const char* argument, const char* value);
void stop_server(server* server);

/// This program again, as a member of a group that does nothing; it ends with this process.
typedef struct member {
  pid_t pid;
  char process_id[64];
} member;
member start_member(const server* server, const char* name_space, const char* group, int rank,
                    int world_size);
void kill_member(member* member);
/// What that process does.
int be_member(char** arguments);

muster_store* connected(const server* server, const char* name_space);

/// Runs `part` for each rank of a group, in a thread and on a store each.
typedef void (*group_part)(muster_group* group);
void in_group(const server* server, const char* name_space, int world_size, group_part part);

void test_arguments(const server* server);
void test_sizes(const server* server);
void test_store(const server* server);
void test_store_async(const server* server);
void test_sessions(const server* server);
void test_groups(const server* server);
void test_groups_async(const server* server);
void test_losses(const server* server);
void test_doubts(const server* server);
void test_threads(const server* server);
void test_inspect(const server* server);
void test_operate(const server* server);
void test_nccl(const server* server);
void test_credentials(void);
