#include "nccl/doubles/rank_process.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "nccl/heir.h"
#include "support/await.h"

namespace muster::test {
namespace {

constexpr const char* rank_process_mark = "--nccl-rank";

NcclDouble::UniqueId id_of(const std::string& digits) {
  NcclDouble::UniqueId id{};
  for (std::size_t i = 0; 2 * i + 2 <= digits.size() && i < id.internal.size(); ++i) {
    id.internal[i] = static_cast<char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  }
  return id;
}

void say(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
}
void say(int number) { say(std::to_string(number)); }

/// The asynchronous error once it is not this one, as a program looks that has other work, too.
int error_other_than(int unwanted, const void* communicator) {
  int result = unwanted;
  while ((result = async_error(communicator)) == unwanted) let_pass(std::chrono::milliseconds(1));
  return result;
}
int settled(const void* communicator) { return error_other_than(7, communicator); }

void wait_for_signal() {
  sigset_t waited;
  ::sigemptyset(&waited);
  ::sigaddset(&waited, SIGUSR1);
  int taken = 0;
  ::sigwait(&waited, &taken);
}

class Rank {
 public:
  Rank(const char* rank, const char* count, const char* id)
      : rank_(std::atoi(rank)), rank_count_(std::atoi(count)), id_(id_of(id)) {}

  int step(const std::string& name) {
    if (name == "mint") return mint();
    if (name == "init") {
      const auto config = nonblocking_config();
      return say(nccl().init(&communicator_, rank_count_, id_, rank_, &config)), 0;
    }
    if (name == "settle_error") return say(error_other_than(0, communicator_)), 0;
    if (name == "settle") return say(settled(communicator_)), 0;
    if (name == "start" || name == "reduce") return reduce(name);
    if (name == "finalize") {
      nccl().finalize(communicator_);
      return say(settled(communicator_)), 0;
    }
    if (name == "destroy") return say(nccl().destroy(communicator_)), 0;
    if (name == "abort") return say(nccl().abort(communicator_)), 0;
    if (name == "synchronize") return say(cuda().synchronize_stream(stream_)), 0;
    if (name == "unknown") return nccl().abort(this);
    if (name == "heir") return leave_heir() ? 0 : 2;
    if (name != "hold") return 2;
    say("held");
    wait_for_signal();
    return 0;
  }

 private:
  int mint() {
    id_ = new_id();
    say(hex_of(id_));
    return 0;
  }

  int reduce(const std::string& name) {
    if (stream_ == nullptr && cuda().create_stream(&stream_, 1) != 0) return 2;
    value_ = rank_ + 1;
    const int result =
        nccl().all_reduce(&value_, &value_, 1, int32_type, 0, communicator_, stream_);
    if (!begins(result)) return 2;
    const int launched = settled(communicator_);
    if (name == "start") return 0;
    if (launched != 0) return 2;
    cuda().synchronize_stream(stream_);
    say(value_);
    return 0;
  }

  int rank_;
  int rank_count_;
  NcclDouble::UniqueId id_;
  void* communicator_ = nullptr;
  void* stream_ = nullptr;
  int value_ = 0;
};

}  // namespace

std::string hex_of(const NcclDouble::UniqueId& id) {
  std::string digits;
  for (const char byte : id.internal) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    digits += two;
  }
  return digits;
}

int run_as_rank(int argc, char** argv) {
  if (const int code = run_as_heir(argc, argv); code >= 0) return code;
  if (argc < 5 || std::strcmp(argv[1], rank_process_mark) != 0) return -1;
  ::alarm(60);  // whatever happens, it does not stay
  sigset_t held;
  ::sigemptyset(&held);
  ::sigaddset(&held, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &held, nullptr);  // before there are threads
  const CurrentDevice device(0);
  Rank rank(argv[2], argv[3], argv[4]);
  for (int i = 5; i < argc; ++i) {
    if (const int failed = rank.step(argv[i])) return failed;
  }
  return 0;
}

Process::Options rank_process(const RankProcess& wanted) {
  Process::Options options;
  options.take_errors = false;
  options.command = {"/proc/self/exe", rank_process_mark, std::to_string(wanted.rank),
                     std::to_string(wanted.rank_count), wanted.id};
  options.command.insert(options.command.end(), wanted.steps.begin(), wanted.steps.end());
  options.environment = wanted.environment;
  options.environment.emplace("NCCL_HOSTID", "rank " + std::to_string(wanted.rank));
  return options;
}

}  // namespace muster::test
