#pragma once

#include <array>
#include <string>

namespace nccl_double {

using Uuid = std::array<unsigned char, 16>;

/// The device of the calling thread, as the CUDA runtime has it: that of the current context, else
/// the first.
struct OwnDevice {
  int device = 0;
  Uuid uuid{};
  std::string error;  ///< why there is none; empty: there is one
};
OwnDevice own_device();

/// Puts a function of the host into a stream; gives the driver's result. Only after own_device.
int launch_host_function(void* stream, void (*function)(void*), void* argument);

}  // namespace nccl_double
