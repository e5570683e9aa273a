#include "net/cores.h"

#include <sched.h>

#include <doctest/doctest.h>

using muster::net::cores_of_quota;
using muster::net::usable_cores;

TEST_CASE("a quota is as many cores as it keeps busy") {
  CHECK(cores_of_quota("200000 100000\n") == 2);
  CHECK(cores_of_quota("250000 100000\n") == 2);
  CHECK(cores_of_quota("50000 100000\n") == 1);
  CHECK(cores_of_quota("200000\n 100000\n") == 2);  // of two files, in version 1
}

TEST_CASE("no quota is none") {
  CHECK_FALSE(cores_of_quota("max 100000\n"));
  CHECK_FALSE(cores_of_quota("-1\n 100000\n"));
  CHECK_FALSE(cores_of_quota(" "));
  CHECK_FALSE(cores_of_quota(""));
  CHECK_FALSE(cores_of_quota("100000 0\n"));
  CHECK_FALSE(cores_of_quota("100000"));
}

TEST_CASE("a process that may run on one core has one") {
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof(before), &before) == 0);
  CHECK(usable_cores() >= 1);
  CHECK(usable_cores() <= static_cast<std::size_t>(CPU_COUNT(&before)));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  REQUIRE(::sched_setaffinity(0, sizeof(one), &one) == 0);
  CHECK(usable_cores() == 1);
  CHECK(::sched_setaffinity(0, sizeof(before), &before) == 0);
}
