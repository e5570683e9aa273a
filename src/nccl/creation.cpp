#include "nccl/creation.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/digest.h"
#include "client/failure.h"
#include "communicator/messages.h"
#include "communicator/preflight.h"
#include "communicator/timed_call.h"
#include "muster/codec.h"
#include "nccl/functions.h"
#include "nccl/ids/id.h"
#include "nccl/ids/id_message.h"
#include "nccl/warm_up.h"

namespace muster::nccl_internal {
namespace {

constexpr int failed_attempts_max = 8;
constexpr int lowest_rank = 0;

std::atomic<int> failed_count{0};

/// With NCCL_COMM_BLOCKING NCCL does not look at what it is told for a communicator.
std::optional<Error> refusal_of_mode(nccl::Mode mode) {
  const char* const value = std::getenv("NCCL_COMM_BLOCKING");
  constexpr int any_base = 0;  // as NCCL reads it
  if (value == nullptr) return std::nullopt;
  const bool is_blocking = std::strtoll(value, nullptr, any_base) != 0;
  if (is_blocking == (mode == nccl::Mode::blocking)) return std::nullopt;
  return client::failure(ErrorCode::nccl, "NCCL_COMM_BLOCKING=" + std::string(value) +
                                              " is set, in the environment or in NCCL's "
                                              "configuration file, against nccl::Options::mode; "
                                              "unset it");
}

std::uint64_t terms_of(const nccl::Options& options) {
  return base::digest_of("warm_up " + std::to_string(static_cast<int>(options.warm_up)) +
                         " ctas_max " + std::to_string(options.ctas_max));
}

}  // namespace

int failed_attempts() { return failed_count; }
void forgive_attempts() { failed_count = 0; }

Creation::Creation(StatelessProcessGroup& group, int device, nccl::Options options,
                   std::shared_ptr<Shared> shared)
    : agreement_(group, codec_id::nccl_communicator, options.timeout),
      device_(device),
      options_(std::move(options)),
      shared_(std::move(shared)) {}

std::optional<Error> Creation::refusal() const {
  if (failed_count >= failed_attempts_max) {
    Error error = client::failure(ErrorCode::resource_exhausted,
                                  "attempts to make a communicator that failed inside NCCL: each "
                                  "has cost this process a thread and some descriptors; restart "
                                  "it, or call nccl::forgive_attempts()");
    error.limit = failed_attempts_max;
    error.actual = static_cast<std::uint64_t>(failed_count);
    return error;
  }
  if (auto refused = refusal_of_fixed_id()) return refused;
  if (auto refused = refusal_of_mode(options_.mode)) return refused;
  if (options_.mode != nccl::Mode::blocking) return std::nullopt;
  const auto watched = shared_->watchdog.start();
  return watched ? std::nullopt : std::optional(watched.error());
}

/// Finds everything that can be wrong in this process alone.
Result<Prepared> Creation::prepare() const {
  if (auto refused = refusal()) return *std::move(refused);
  return communicator::call_with_timeout<Prepared>(
      "loading NCCL and CUDA", agreement_.left(),
      [options = options_, device = device_]() -> Result<Prepared> {
        Prepared prepared;
        auto nccl =
            options.nccl != nullptr ? given_nccl(*options.nccl) : load_nccl(options.nccl_library);
        if (!nccl) return std::move(nccl).error();
        prepared.nccl = *nccl;
        auto cuda =
            options.cuda != nullptr ? given_cuda(*options.cuda) : load_cuda(options.cuda_library);
        if (!cuda) return std::move(cuda).error();
        auto opened = Device::open(*cuda, device);
        if (!opened) return std::move(opened).error();
        prepared.device = *std::move(opened);
        if (const int result = prepared.nccl.get_version(&prepared.version); result != 0) {
          return nccl_error(prepared.nccl, result, "ncclGetVersion");
        }
        return prepared;
      },
      [](const Result<Prepared>&) {});
}

Result<std::vector<PreflightReport>> Creation::run_preflight(
    const Result<Prepared>& prepared) const {
  const StatelessProcessGroup& group = agreement_.group();
  PreflightReport own;
  own.rank = group.rank();
  own.members = communicator::digest_of_epoch(group);
  own.process = group.store().process().id;
  own.terms = terms_of(options_);
  own.host = host_digest();
  if (prepared) {
    own.nccl_version = prepared->version;
    own.device_uuid = prepared->device->uuid();
  } else {
    own.failure = prepared.error();
  }
  return agreement_.run_preflight(own, decode_preflight);
}

Result<nccl::UniqueId> Creation::agree_on_id(const Prepared& prepared) const {
  StatelessProcessGroup& group = agreement_.group();
  const bool is_lowest = group.rank() == lowest_rank;
  Result<nccl::UniqueId> id = nccl::UniqueId{};
  if (is_lowest) id = make_id(prepared.nccl, agreement_.left());
  const auto told = group.broadcast_bytes(is_lowest ? encode_id_message(id) : std::string(),
                                          agreement_.codec(), Rank{lowest_rank}, agreement_.left());
  if (is_lowest && id && !told) nccl::give_up(*id);
  if (!told) return agreement_.about(told.error());
  if (!is_lowest) id = decode_id_message(*told);
  if (id) return id;
  return agreement_.about_ranks(std::move(id).error(),
                                [](int rank) { return rank == lowest_rank; });
}

/// Inside the gate, because a loss may abort it at any moment.
Result<void> Creation::enter(const std::shared_ptr<Impl>& impl, const nccl::UniqueId& id,
                             communicator::FailureNotice& notice) const {
  const auto pass = impl->gate().enter();
  if (!pass) return communicator::caused_elsewhere(pass.error());
  const auto meanwhile = [&notice]() -> Result<void> {
    auto posted = notice.poll();
    if (!posted) return {};
    return communicator::caused_elsewhere(*std::move(posted));
  };
  auto entered = impl->begin(id, agreement_.vote_begins(), meanwhile);
  // Once more: NCCL has read its configuration files into the environment.
  if (auto refused = refusal_of_mode(options_.mode); entered && refused) {
    entered = *std::move(refused);
  }
  if (entered) entered = impl->settle(agreement_.vote_begins(), meanwhile);
  if (entered && options_.warm_up) {
    entered = warm_up(impl, agreement_.vote_begins(), meanwhile);
  }
  if (entered) return entered;
  if (impl->gate().is_closed()) return communicator::caused_elsewhere(std::move(entered).error());
  if (entered.error().code != ErrorCode::aborted) notice.post(entered.error(), agreement_.left());
  return entered;
}

Result<std::shared_ptr<Impl>> Creation::run() {
  if (auto refused = agreement_.refusal()) return *std::move(refused);
  const auto prepared = prepare();
  const auto reports = run_preflight(prepared);
  if (!reports) return reports.error();
  StatelessProcessGroup& group = agreement_.group();
  communicator::Membership membership(group);
  for (const PreflightReport& report : *reports) membership.processes.push_back(report.process);
  const auto impl = std::make_shared<Impl>(*prepared, options_, std::move(membership), shared_);
  impl->watch(group);
  const auto id = agree_on_id(*prepared);
  if (!id) return id.error();
  communicator::FailureNotice notice(group);
  return agreement_.finish(
      impl, notice, [&] { return enter(impl, *id, notice); },
      [&] {
        ++failed_count;
        nccl::give_up(*id);  // does nothing where another process has made it
      });
}

}  // namespace muster::nccl_internal
