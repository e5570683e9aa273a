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
  void* context = nullptr;  ///< null: none was current
  std::string error;        ///< why there is none; empty: there is one
};
OwnDevice own_device();

/// Whether this is memory of a device.
bool is_device_memory(const void* memory);

/// Whether what is put on the stream goes into a graph.
bool is_captured(void* stream);

/// Puts a function of the host into a stream of that device; gives the driver's result.
int launch_host_function(const OwnDevice& own, void* stream, void (*function)(void*),
                         void* argument);

}  // namespace nccl_double
