// Two ranks meet, exchange an object and pass a barrier, in C11. Run it twice:
//
//     c_quickstart 0 2 29400 &
//     c_quickstart 1 2 29400

#include <muster/c.h>
#include <stdio.h>
#include <stdlib.h>

// Says what failed, at which ranks, and whether it may have happened all the same.
static int failed(muster_error* error) {
  fprintf(stderr, "%s\n", error->message);
  if (error->happened == MUSTER_HAPPENED_MAYBE) fprintf(stderr, "look before you repeat it\n");
  muster_error_free(error);
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int rank = atoi(argv[1]);
  const int world_size = atoi(argv[2]);
  const uint16_t port = (uint16_t)atoi(argv[3]);

  // Rank 0 serves; everybody joins. NULL stands for all defaults.
  muster_group* group;
  muster_error* error =
      muster_group_create_hosted("127.0.0.1", port, rank, world_size, NULL, &group);
  if (error != NULL) return failed(error);

  // Every rank gets rank 0's object. It is bytes; the codec says what they are.
  muster_bytes* config;
  error = muster_group_broadcast(group, MUSTER_CODEC_RAW, muster_text("model=muster-7b"), 0,
                                 MUSTER_DEFAULT_TIMEOUT, &config);
  if (error != NULL) return failed(error);
  muster_list* ranks;
  error = muster_group_all_gather(group, MUSTER_CODEC_JSON, muster_text(argv[1]),
                                  MUSTER_DEFAULT_TIMEOUT, &ranks);
  if (error != NULL) return failed(error);
  const int64_t five_seconds = 5 * 1000 * 1000;  // times are microseconds
  error = muster_group_barrier(group, five_seconds, NULL);
  if (error != NULL) return failed(error);

  // A zero follows the bytes of a result.
  printf("rank %d of %zu: %s\n", rank, muster_list_count(ranks),
         (const char*)muster_bytes_view(config).data);
  muster_list_free(ranks);
  muster_bytes_free(config);
  muster_group_free(group);
  return 0;
}
