#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "muster/c.h"

// A program that is linked with no library of Muster: it loads one, finds its functions by their
// version, and makes a round trip. LIBRARY is where the library is; the server is a group's own.

static void* library;

/// Sets a pointer to a function, whatever its type.
static int find(const char* name, void* function, size_t size) {
  void* const found = dlvsym(library, name, "MUSTER_C_1");
  if (found == NULL) fprintf(stderr, "%s: %s\n", name, dlerror());
  memcpy(function, &found, size);
  return found != NULL;
}

#define FIND(name) find("muster_" #name, &name, sizeof(name))

int main(int argc, char** argv) {
  if (argc != 2 || (library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) == NULL) {
    fprintf(stderr, "%s\n", argc != 2 ? "load_test LIBRARY" : dlerror());
    return 2;
  }
  const char* (*version)(void);
  muster_view (*text)(const char*);
  muster_error* (*group_create_hosted)(const char*, uint16_t, int, int,
                                       const muster_hosted_options*, muster_group**);
  muster_store* (*group_store)(const muster_group*);
  muster_error* (*store_set)(muster_store*, muster_view, muster_view, const muster_set_options*,
                             int64_t, bool*);
  muster_error* (*store_get)(muster_store*, muster_view, int64_t, muster_bytes**);
  muster_error* (*cancel_drain)(muster_store*, int64_t);
  muster_view (*bytes_view)(const muster_bytes*);
  void (*bytes_free)(muster_bytes*);
  void (*error_free)(muster_error*);
  void (*store_free)(muster_store*);
  void (*group_free)(muster_group*);
  if (!FIND(version) || !FIND(text) || !FIND(group_create_hosted) || !FIND(group_store) ||
      !FIND(store_set) || !FIND(store_get) || !FIND(cancel_drain) || !FIND(bytes_view) ||
      !FIND(bytes_free) || !FIND(error_free) || !FIND(store_free) || !FIND(group_free)) {
    return 1;
  }
  if (dlvsym(library, "muster_version", "MUSTER_C_2") != NULL) return 1;

  char address[64];
  snprintf(address, sizeof(address), "unix:@muster-load-test-%d", (int)getpid());
  muster_group* group = NULL;
  muster_error* error = group_create_hosted(address, 0, 0, 1, NULL, &group);
  if (error != NULL) {
    fprintf(stderr, "%s\n", error->message);
    return 1;
  }
  muster_store* const store = group_store(group);
  const int64_t timeout = 30 * INT64_C(1000000);
  muster_bytes* value = NULL;
  error = store_set(store, text("k"), text("v"), NULL, timeout, NULL);
  if (error == NULL) error = store_get(store, text("k"), timeout, &value);
  if (error != NULL) return 1;
  const int is_same = bytes_view(value).size == 1 && memcmp(bytes_view(value).data, "v", 2) == 0;
  bytes_free(value);
  error = store_get(store, text("none"), 0, &value);
  const int is_absent = error != NULL && error->code == MUSTER_NOT_FOUND;
  error_free(error);
  error = cancel_drain(store, timeout);
  const int is_denied = error != NULL && error->code == MUSTER_PERMISSION_DENIED;
  error_free(error);
  store_free(store);
  group_free(group);
  printf("Muster %s\n", version());
  return is_same && is_absent && is_denied ? 0 : 1;
}
