#include "nccl/communicator_process.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "muster/nccl.h"
#include "muster/process_group.h"
#include "muster/server.h"
#include "muster/store.h"
#include "nccl/doubles/loaded.h"
#include "nccl/functions.h"
#include "nccl/heir.h"
#include "support/await.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* mark_of_rank = "--communicator-rank";
constexpr const char* mark_of_server = "--communicator-server";
constexpr int steps_at = 6;
constexpr std::ptrdiff_t separators_min = 5;  ///< in a line of `say`
constexpr Duration patience_of_calls = 20s;

void wait_for_signal() {
  sigset_t waited;
  ::sigemptyset(&waited);
  ::sigaddset(&waited, SIGUSR1);
  int taken = 0;
  ::sigwait(&waited, &taken);
}

void befall(const std::string& what) {
  if (what == "exit") ::_exit(0);
  if (what == "kill") ::raise(SIGKILL);
  if (what == "stop") ::raise(SIGSTOP);
  if (what == "hang" || what == "stay") {
    for (;;) ::pause();
  }
}

/// What happens when the warm-up gives its memory back: NCCL is done then, and nobody told of it.
struct EndOfWarmUp {
  std::string what;
  std::atomic<bool> is_due{false};
};
EndOfWarmUp& end_of_warm_up() {
  static EndOfWarmUp end;
  return end;
}
int free_at_end(std::uintptr_t address) {
  if (!end_of_warm_up().is_due.exchange(false)) return cuda().free(address);
  const std::string& what = end_of_warm_up().what;
  if (what == "hold") {
    std::cout << "held|ok||0|0|" << std::endl;
    wait_for_signal();
  }
  befall(what);
  return cuda().free(address);
}

/// Those of the library.
nccl::Functions& functions_loaded() {
  static nccl::Functions functions;
  return functions;
}
/// A child is exec'd before anybody could keep the id's socket from it.
int make_id_and_heir(nccl::UniqueId* id) {
  const int result = functions_loaded().get_unique_id(id);
  return leave_heir() ? result : -1;
}

std::string text_of(const std::vector<RankRange>& ranges) {
  std::string text;
  for (const RankRange range : ranges) {
    if (!text.empty()) text += ",";
    text += std::to_string(range.first);
    if (range.last != range.first) text += "-" + std::to_string(range.last);
  }
  return text;
}

/// A device's memory for one number, and a stream.
class Number {
 public:
  Number() {
    cuda().allocate(&memory_, sizeof(std::int32_t));
    cuda().create_stream(&stream_, 1);
  }
  void set(std::int32_t value) { cuda().copy_in(memory_, &value, sizeof value); }
  std::int32_t get() const {
    std::int32_t value = 0;
    cuda().copy_out(&value, memory_, sizeof value);
    return value;
  }
  void* at() const { return reinterpret_cast<void*>(memory_); }
  void* stream() const { return stream_; }

 private:
  const CurrentDevice current_{0};
  DevicePointer memory_ = 0;
  void* stream_ = nullptr;
};

class Rank {
 public:
  Rank(const char* server, std::string group, int rank, int world_size)
      : store_(connected(server)), name_(std::move(group)), rank_(rank), world_size_(world_size) {
    options_.warm_up = false;  // if it is wanted, a step says so
    options_.nccl_library = std::getenv("NCCL_DOUBLE");
    options_.cuda_library = std::getenv("CUDA_DOUBLE");
  }

  void step(const std::string& text) {
    const std::size_t colon = text.find(':');
    step_ = text.substr(0, colon);
    argument_ = colon == std::string::npos ? "" : text.substr(colon + 1);
    began_ = Clock::now();
    (this->*find(step_))();
  }

 private:
  using Step = void (Rank::*)();

