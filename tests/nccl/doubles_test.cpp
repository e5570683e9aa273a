#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "nccl/doubles/rank_process.h"

// The doubles against what was measured of NCCL. Ranks are devices of this process, or processes
// that are this program again.

int main(int argc, char** argv) {
  const int code = muster::test::run_as_rank(argc, argv);
  return code >= 0 ? code : doctest::Context(argc, argv).run();
}
