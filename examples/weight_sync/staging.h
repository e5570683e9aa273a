#pragma once

#include <cstddef>
#include <memory>

#include "muster/nccl_functions.h"
#include "muster/result.h"

namespace weight_sync {

/// Two buffers that a communicator can use, so that one is filled or emptied while the other
/// travels.
class Staging {
 public:
  virtual ~Staging() = default;

  virtual void* at(int side) = 0;
  /// Whereon what travels in it is put; null: there are no streams.
  virtual muster::nccl::CudaStream stream(int side) = 0;
  /// Copies into the buffer, or out of it. Any thread.
  virtual muster::Result<void> fill(int side, const char* from, std::size_t bytes) = 0;
  virtual muster::Result<void> empty(int side, char* to, std::size_t bytes) = 0;
  /// Whether what was put on its stream is done, or was aborted.
  virtual muster::Result<bool> is_done(int side) = 0;
  /// Until it is, however long that takes: for whoever has no communicator to look after.
  virtual muster::Result<void> wait(int side) = 0;
};

/// In the host's memory.
std::unique_ptr<Staging> host_staging(std::size_t bytes);
/// In the memory of a CUDA device.
muster::Result<std::unique_ptr<Staging>> cuda_staging(int device, std::size_t bytes);

}  // namespace weight_sync
