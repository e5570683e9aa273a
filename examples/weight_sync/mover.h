#pragma once

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "muster/process_group.h"
#include "weight_sync/backend.h"
#include "weight_sync/staging.h"
#include "weight_sync/weights.h"

namespace weight_sync {

/// Moves weights from one rank to the others, over a communicator that it makes.
class Mover {
 public:
  Mover(Backend backend, std::size_t bucket_bytes)
      : backend_(std::move(backend)), bucket_bytes_(bucket_bytes) {}

  std::size_t bucket_bytes() const { return bucket_bytes_; }

  /// Makes the communicator of the group's epoch; alone there is none.
  muster::Result<void> connect(muster::StatelessProcessGroup& group, muster::Duration timeout) {
    disconnect();
    if (group.world_size() == 1) return {};
    if (!staging_) {
      auto made = backend_.staging(bucket_bytes_);
      if (!made) return std::move(made).error();
      staging_ = *std::move(made);
    }
    auto made = backend_.connect(group, timeout);
    if (!made) return std::move(made).error();
    communicator_.emplace(*std::move(made));
    return {};
  }

  /// What it has on the staging's streams ends.
  void disconnect() { communicator_.reset(); }

  /// The epoch in which the communicator was made, if it works and has the ranks of this group; 0:
  /// there is none.
  std::uint64_t epoch_of_communicator(const muster::StatelessProcessGroup& group) const {
    const bool fits = communicator_ && !communicator_->error() &&
                      communicator_->rank() == group.rank() &&
                      communicator_->world_size() == group.world_size();
    return fits ? communicator_->epoch() : 0;
  }

  /// Goes on with the communicator in another group of the same processes.
  muster::Result<void> attach(muster::StatelessProcessGroup& group, muster::Duration timeout) {
    return communicator_->attach(group, timeout);
  }

  /// While one bucket travels, another thread fills the next one, or empties the last.
  muster::Result<void> move(Weights& weights, int root, muster::Duration timeout) {
    const bool is_root = communicator_->rank() == root;
    const std::size_t count = (weights.size() + bucket_bytes_ - 1) / bucket_bytes_;
    muster::Result<void> moved = is_root ? pack(weights, 0) : muster::Result<void>();
    for (std::size_t bucket = 0; bucket < count && moved; ++bucket) {
      auto beside = std::async(std::launch::async, [&]() -> muster::Result<void> {
        if (is_root) return bucket + 1 < count ? pack(weights, bucket + 1) : muster::Result<void>();
        return bucket > 0 ? unpack(weights, bucket - 1) : muster::Result<void>();
      });
      moved = travel(bucket, size_of(weights, bucket), root, timeout);
      const auto packed = beside.get();
      if (moved && !packed) moved = packed;
    }
    if (moved && !is_root && count > 0) moved = unpack(weights, count - 1);
    return moved;
  }

 private:
  /// How long the streams may take to end after an abort.
  static constexpr std::chrono::seconds patience_for_end{15};
  static constexpr std::chrono::microseconds between_looks{50};

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

  muster::Result<void> travel(std::size_t bucket, std::size_t bytes, int root,
                              muster::Duration timeout) {
    const int side = side_of(bucket);
    void* const buffer = staging_->at(side);
    const auto issued = communicator_->broadcast(buffer, buffer, bytes, muster::DataType::uint8,
                                                 root, staging_->stream(side), timeout);
    auto come = issued ? await(side, timeout) : issued;
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
  muster::Result<void> await(int side, muster::Duration timeout) {
    return await_stream(side, timeout, [this] { return communicator_->error(); });
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
  std::size_t bucket_bytes_;
  std::unique_ptr<Staging> staging_;
  std::optional<muster::Communicator> communicator_;
};

}  // namespace weight_sync
