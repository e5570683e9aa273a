#include "runtime/turn.h"

#include <algorithm>
#include <utility>

#include "base/failure.h"
#include "base/rank_ranges.h"
#include "muster/codec_raw.h"
#include "muster/log.h"
#include "wire/reader.h"
#include "wire/writer.h"

// A rank that works tells each that waits for it, by an object of a stream that is reserved for
// turns, how its work has ended. Objects carry the number of their turn, so what an earlier turn
// has left behind is passed over. While it works, its progress stands in a key, where those who
// wait look now and then.

MUSTER_BEGIN_NAMESPACE

void Progress::operator()(std::string_view text) { impl_.tell(text.substr(0, 256)); }

MUSTER_END_NAMESPACE

namespace muster::runtime {

void StoreProgress::tell(std::string_view text) {
  const std::lock_guard lock(mutex_);
  ++count_;
  text_ = text;
  has_more_ = true;
  if (!is_sending_ && !is_over_) send();
}

void StoreProgress::end() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(is_over_, true) || count_ == 0) return;
  store_.remove_async(key_, std::chrono::seconds(30), [](const Result<bool>&) {});
}

void StoreProgress::send() {
  std::string value;
  wire::Writer out(value);
  out.u64(count_);
  out.raw(text_);
  SetOptions options;
  options.ttl = lifetime_;
  is_sending_ = true;
  has_more_ = false;
  store_.set_async(key_, value, options, std::chrono::seconds(30),
                   [self = shared_from_this()](const Result<bool>&) {
                     const std::lock_guard lock(self->mutex_);
                     self->is_sending_ = false;
                     if (self->has_more_ && !self->is_over_) self->send();
                   });
}

namespace {

/// Of the stream on which ranks tell; far from those that people choose.
constexpr Tag tag{0x6d75737465722d74};

std::string text_of(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

Duration since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
}

}  // namespace

Turn::Turn(RankGroup::Impl& group, std::string_view operation, const TurnOptions& options)
    : group_(group),
      operation_(operation),
      options_(cut_to_a_year(options)),
      number_(group.turn()),
      deadline_(Clock::now() + options_.limit),
      told_(std::make_shared<StoreProgress>(group.group(), key_of(group.group().rank()),
                                            4 * options_.silence_max)),
      progress_(*told_) {}

Turn::~Turn() { told_->end(); }

Result<void> Turn::tell(int rank, const detail::TurnOutcome& outcome) {
  std::string message;
  wire::Writer out(message);
  out.u64(number_);
  out.u8(outcome.failure ? 1 : 0);
  out.u32(static_cast<std::uint32_t>(outcome.failed_ranks.size()));
  for (const int failed : outcome.failed_ranks) out.i32(failed);
  out.raw(outcome.failure ? *outcome.failure : outcome.bytes);
  auto sent = group_.group().send_bytes(Rank(rank), RawCodec::id, message, tag);
  if (!sent) return about(std::move(sent).error());
  return {};
}

/// Also those behind one that cannot be told.
Result<void> Turn::tell_all(const std::vector<int>& ranks, const detail::TurnOutcome& outcome) {
  Result<void> all;
  for (const int rank : ranks)
    if (auto told = tell(rank, outcome); !told && all) all = std::move(told);
  return all;
}

Result<detail::TurnOutcome> Turn::outcome_of(int rank) {
  Heard heard{Clock::now(), 0, {}};
  for (;;) {
    const auto left = std::chrono::duration_cast<Duration>(deadline_ - Clock::now());
    if (left <= Duration::zero())
      return silent(rank, heard, "it has not ended within the limit of " + text_of(options_.limit));
    const Duration wait =
        std::max(Duration(1),
                 std::min<Duration>({left, options_.silence_max / 3, std::chrono::seconds(10)}));
    auto received = receive(rank, wait);
    if (!received.has_value()) return about(std::move(received).error());
    if (*received) return **std::move(received);
    if (auto listened = listen(rank, heard); !listened) return std::move(listened).error();
    if (Clock::now() - heard.at >= options_.silence_max)
      return silent(rank, heard, "its work has told nothing for " + text_of(since(heard.at)));
  }
}