  static Step find(const std::string& name) {
    static const std::map<std::string, Step> steps{
        {"join", &Rank::join},         {"warm_up", &Rank::set},      {"ctas", &Rank::set},
        {"nccl", &Rank::set},          {"cuda", &Rank::set},         {"at_end", &Rank::set_end},
        {"heir", &Rank::set_heir},     {"insist", &Rank::insist},    {"create", &Rank::create},
        {"reduce", &Rank::reduce},     {"start", &Rank::start},      {"finish", &Rank::finish},
        {"over", &Rank::over},         {"error", &Rank::error},      {"regroup", &Rank::regroup},
        {"barrier", &Rank::call},      {"attach", &Rank::call},      {"close", &Rank::call},
        {"abort", &Rank::abort},       {"reopen", &Rank::reopen},    {"resume", &Rank::resume},
        {"attempts", &Rank::attempts}, {"hold", &Rank::hold},        {"leave", &Rank::call},
        {"stay", &Rank::be_befallen},  {"stop", &Rank::be_befallen}, {"kill", &Rank::be_befallen},
        {"exit", &Rank::be_befallen},  {"swap", &Rank::swap},        {"put", &Rank::put},
        {"fold", &Rank::fold},         {"cycles", &Rank::cycle},     {"rank", &Rank::set},
        {"size", &Rank::set},          {"blocking", &Rank::set},     {"nonblocking", &Rank::set},
        {"scaled", &Rank::scaled},
    };
    return steps.at(name);
  }

  static Store connected(const char* server) {
    StoreOptions options;
    options.timeout = patience_of_calls;
    auto store = Store::connect(server, options, 10s);
    if (!store) throw std::runtime_error(store.error().message());
    return *std::move(store);
  }

