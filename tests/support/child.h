#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include <doctest/doctest.h>

namespace muster::test {

/// Does it in a forked child, where no check of doctest can be.
///
/// returns  what the child found; -1: it did not end by itself
inline int in_child(const std::function<int()>& find) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(find());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace muster::test
