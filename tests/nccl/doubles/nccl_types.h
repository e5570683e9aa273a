#pragma once

#include <array>
#include <cstddef>

namespace nccl_double {

/// As nccl.h has them; its enumerations are ints.
enum Result : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};

constexpr int undefined_int = -2147483647 - 1;
constexpr int split_no_color = -1;
constexpr int shrink_abort = 1;

struct UniqueId {
  std::array<char, 128> internal;
};

/// ncclConfig_t of 2.28; fields that the double does nothing with are there for the size.
struct Config {
  std::size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
  int cga_cluster_size;
  int min_ctas;
  int max_ctas;
  const char* net_name;
  int split_share;
  int traffic_class;
  const char* comm_name;
  int collnet_enable;
  int cta_policy;
  int shrink_share;
  int nvls_ctas;
  int channels_per_net_peer;
  int nvlink_centric_sched;
};
constexpr unsigned config_magic = 0xcafebeef;

}  // namespace nccl_double
