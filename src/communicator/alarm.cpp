#include "communicator/alarm.h"

#include <mutex>
#include <utility>

#include "communicator/report.h"

namespace muster::communicator {
namespace {

constexpr Duration first_listens_after{std::chrono::seconds(1)};
constexpr Duration listens_for{std::chrono::seconds(1)};  // so long it is heard after the end

/// One making of one epoch: no other has had as many rounds before it.
std::string key_for(const StatelessProcessGroup& group) {
  return "muster-communicator/" + std::to_string(group.epoch()) + "/" +
         std::to_string(group.counters().rounds) + "/" + group.name();
}

}  // namespace

struct Alarm::Shared {
  std::mutex mutex;
  bool is_asking = false;
  std::optional<Error> heard;
};

Alarm::Alarm(StatelessProcessGroup& group)
    : group_(group), key_(key_for(group)), shared_(std::make_shared<Shared>()) {}

std::optional<Error> Alarm::listen() {
  if (std::chrono::steady_clock::now() - began_ < first_listens_after) return std::nullopt;
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->is_asking) return shared_->heard;
    shared_->is_asking = true;
  }
  group_.store().get_async(key_, listens_for, [shared = shared_](const Result<std::string>& got) {
    const std::lock_guard lock(shared->mutex);
    if (!got) {
      const ErrorCode code = got.error().code;  // others come at once, again and again
      shared->is_asking = code != ErrorCode::timed_out && code != ErrorCode::outcome_unknown;
    } else if (auto report = decode_report(*got); report) {
      shared->heard = *std::move(report);
    }
  });
  return std::nullopt;
}

void Alarm::raise(const Error& error, Duration lifetime) {
  SetOptions options;
  options.ttl = lifetime;
  group_.store().set_async(key_, encode_report(error), options, lifetime, [](const auto&) {});
}

}  // namespace muster::communicator
