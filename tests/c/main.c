#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

// Every function of muster/c.h against musterd: MUSTERD says where that is, NCCL_DOUBLE where the
// tests' own libnccl is.

int main(int argc, char** argv) {
  if (argc == 7 && strcmp(argv[1], "member") == 0) return be_member(argv + 2);
  static const struct {
    const char* name;
    void (*test)(const server* server);
  } tests[] = {
      {"arguments", test_arguments}, {"sizes", test_sizes},
      {"store", test_store},         {"store_async", test_store_async},
      {"sessions", test_sessions},   {"groups", test_groups},
      {"losses", test_losses},       {"groups_async", test_groups_async},
      {"doubts", test_doubts},       {"threads", test_threads},
      {"inspect", test_inspect},     {"operate", test_operate},
      {"nccl", test_nccl},
  };
  server server = start_server(NULL, NULL);
  for (size_t index = 0; index < sizeof(tests) / sizeof(tests[0]); ++index) {
    if (argc > 1 && strcmp(argv[1], tests[index].name) != 0) continue;
    printf("%s\n", tests[index].name);
    fflush(stdout);
    tests[index].test(&server);
  }
  stop_server(&server);
  if (argc == 1 || strcmp(argv[1], "credentials") == 0) test_credentials();
  return 0;
}
