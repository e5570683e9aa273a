#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "communicator/communicator_impl.h"
#include "muster/codec_cereal.h"
#include "muster/runtime.h"
#include "runtime/job.h"

// How a job ends whose ranks have communicators.

namespace muster::test {
namespace {

/// A communicator that can only be closed. Rank 1 is the last one; while it closes, it listens for
/// rank 0, which has closed.
class ClosingImpl : public Communicator::Impl {
 public:
  ClosingImpl(StatelessProcessGroup& group, std::atomic<bool>& has_closed)
      : group_(group), has_closed_(has_closed), membership_(group) {}

  std::string_view kind() const override { return "closing"; }
  const communicator::Membership& membership() const override { return membership_; }
  CreationTimes creation_times() const override { return {}; }
  Duration timeout() const override { return std::chrono::seconds(20); }
  std::optional<Error> refusal(std::string_view) const override { return {}; }
  Error about(std::string_view, Error error, TimePoint) const override { return error; }
  std::optional<Error> error() override { return {}; }
  Result<void> perform(const communicator::OperationCall&) override { return {}; }
  Result<void> grouped(const std::function<Result<void>()>&, Duration) override { return {}; }
  Result<void> attach(StatelessProcessGroup&, Duration) override { return {}; }
  void abort_all(const std::vector<std::shared_ptr<Impl>>&) override {}
  Result<void> close(Duration) override;
  void release() override {}

 private:
  StatelessProcessGroup& group_;
  std::atomic<bool>& has_closed_;
  const communicator::Membership membership_;
};

Result<void> ClosingImpl::close(Duration) {
  if (group_.rank() == 0) {
    has_closed_ = true;
    return {};
  }
  await([&] { return has_closed_.load(); });
  // Nothing is sent: this ends at once if rank 0 leaves, else after that time.
  const auto heard = group_.recv_obj<int>(Rank(0), std::chrono::milliseconds(300));
  CHECK(must_fail(heard).code == ErrorCode::timed_out);
  return {};
}

TEST_CASE("a rank that has closed its communicators stays until all others have") {
  std::atomic<bool> has_closed = false;
  RuntimeOptions options = patient();
  options.communicators = "cpu:closing";
  options.makers = {{"closing", [&](StatelessProcessGroup& group, int, Duration) {
                       return Result<Communicator>(
                           Communicator(std::make_shared<ClosingImpl>(group, has_closed)));
                     }}};
  Job job(2);
  job.run([](Runtime& runtime) { must(runtime.shutdown()); }, options);
  CHECK(has_closed);
}

}  // namespace
}  // namespace muster::test
