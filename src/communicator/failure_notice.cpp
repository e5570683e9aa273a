#include "communicator/failure_notice.h"

#include <mutex>
#include <utility>

#include "communicator/messages.h"

namespace muster::communicator {
namespace {

constexpr Duration first_poll_after{std::chrono::seconds(1)};
constexpr Duration get_timeout{std::chrono::seconds(1)};

/// The number of rounds is different for each communicator of an epoch.
std::string key_for(const StatelessProcessGroup& group) {
  return "muster-communicator/" + std::to_string(group.epoch()) + "/" +
         std::to_string(group.counters().rounds) + "/" + group.name();
}

}  // namespace

struct FailureNotice::Shared {
  std::mutex mutex;
  bool is_asking = false;
  std::optional<Error> heard;
};

FailureNotice::FailureNotice(StatelessProcessGroup& group)
    : group_(group), key_(key_for(group)), shared_(std::make_shared<Shared>()) {}

std::optional<Error> FailureNotice::poll() {
  if (std::chrono::steady_clock::now() - began_ < first_poll_after) return std::nullopt;
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->is_asking) return shared_->heard;
    shared_->is_asking = true;
  }
  group_.store().get_async(key_, get_timeout, [shared = shared_](const Result<std::string>& got) {
    const std::lock_guard lock(shared->mutex);
    if (!got) {
      const ErrorCode code = got.error().code;  // any other error would repeat at once
      shared->is_asking = code != ErrorCode::timed_out && code != ErrorCode::outcome_unknown;
    } else if (auto report = decode_vote(*got); report.has_value()) {
      shared->heard = *std::move(report);
    }
  });
  return std::nullopt;
}

void FailureNotice::post(const Error& error, Duration lifetime) {
  SetOptions options;
  options.ttl = lifetime;
  group_.store().set_async(key_, encode_vote(error), options, lifetime, [](const auto&) {});
}

}  // namespace muster::communicator