  void say(const std::string& code, const std::string& ranks, std::uint64_t actual,
           const std::string& text) const {
    const auto elapsed =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began_);
    std::cout << step_ << '|' << code << '|' << ranks << '|' << actual << '|' << elapsed.count()
              << '|' << text << std::endl;
  }
  void say_well(const std::string& text = "") const { say("ok", "", 0, text); }
  void say(const Error& error) const {
    say(std::string(name_of(error.code)), text_of(error.rank_ranges), error.actual, error.detail);
  }
  template <class T>
  bool say_whether(const Result<T>& result) const {
    if (!result.has_value()) say(result.error());
    return result.has_value();
  }

  void join() {
    if (!argument_.empty()) name_ = argument_;
    GroupOptions options;
    options.timeout = patience_of_calls;
    keep(StatelessProcessGroup::create(store_, name_, rank_, world_size_, options));
  }

  void regroup() {
    RegroupOptions options;
    options.min_size = std::atoi(argument_.c_str());
    keep(groups_.back().regroup(options, options.min_size > 0 ? Duration(2s) : patience_of_calls));
  }

  void keep(Result<StatelessProcessGroup> group) {
    if (!say_whether(group)) return;
    groups_.push_back(*std::move(group));
    say_well(std::to_string(groups_.back().world_size()));
  }

  void set() {
    if (step_ == "rank") rank_ = std::atoi(argument_.c_str());
    if (step_ == "size") world_size_ = std::atoi(argument_.c_str());
    if (step_ == "warm_up") options_.warm_up = true;
    if (step_ == "blocking") options_.mode = nccl::Mode::blocking;
    if (step_ == "nonblocking") options_.mode = nccl::Mode::nonblocking;
    if (step_ == "ctas") options_.ctas_max = std::atoi(argument_.c_str());
    if (step_ == "nccl") options_.nccl_library = argument_;
    if (step_ == "cuda") options_.cuda_library = argument_;
  }

  void set_end() {
    static nccl::CudaFunctions functions;
    functions = *nccl_internal::load_cuda(options_.cuda_library);
    functions.mem_free = free_at_end;
    end_of_warm_up().what = argument_;
    end_of_warm_up().is_due = true;
    options_.cuda = &functions;
  }

  void set_heir() {
    functions_loaded() = *nccl_internal::load_nccl(options_.nccl_library);
    static nccl::Functions functions;
    functions = functions_loaded();
    functions.get_unique_id = make_id_and_heir;
    options_.nccl = &functions;
  }

  void create() {
    options_.timeout = argument_.empty()
                           ? patience_of_calls
                           : Duration(std::chrono::milliseconds(std::atoi(argument_.c_str())));
    auto made = nccl::create(groups_.back(), 0, options_);
    if (!say_whether(made)) return;
    communicator_ = std::make_unique<Communicator>(*std::move(made));
    say_well();
  }

  void swap() {
    std::swap(communicator_, aside_);
    say_well();
  }

  Number& number() {
    if (!number_) number_ = std::make_unique<Number>();
    return *number_;
  }
  bool issue() {
    number().set(communicator_->rank() + 1);
    return add_up();
  }
  bool add_up() {
    return say_whether(communicator_->all_reduce(number_->at(), number_->at(), 1, DataType::int32,
                                                 ReduceOp::sum, number_->stream()));
  }
  void start() {
    if (issue()) say_well();
  }
  void insist() {
    number();
    while (add_up()) let_pass(1ms);
  }
  void finish() {
    const int result = cuda().synchronize_stream(number_->stream());
    say_well(std::to_string(result));
  }
  void put() {
    number().set(std::atoi(argument_.c_str()));
    say_well();
  }
  void fold() {
    if (add_up()) say_sum();
  }
  void reduce() {
    if (issue()) say_sum();
  }
  void scaled() {
    const auto own = static_cast<float>(communicator_->rank() + 1);
    std::int32_t bits = 0;
    std::memcpy(&bits, &own, sizeof bits);
    number().set(bits);
    if (!say_whether(communicator_->all_reduce(number_->at(), number_->at(), 1, DataType::float32,
                                               scaled_sum(own), number_->stream()))) {
      return;
    }
    cuda().synchronize_stream(number_->stream());
    bits = number_->get();
    float sum = 0;
    std::memcpy(&sum, &bits, sizeof sum);
    say_well(std::to_string(std::lround(sum)));
  }
  void say_sum() {
    cuda().synchronize_stream(number_->stream());
    if (communicator_->error()) return say(*communicator_->error());
    say_well(std::to_string(number_->get()));
  }

  static std::size_t free_memory() {
    const CurrentDevice current(0);
    std::size_t free_bytes = 0;
    std::size_t all_bytes = 0;
    cuda().memory(&free_bytes, &all_bytes);
    return free_bytes;
  }
  /// The first may leave something behind that later ones use again.
  void cycle() {
    constexpr int first_ones = 1;
    const int count = std::atoi(argument_.c_str());
    std::size_t before = 0;
    for (int index = 0; index < count + first_ones; ++index) {
      if (index == first_ones) before = free_memory();
      auto made = nccl::create(groups_.back(), 0, options_);
      if (!say_whether(made)) return;
      communicator_ = std::make_unique<Communicator>(*std::move(made));
      if (!issue()) return;
      cuda().synchronize_stream(number().stream());
      if (number().get() != groups_.back().world_size() * (groups_.back().world_size() + 1) / 2) {
        return say("wrong", "", 0, std::to_string(number().get()));
      }
      if (!say_whether(communicator_->close())) return;
    }
    const std::size_t after = free_memory();
    say_well(std::to_string(before > after ? (before - after) >> 10 : 0));
  }

  void over() {
    while (!communicator_->error()) let_pass(1ms);
    say(*communicator_->error());
  }
  void error() {
    if (const auto error = communicator_->error()) return say(*error);
    say_well();
  }

  void call() {
    Result<void> done;
    if (step_ == "attach") done = communicator_->attach(groups_.back());
    if (step_ == "close") done = communicator_->close();
    if (step_ == "leave") done = groups_.back().leave();
    if (step_ == "barrier") {
      if (const auto passed = groups_.back().barrier(); !passed) done = passed.error();
    }
    if (say_whether(done)) say_well();
  }
  void abort() {
    communicator_->abort();
    say_well();
  }

  /// Until the server that answers lets calls end so.
  void await_answer(ErrorCode code) {
    while (store_.get("nothing", Duration{0}).error().code != code) let_pass(10ms);
  }
  void resume() {
    await_answer(ErrorCode::not_found);
    say_well();
  }
  void reopen() {
    await_answer(ErrorCode::server_restarted);
    if (say_whether(store_.reopen())) say_well();
  }
  void attempts() { say_well(std::to_string(nccl::failed_attempts())); }
  void hold() {
    say_well();
    wait_for_signal();
    say_well();
  }
  void be_befallen() { befall(step_); }

  Store store_;
  std::string name_;
  int rank_;
  int world_size_;
  nccl::Options options_;
  std::list<StatelessProcessGroup> groups_;  ///< the last is used; those before it are not left
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Communicator> aside_;
  std::unique_ptr<Number> number_;

  std::string step_;
  std::string argument_;
  Clock::time_point began_;
};

