#include "nccl/formation.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "client/failure.h"
#include "communicator/alarm.h"
#include "communicator/patience.h"
#include "communicator/report.h"
#include "communicator/verdict.h"
#include "muster/codec.h"
#include "nccl/answer.h"
#include "nccl/functions.h"
#include "nccl/id.h"
#include "nccl/warm_up.h"

namespace muster::nccl {
namespace {

constexpr int failed_attempts_max = 8;
constexpr int lowest_rank = 0;

std::atomic<int> failed_count{0};

/// With it NCCL blocks where it must not.
std::optional<Error> refusal_of_blocking() {
  const char* const value = std::getenv("NCCL_COMM_BLOCKING");
  constexpr int any_base = 0;  // as NCCL reads it
  if (value == nullptr || std::strtoll(value, nullptr, any_base) != 1) return std::nullopt;
  return client::failure(ErrorCode::nccl,
                         "NCCL_COMM_BLOCKING=1 is set, in the environment or in NCCL's "
                         "configuration file; unset it");
}

std::uint64_t terms_of(const NcclOptions& options) {
  return communicator::digest_of("warm_up " + std::to_string(static_cast<int>(options.warm_up)) +
                                 " ctas_max " + std::to_string(options.ctas_max));
}

}  // namespace

int failed_attempts() { return failed_count; }
void forgive_attempts() { failed_count = 0; }

Formation::Formation(StatelessProcessGroup& group, int device, NcclOptions options,
                     std::shared_ptr<Shared> shared)
    : making_(group, codec_id::nccl_communicator, options.timeout),
      device_(device),
      options_(std::move(options)),
      shared_(std::move(shared)) {}

std::optional<Error> Formation::refusal() const {
  if (failed_count >= failed_attempts_max) {
    Error error = client::failure(ErrorCode::resource_exhausted,
                                  "attempts to make a communicator that failed inside NCCL: each "
                                  "has cost this process a thread and some descriptors; restart "
                                  "it, or call nccl_forgive_attempts()");
    error.limit = failed_attempts_max;
    error.actual = static_cast<std::uint64_t>(failed_count);
    return error;
  }
  if (auto refused = refusal_of_fixed_id()) return refused;
  return refusal_of_blocking();
}

/// All that can be wrong in this process alone.
Result<Ground> Formation::prepare() const {
  if (auto refused = refusal()) return *std::move(refused);
  return communicator::with_patience<Ground>(
      "loading NCCL and CUDA", making_.left(),
      [options = options_, device = device_]() -> Result<Ground> {
        Ground ground;
        auto nccl =
            options.nccl != nullptr ? given_nccl(*options.nccl) : load_nccl(options.nccl_library);
        if (!nccl) return std::move(nccl).error();
        ground.nccl = *nccl;
        auto cuda =
            options.cuda != nullptr ? given_cuda(*options.cuda) : load_cuda(options.cuda_library);
        if (!cuda) return std::move(cuda).error();
        auto opened = Device::open(*cuda, device);
        if (!opened) return std::move(opened).error();
        ground.device = *std::move(opened);
        if (const int result = ground.nccl.get_version(&ground.version); result != 0) {
          return nccl_error(ground.nccl, result, "ncclGetVersion");
        }
        return ground;
      },
      [](const Result<Ground>&) {});
}

Result<std::vector<Presence>> Formation::call_roll(const Result<Ground>& ground) const {
  const StatelessProcessGroup& group = making_.group();
  Presence own;
  own.rank = group.rank();
  own.members = communicator::members_of(group);
  own.process = group.store().process().id;
  own.terms = terms_of(options_);
  own.host = host_digest();
  if (ground) {
    own.nccl_version = ground->version;
    own.device_uuid = ground->device->uuid();
  } else {
    own.trouble = ground.error();
  }
  return making_.call_roll(own, decode_presence);
}

Result<NcclUniqueId> Formation::agree_on_id(const Ground& ground) const {
  StatelessProcessGroup& group = making_.group();
  const bool is_lowest = group.rank() == lowest_rank;
  Result<NcclUniqueId> id = NcclUniqueId{};
  if (is_lowest) id = make_id(ground.nccl, making_.left());
  const auto told = group.broadcast_bytes(is_lowest ? encode_answer(id) : std::string(),
                                          making_.codec(), lowest_rank, making_.left());
  if (is_lowest && id && !told) nccl_give_up(*id);
  if (!told) return making_.about(told.error());
  if (!is_lowest) id = decode_answer(*told);
  if (id) return id;
  return making_.about_ranks(std::move(id).error(), [](int rank) { return rank == lowest_rank; });
}

/// Inside of the gate: a loss may abort it at any moment.
Result<void> Formation::enter(Impl& impl, const NcclUniqueId& id) const {
  const auto pass = impl.gate().enter();
  if (!pass) return communicator::not_own(pass.error());
  communicator::Alarm alarm(making_.group());
  const auto meanwhile = [&alarm]() -> Result<void> {
    auto raised = alarm.listen();
    if (!raised) return {};
    return communicator::not_own(*std::move(raised));
  };
  auto entered = impl.begin(id, making_.vote_begins());
  // Once more: NCCL has read its configuration files into the environment.
  if (auto refused = refusal_of_blocking(); entered && refused) entered = *std::move(refused);
  if (entered) entered = impl.settle(making_.vote_begins(), meanwhile);
  if (entered && options_.warm_up) {
    entered = warm_up(impl.shared_from_this(), making_.vote_begins(), meanwhile);
  }
  if (entered) return entered;
  if (impl.gate().is_closed()) return communicator::not_own(std::move(entered).error());
  if (entered.error().code != ErrorCode::aborted) alarm.raise(entered.error(), making_.left());
  return entered;
}

Result<std::shared_ptr<NcclCommunicator::Impl>> Formation::run() {
  if (auto refused = making_.refusal()) return *std::move(refused);
  const auto ground = prepare();
  const auto presences = call_roll(ground);
  if (!presences) return presences.error();
  StatelessProcessGroup& group = making_.group();
  communicator::Place place(group);
  for (const Presence& presence : *presences) place.processes.push_back(presence.process);
  const auto impl = std::make_shared<Impl>(*ground, options_, std::move(place), shared_);
  impl->watch(group);
  const auto id = agree_on_id(*ground);
  if (!id) return id.error();
  return making_.finish(
      impl, [&] { return enter(*impl, *id); },
      [&] {
        ++failed_count;
        nccl_give_up(*id);  // nothing, where another process has made it
      });
}

}  // namespace muster::nccl

MUSTER_BEGIN_NAMESPACE

int nccl_failed_attempts() { return nccl::failed_attempts(); }
void nccl_forgive_attempts() { nccl::forgive_attempts(); }
int nccl_given_up_handles() { return nccl::Reaper::given_up_count(); }

MUSTER_END_NAMESPACE