Result<std::string> Turn::value_of(int rank) {
  auto outcome = outcome_of(rank);
  if (!outcome) return std::move(outcome).error();
  if (outcome->failure) {
    const bool is_own = outcome->failed_ranks.empty();
    return failed(is_own ? std::vector{rank} : outcome->failed_ranks, *std::move(outcome->failure));
  }
  return std::move(outcome->bytes);
}

Error Turn::failed(const std::vector<int>& ranks, std::string why) const {
  Error error = base::failure(ErrorCode::callback_failed, std::move(why));
  for (const int rank : ranks) blame(error, rank);
  return about(std::move(error));
}

void Turn::blame(Error& error, int rank) const {
  base::add_to(error.rank_ranges, rank);
  if (rank < 0 || rank >= world_size()) return;
  RankReport report;
  report.rank = rank;
  report.joined = true;
  report.process = group_.places()[static_cast<std::size_t>(rank)].process;
  error.ranks.push_back(std::move(report));
}

std::string Turn::key_of(int rank) const {
  const StatelessProcessGroup& group = group_.group();
  return "muster/turn/" + group.name() + "/" + std::to_string(group.epoch()) + "/" +
         std::to_string(number_) + "/" + std::to_string(rank);
}

/// none: it has not told within `wait`.
Result<std::optional<detail::TurnOutcome>> Turn::receive(int rank, Duration wait) {
  const auto until = Clock::now() + wait;
  for (;;) {
    const auto left = std::chrono::duration_cast<Duration>(until - Clock::now());
    auto received =
        group_.group().recv_bytes(Rank(rank), RawCodec::id, tag, std::max(Duration(1), left));
    if (!received) {
      if (received.error().code == ErrorCode::timed_out)
        return std::optional<detail::TurnOutcome>();
      return std::move(received).error();
    }
    wire::Reader in(received->bytes);
    const std::uint64_t number = in.u64();
    const bool has_failed = in.u8() != 0;
    detail::TurnOutcome outcome;
    for (std::uint32_t count = in.count(sizeof(std::int32_t)); count > 0; --count)
      outcome.failed_ranks.push_back(in.i32());
    if (!in.ok() || number > number_) {
      return base::failure(ErrorCode::protocol_error,
                           "rank " + std::to_string(rank) + " is in turn " +
                               std::to_string(number) + ", this rank in turn " +
                               std::to_string(number_) + ": call turns in the same order");
    }
    if (number < number_) continue;  // of one that this rank has given up
    outcome.bytes = in.raw(in.remaining());
    if (has_failed) outcome.failure = std::exchange(outcome.bytes, {});
    return std::optional(std::move(outcome));
  }
}

/// Looks what it has told last.
Result<void> Turn::listen(int rank, Heard& heard) {
  const auto value = group_.group().store().get(key_of(rank), Duration::zero());
  if (!value) {
    if (value.error().code == ErrorCode::not_found) return {};
    return about(value.error());
  }
  wire::Reader in(*value);
  const std::uint64_t count = in.u64();
  if (count == heard.count) return {};
  heard.at = Clock::now();
  heard.count = count;
  heard.text = in.raw(in.remaining());
  progress_("rank " + std::to_string(rank) + ": " + heard.text);
  return {};
}

Error Turn::silent(int rank, const Heard& heard, std::string why) const {
  Error error = base::failure(ErrorCode::timed_out, std::move(why));
  error.detail += heard.count == 0 ? "; it has told of no progress"
                                   : "; its last progress, " + text_of(since(heard.at)) +
                                         " ago, was '" + printable(heard.text) + "'";
  blame(error, rank);
  return about(std::move(error));
}

Error Turn::about(Error error) const {
  error.operation = operation_;
  error.group = group_.group().name();
  error.epoch = group_.group().epoch();
  if (error.decided_by.empty()) error.decided_by = "client";
  return error;
}

}  // namespace muster::runtime
