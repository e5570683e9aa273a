#define DOCTEST_CONFIG_IMPLEMENT
#include <dlfcn.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include <doctest/doctest.h>

#include "nccl/communicator_process.h"
#include "nccl/functions.h"

// On doubles where CUDA_DOUBLE and NCCL_DOUBLE name them, else on the libraries of this machine.

namespace {

constexpr int skipped = 77;

/// Why there is nothing to test on; "" if there is.
std::string lacking() {
  const auto cuda = muster::nccl_internal::load_cuda(std::getenv("CUDA_DOUBLE"));
  if (!cuda) return cuda.error().detail;
  int count = 0;
  if (const int result = cuda->init(0); result != 0) {
    return "cuInit gave " + std::to_string(result);
  }
  if (cuda->device_get_count(&count) != 0 || count == 0) return "the CUDA driver sees no device";
  const auto nccl = muster::nccl_internal::load_nccl(std::getenv("NCCL_DOUBLE"));
  return nccl ? "" : nccl.error().detail;
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("CUDA_DOUBLE", "libcuda.so.1", 0);
  ::setenv("NCCL_DOUBLE", "libnccl.so.2", 0);
  if (const int code = muster::test::run_as_communicator(argc, argv); code >= 0) return code;
  if (const std::string reason = lacking(); !reason.empty()) {
    std::cout << "skipped: there is no GPU to test on, or no NCCL: " << reason << std::endl;
    return skipped;
  }
  return doctest::Context(argc, argv).run();
}
