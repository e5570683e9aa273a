#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

namespace nccl_double {

struct Counts {
  std::atomic<long> communicators{0};
  std::atomic<long> threads{0};
  std::atomic<long> descriptors{0};
  std::atomic<long> ids{0};
  std::atomic<long> collectives{0};
  std::atomic<long> stuck{0};
  std::atomic<long> red_ops{0};
  std::atomic<long> made_red_ops{0};
  std::atomic<long> leaked_threads{0};
  std::atomic<long> leaked_descriptors{0};
};
Counts& counts();

/// While it lives, one more is counted.
class Counted {
 public:
  explicit Counted(std::atomic<long>& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<long>& count_;
};

/// What ncclGetLastError says; one for the process.
void set_last_error(const std::string& text);
const char* last_error();
void set_last_mismatch(const std::string& text);
const char* last_mismatch();

}  // namespace nccl_double
