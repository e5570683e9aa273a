// A host of muster-c on a machine without libnccl: a group that it hosts itself, and what an id of
// NCCL lacks there. C11.

#include <muster/c.h>
#include <stdio.h>
#include <unistd.h>

static int failed(muster_error* error) {
  fprintf(stderr, "%s\n", error->message);
  muster_error_free(error);
  return 1;
}

int main(void) {
  char address[64];
  snprintf(address, sizeof(address), "unix:@muster-host-%d", (int)getpid());
  muster_group* group = NULL;
  muster_error* error = muster_group_create_hosted(address, 0, 0, 1, NULL, &group);
  if (error != NULL) return failed(error);
  const int64_t timeout = 5 * 1000 * 1000;
  error = muster_group_barrier(group, timeout, NULL);
  if (error != NULL) return failed(error);
  muster_nccl_id id;
  error = muster_nccl_unique_id(group, timeout, NULL, "/nowhere/libnccl.so.2", &id);
  if (error == NULL || error->code != MUSTER_LIBRARY_MISSING) return 1;
  printf("%s\n", error->message);
  muster_error_free(error);
  muster_group_free(group);
  return 0;
}
