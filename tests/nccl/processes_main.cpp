#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "nccl/communicator_process.h"

// Communicators of ranks that are processes: this program again.

int main(int argc, char** argv) {
  const int code = muster::test::run_as_communicator(argc, argv);
  return code >= 0 ? code : doctest::Context(argc, argv).run();
}
