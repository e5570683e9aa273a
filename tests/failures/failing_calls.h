#pragma once

#include <cstdint>
#include <string>

// A program that links failing_calls.cpp can have its n-th allocation or socket call fail, as if
// the system had refused it.

namespace muster::test {

enum class Fails : std::uint8_t {
  nothing,
  allocation,        ///< operator new: no memory
  no_memory,         ///< socket calls: ENOMEM, ENOBUFS
  no_descriptor,     ///< calls that make a descriptor: EMFILE
  connection_reset,  ///< ECONNRESET; ECONNABORTED of accept
  interrupted,       ///< EINTR
  one_byte,          ///< reads and writes take one byte
  openssl,           ///< what OpenSSL allocates: no memory
};

struct FailurePlan {
  Fails what = Fails::nothing;
  std::uint64_t which = 0;  ///< counted from 1; 0: all of them (one_byte only)
  std::uint64_t in_a_row = 1;
};

/// Counts from now on, in all threads that are not exempt, and lets the planned one fail.
void begin_failing(FailurePlan plan);

struct Failed {
  std::uint64_t seen_count = 0;  ///< of calls that could have failed
  bool has_failed = false;
  std::string where;  ///< the failed call, and from where it was made
};
Failed end_failing();

/// Whether what OpenSSL asks for now is refused.
bool fails_in_openssl();

/// While it lives, what this thread calls is the test's own and does not count.
class Exempt {
 public:
  explicit Exempt(bool is_exempt = true);
  ~Exempt();
  Exempt(const Exempt&) = delete;
  Exempt& operator=(const Exempt&) = delete;

 private:
  bool before_;
};

/// "allocation:17:1", as MUSTER_TEST_FAILS takes it: then a program begins to fail by itself, and
/// says on its standard error at the end how many calls it has seen.
std::string text_of(FailurePlan plan);

}  // namespace muster::test
