#pragma once

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "muster/codec_cereal.h"
#include "muster/process_group.h"
#include "weight_sync/backend.h"
#include "weight_sync/staging.h"
#include "weight_sync/weights.h"

namespace weight_sync {

inline constexpr std::chrono::seconds patience{60};
/// How long the streams may take to end after an abort.
inline constexpr std::chrono::seconds patience_for_end{15};
inline constexpr std::chrono::microseconds between_looks{50};
inline constexpr int trainer_rank = 0;
inline constexpr int attempts_max = 5;

/// Whether others are gone, or may be: then those who are left regroup and go on.
inline bool is_about_others(const muster::Error& error) {
  using muster::ErrorCode;
  return error.code == ErrorCode::rank_lost || error.code == ErrorCode::rank_left ||
         error.code == ErrorCode::aborted || error.code == ErrorCode::timed_out ||
         error.code == ErrorCode::nccl || error.code == ErrorCode::gloo;
}

/// The group of one tensor-parallel slice, the trainer and one process of each server, with the
/// communicator of its present epoch.
class Slice {
 public:
  Slice(Backend backend, muster::StatelessProcessGroup group, std::size_t bucket_bytes)
      : backend_(std::move(backend)), group_(std::move(group)), bucket_bytes_(bucket_bytes) {}

  muster::StatelessProcessGroup& group() { return group_; }
  std::size_t bucket_bytes() const { return bucket_bytes_; }

  /// Makes the communicator of this epoch; alone there is none.
  muster::Result<void> connect() {
    communicator_.reset();
    if (group_.world_size() == 1) return {};
    if (!staging_) {
      auto made = backend_.staging(bucket_bytes_);
      if (!made) return std::move(made).error();
      staging_ = *std::move(made);
    }
    auto made = backend_.connect(group_, patience);
    if (!made) return std::move(made).error();
    communicator_.emplace(*std::move(made));
    return {};
  }

  /// The next epoch, with those who are left (0) or with candidates, too.
  muster::Result<void> regroup(int new_size = 0) {
    communicator_.reset();  // what it has on the staging's streams ends
    muster::RegroupOptions options;
    options.new_size = new_size;
    auto next = group_.regroup(options, patience);
    if (!next) return std::move(next).error();
    group_ = *std::move(next);
    return connect();
  }

  /// After a failure: goes on with those who are left, also if more are lost meanwhile.
  muster::Result<void> go_on(muster::Error error) {
    for (int attempt = 0; attempt < attempts_max && is_about_others(error); ++attempt) {
      const auto done = regroup();
      if (done) return {};
      error = done.error();
    }
    return error;
  }

  /// Moves the weights from the trainer to all: while one bucket travels, another thread fills the
  /// next one, or empties the last.
  muster::Result<void> move(Weights& weights) {
    const bool is_trainer = group_.rank() == trainer_rank;
    const std::size_t count = (weights.size() + bucket_bytes_ - 1) / bucket_bytes_;
    muster::Result<void> moved = is_trainer ? pack(weights, 0) : muster::Result<void>();
    for (std::size_t bucket = 0; bucket < count && moved; ++bucket) {
      auto beside = std::async(std::launch::async, [&]() -> muster::Result<void> {
        if (is_trainer)
          return bucket + 1 < count ? pack(weights, bucket + 1) : muster::Result<void>();
        return bucket > 0 ? unpack(weights, bucket - 1) : muster::Result<void>();
      });
      moved = travel(weights, bucket);
      const auto packed = beside.get();
      if (moved && !packed) moved = packed;
    }
    if (moved && !is_trainer && count > 0) moved = unpack(weights, count - 1);
    return moved;
  }

  /// One for each version, and one in the end.
  muster::Result<void> pass_barrier() {
    const auto passed = group_.barrier(patience);
    if (!passed) return passed.error();
    return {};
  }

  /// All do so, when the end has been ordered.
  muster::Result<void> leave() {
    communicator_.reset();
    const auto passed = pass_barrier();
    const auto left = group_.leave();
    return passed ? left : passed;
  }

 private:
  static int side_of(std::size_t bucket) { return static_cast<int>(bucket % 2); }
  std::size_t size_of(const Weights& weights, std::size_t bucket) const {
    return std::min(bucket_bytes_, weights.size() - bucket * bucket_bytes_);
  }
  muster::Result<void> pack(const Weights& weights, std::size_t bucket) {
    return staging_->fill(side_of(bucket), weights.data() + bucket * bucket_bytes_,
                          size_of(weights, bucket));
  }
  muster::Result<void> unpack(Weights& weights, std::size_t bucket) {
    return staging_->empty(side_of(bucket), weights.data() + bucket * bucket_bytes_,
                           size_of(weights, bucket));
  }
  muster::Result<void> travel(const Weights& weights, std::size_t bucket) {
    const int side = side_of(bucket);
    void* const buffer = staging_->at(side);
    const auto issued =
        communicator_->broadcast(buffer, buffer, size_of(weights, bucket), muster::DataType::uint8,
                                 trainer_rank, staging_->stream(side));
    auto come = issued ? await(side) : issued;
    if (come) return come;
    communicator_->abort();
    // Nothing may write into the buffers any more when they are used again.
    for (const int each : {0, 1}) {
      const auto ended = await_stream(each, patience_for_end, [] { return std::nullopt; });
      if (ended) continue;
      return failure(muster::ErrorCode::internal, "after an abort: " + ended.error().detail);
    }
    return come;
  }

  /// Looks after the communicator meanwhile: where NCCL cannot go on, the stream waits for ever.
  muster::Result<void> await(int side) {
    return await_stream(side, patience, [this] { return communicator_->error(); });
  }

  template <class Trouble>
  muster::Result<void> await_stream(int side, muster::Duration timeout, Trouble trouble) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      const auto is_done = staging_->is_done(side);
      const std::optional<muster::Error> error = trouble();
      if (error) return *error;  // also where it is done: it ended because of that
      if (!is_done.has_value()) return is_done.error();
      if (*is_done) return {};
      if (std::chrono::steady_clock::now() >= end) {
        return failure(muster::ErrorCode::timed_out, "a stream is not done in time");
      }
      std::this_thread::sleep_for(between_looks);
    }
  }

  static muster::Error failure(muster::ErrorCode code, std::string what) {
    muster::Error error;
    error.code = code;
    error.operation = "weight_sync";
    error.detail = std::move(what);
    return error;
  }

  Backend backend_;
  muster::StatelessProcessGroup group_;
  std::size_t bucket_bytes_;
  std::unique_ptr<Staging> staging_;
  std::optional<muster::Communicator> communicator_;
};

}  // namespace weight_sync
