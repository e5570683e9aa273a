#include "muster/signal_file.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/failure.h"
#include "muster/codec_raw.h"
#include "runtime/shared/locked_file.h"
#include "runtime/signal/signal_call.h"
#include "runtime/turn.h"
#include "wire/reader.h"
#include "wire/writer.h"

// A call's life: the rank that works first (the leader) makes the file of this call, works,
// replaces the file as its work tells of progress, and at last by one that says how the work has
// ended. The others read that, mark in the file that they have, and begin their own work. When all
// have, the leader removes the file and returns. If one does not come, the leader returns after
// `arrival_max` and keeps the file for it until the next call behind its limit, or until the
// SignalFolder goes.

MUSTER_BEGIN_NAMESPACE

class SignalFolder::Impl {
 public:
  Impl(std::string folder, Environment environment, runtime::SignalJob job, Logger logger)
      : folder_(std::move(folder)),
        environment_(std::move(environment)),
        job_(std::move(job)),
        logger_(std::move(logger)) {}

  const std::string& folder() const { return folder_; }
  const std::string& job() const { return job_.text; }

  Result<void> run(detail::Shared shared, const detail::Work& work, const TurnOptions& options);

 private:
  Result<runtime::SignalCall> begin(detail::Shared shared, const TurnOptions& options);
  Result<void> lead(runtime::SignalCall call, const detail::Work& work);
  void tidy();
  void log(LogLevel level, const std::string& line) const {
    if (logger_) logger_(level, line);
  }

  const std::string folder_;
  const Environment environment_;
  const runtime::SignalJob job_;
  const Logger logger_;
  std::uint64_t calls_count_ = 0;
  std::string path_before_;  // of the last call; empty: there was none
  runtime::SignalRecord named_before_;
  bool has_swept_ = false;
  std::vector<std::unique_ptr<runtime::LeaderFile>> unread_;  // of calls that are over
};

/// A call that is refused on this rank counts all the same: others may have begun it.
Result<runtime::SignalCall> SignalFolder::Impl::begin(detail::Shared shared,
                                                      const TurnOptions& options) {
  runtime::SignalCall call;
  call.operation =
      shared == detail::Shared::node ? "local_rank_zero_first" : "fs_local_rank_zero_first";
  call.folder = folder_;
  call.named.job = job_.text;
  call.named.shared = shared;
  call.named.call = ++calls_count_;
  call.is_unique = job_.is_unique;
  call.options = runtime::cut_to_a_year(options);
  if (std::min({options.silence_max, options.limit, options.arrival_max}) <= Duration::zero()) {
    Error error = base::failure(ErrorCode::invalid_argument,
                                "TurnOptions: silence_max, limit and arrival_max are above zero");
    error.operation = call.operation;
    return error;
  }
  auto ranks = runtime::signal_ranks(environment_, shared, call.operation);
  if (!ranks) return std::move(ranks).error();
  call.ranks = *ranks;
  std::string named = job_.text;
  wire::Writer out(named);
  out.u8(static_cast<std::uint8_t>(shared));
  out.u64(call.named.call);
  call.path = folder_ + "/" + runtime::signal_file_name(ranks->node_rank, base::digest_of(named));
  call.logger = logger_;
  if (named_before_.shared == shared) {
    call.path_before = path_before_;
    call.named_before = named_before_;
  }
  path_before_ = call.path;
  named_before_ = call.named;
  return call;
}

Result<void> SignalFolder::Impl::run(detail::Shared shared, const detail::Work& work,
                                     const TurnOptions& options) {
  auto call = begin(shared, options);
  if (!call) return std::move(call).error();
  if (call->ranks.count > 1 && call->ranks.rank == 0) return lead(*std::move(call), work);
  if (call->ranks.count > 1) {
    auto led = runtime::await_leader(*call);
    if (!led) return led;
  }
  runtime::UnheardProgress unheard;
  Progress progress(unheard);
  work(progress);
  return {};
}