int serve(const char* port) {
  ServerOptions options;
  options.listen = {std::string("127.0.0.1:") + port};
  options.session_timeout = 5s;
  options.grace = 500ms;
  options.standalone = true;
  const auto server = Server::start(options);
  if (!server) return 3;
  std::cout << server->addresses().front() << std::endl;
  for (;;) ::pause();
}

}  // namespace

int run_as_communicator(int argc, char** argv) {
  if (const int code = run_as_heir(argc, argv); code >= 0) return code;
  if (argc < 3) return -1;
  const bool is_rank = std::strcmp(argv[1], mark_of_rank) == 0;
  const bool is_server = std::strcmp(argv[1], mark_of_server) == 0;
  if (!is_rank && !is_server) return -1;
  ::alarm(300);  // whatever happens, it does not stay
  if (is_server) return serve(argv[2]);
  if (argc < steps_at) return 2;
  sigset_t held;
  ::sigemptyset(&held);
  ::sigaddset(&held, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &held, nullptr);  // before there are threads
  Rank rank(argv[2], argv[3], std::atoi(argv[4]), std::atoi(argv[5]));
  for (int index = steps_at; index < argc; ++index) rank.step(argv[index]);
  return 0;
}

Process::Options communicator_process(const CommunicatorProcess& wanted) {
  Process::Options options;
  options.take_errors = false;
  options.command = {"/proc/self/exe",
                     mark_of_rank,
                     wanted.server,
                     wanted.group,
                     std::to_string(wanted.rank),
                     std::to_string(wanted.world_size)};
  options.command.insert(options.command.end(), wanted.steps.begin(), wanted.steps.end());
  options.environment = wanted.environment;
  options.environment.emplace("NCCL_HOSTID", "rank " + std::to_string(wanted.rank));
  options.environment.emplace("NCCL_DEBUG", "VERSION");
  return options;
}

Process::Options server_process(int port) {
  Process::Options options;
  options.take_errors = false;
  options.command = {"/proc/self/exe", mark_of_server, std::to_string(port)};
  return options;
}

std::optional<Said> said_by(Process& process) {
  auto line = process.read_line(30s);
  // NCCL prints lines of its own there.
  while (line && std::count(line->begin(), line->end(), '|') < separators_min)
    line = process.read_line(30s);
  if (!line) return std::nullopt;
  std::istringstream fields(*line);
  Said said;
  std::string actual;
  std::string elapsed;
  for (std::string* const field : {&said.step, &said.code, &said.ranks, &actual, &elapsed}) {
    std::getline(fields, *field, '|');
  }
  std::getline(fields, said.text);
  said.actual = static_cast<std::uint64_t>(std::atoll(actual.c_str()));
  said.elapsed = std::chrono::milliseconds(std::atoll(elapsed.c_str()));
  return said;
}

}  // namespace muster::test