Result<void> SignalFolder::Impl::lead(runtime::SignalCall call, const detail::Work& work) {
  tidy();
  auto file = std::make_unique<runtime::LeaderFile>(std::move(call));
  if (auto begun = file->begin(); !begun) return begun;
  const Duration pause =
      std::min<Duration>(std::chrono::milliseconds(100), file->call().options.silence_max / 8);
  runtime::FileProgress told(*file, pause);
  Progress progress(told);
  const detail::TurnOutcome outcome = work(progress);
  told.end();
  if (auto ended = file->end(outcome); !ended) return ended;
  const std::vector<int> missing = file->await_readers();
  if (missing.empty()) return {};
  std::string ranks;
  for (const int rank : missing) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  log(LogLevel::warning, file->call().operation + ": of the ranks that use " + file->call().path +
                             ", these have not come: " + ranks);
  unread_.push_back(std::move(file));
  return {};
}

void SignalFolder::Impl::tidy() {
  const auto now = runtime::SignalCall::Clock::now();
  std::vector<std::unique_ptr<runtime::LeaderFile>> kept;
  for (auto& file : unread_) {
    const bool is_over = now - file->call().begun >= file->call().options.limit;
    if (!is_over && !file->missing().empty()) kept.push_back(std::move(file));
  }
  unread_ = std::move(kept);
  if (std::exchange(has_swept_, true)) return;
  for (const std::string& name : runtime::sweep_signals(folder_))
    log(LogLevel::info, "removed " + printable(folder_ + "/" + name) + ", left by a dead process");
}

Result<SignalFolder> SignalFolder::open(const std::string& folder, const Environment& environment,
                                        const SignalFolderOptions& options) {
  constexpr std::string_view operation = "SignalFolder::open";
  auto job = runtime::signal_job(environment, options);
  if (!job) return std::move(job).error();
  auto ranks = runtime::signal_ranks(environment, detail::Shared::node, operation);
  if (!ranks) return std::move(ranks).error();
  const std::string path = folder.empty() ? "." : folder;
  std::error_code code;
  std::filesystem::create_directories(path, code);
  // It may be there without being made, by a link.
  std::error_code status_code;
  if (std::filesystem::is_directory(path, status_code)) code.clear();
  int found = code ? code.value() : 0;
  if (found == 0 && ranks->rank == 0 && ::access(path.c_str(), W_OK | X_OK) != 0) found = errno;
  if (found != 0)
    return runtime::file_error(operation, path, "the folder of signals cannot be used", found);
  return SignalFolder(std::make_unique<Impl>(path, environment, *std::move(job), options.logger));
}

SignalFolder::SignalFolder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SignalFolder::~SignalFolder() = default;
SignalFolder::SignalFolder(SignalFolder&&) noexcept = default;
SignalFolder& SignalFolder::operator=(SignalFolder&&) noexcept = default;
const std::string& SignalFolder::folder() const { return impl_->folder(); }
const std::string& SignalFolder::job() const { return impl_->job(); }

namespace detail {

Result<void> run_leader_first(SignalFolder& signals, Shared shared, const Work& work,
                              const TurnOptions& options) {
  if (signals.impl() != nullptr) return signals.impl()->run(shared, work, options);
  Error error = base::failure(ErrorCode::invalid_argument,
                              "this SignalFolder was moved from: use the one it was moved to");
  error.operation = shared == Shared::node ? "local_rank_zero_first" : "fs_local_rank_zero_first";
  return error;
}

}  // namespace detail

Result<std::string> node_signal_file_name(RankGroup& group, Duration timeout) {
  constexpr std::string_view operation = "node_signal_file_name";
  if (group.group() == nullptr) {
    Error error = base::failure(ErrorCode::not_initialized,
                                "this group is of no ranks: Runtime::init comes first");
    error.operation = operation;
    return error;
  }
  std::uint64_t drawn = 0;
  const int rank = group.group()->rank();
  if (rank == 0 && ::getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn) {
    // It has to be another one each time, but no secret.
    drawn = base::digest_of(
        std::to_string(std::chrono::system_clock::now().time_since_epoch().count()) + "/" +
        std::to_string(::getpid()));
  }
  std::string bytes;
  wire::Writer(bytes).u64(drawn);
  const auto told = group.group()->broadcast_obj<RawCodec>(bytes, Rank(0), timeout);
  if (!told) return told.error();
  const int node_rank = group.places()[static_cast<std::size_t>(rank)].node_rank;
  return runtime::signal_file_name(node_rank, wire::Reader(*told).u64());
}

MUSTER_END_NAMESPACE
