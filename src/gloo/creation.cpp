#include "gloo/creation.h"

#include <gloo/config.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <optional>
#include <thread>
#include <utility>

#include <gloo/transport/address.h>

#include "base/digest.h"
#include "client/failure.h"
#include "client/interruption.h"
#include "communicator/messages.h"
#include "communicator/timed_call.h"
#include "gloo/another_gloo.h"
#include "muster/codec.h"

namespace muster::gloo_internal {
namespace {

using namespace std::chrono_literals;

constexpr Duration between_looks = 1ms;

/// How long a rank that has failed still listens for the others.
constexpr Duration listens_on_for = 200ms;

/// A digest of this build's memory layout, as far as Gloo sends it over the wire.
std::uint64_t terms() {
  constexpr std::uint16_t one = 1;
  const bool is_little = *reinterpret_cast<const unsigned char*>(&one) == 1;
  return base::digest_of("address " + std::to_string(::gloo::transport::Address::kMaxByteSize) +
                         " size " + std::to_string(sizeof(std::size_t)) + " little " +
                         std::to_string(int{is_little}));
}

/// The report without addresses.
PreflightReport told_of(const StatelessProcessGroup& group, std::optional<Error> failure) {
  PreflightReport own;
  own.rank = group.rank();
  own.members = communicator::digest_of_epoch(group);
  own.process = group.store().process().id;
  own.terms = terms();
  own.version = GLOO_VERSION;
  own.host = communicator::host_digest();
  own.failure = std::move(failure);
  return own;
}

/// Another rank may still be connecting to this one.
void give_up(const std::shared_ptr<Mesh>& mesh) {
  const auto let_go = [mesh] {
    std::this_thread::sleep_for(listens_on_for);
    mesh->give_up();
  };
  if (!communicator::start_thread("muster-give-up", let_go)) mesh->give_up();
}

}  // namespace

PreflightReport present(const StatelessProcessGroup& group, const Endpoint& endpoint,
                        const Mesh& mesh) {
  PreflightReport own = told_of(group, std::nullopt);
  own.family = endpoint.family == AF_INET6 ? 6 : 4;
  own.is_loopback = endpoint.is_loopback;
  own.addresses = mesh.addresses();
  return own;
}

Creation::Creation(StatelessProcessGroup& group, gloo::Options options)
    : agreement_(group, codec_id::gloo_communicator, options.timeout),
      options_(std::move(options)) {}

/// Finds everything that can be wrong in this process alone. Gloo's thread inherits that signals
/// are blocked.
Result<Creation::Prepared> Creation::prepare() const {
  const StatelessProcessGroup& group = agreement_.group();
  return communicator::call_with_timeout<Prepared>(
      "preparing Gloo", agreement_.left(),
      [options = options_, store = group.store().address(), rank = group.rank(),
       world_size = group.world_size()]() -> Result<Prepared> {
        if (const auto other = another_gloo()) {
          return client::failure(ErrorCode::gloo,
                                 *other +
                                     " is loaded, which has a Gloo of its own: the two would "
                                     "call each other's functions. Use a process without it");
        }
        auto endpoint = find_endpoint(options, store);
        if (!endpoint) return std::move(endpoint).error();
        auto mesh = Mesh::open(*endpoint, rank, world_size);
        if (!mesh) return std::move(mesh).error();
        return Prepared{*std::move(endpoint), *std::move(mesh)};
      },
      [](const Result<Prepared>&) {});
}

Result<std::vector<PreflightReport>> Creation::run_preflight(
    const Result<Prepared>& prepared) const {
  const StatelessProcessGroup& group = agreement_.group();
  PreflightReport own;
  if (prepared) {
    own = present(group, prepared->endpoint, *prepared->mesh);
  } else {
    own = told_of(group, prepared.error());
  }
  return agreement_.run_preflight(
      own, [&](std::string_view bytes) { return decode_preflight(bytes, group.world_size()); });
}

/// Connects on a thread of its own, because Gloo has no deadline while it waits for a connection.
/// The thread may still run when this returns an error, until the mesh is given up.
Result<void> Creation::connect(Impl& impl, const std::shared_ptr<Mesh>& mesh,
                               std::vector<std::string> theirs,
                               communicator::FailureNotice& notice) const {
  const auto done = std::make_shared<std::promise<Result<void>>>();
  auto connected = done->get_future();
  const bool is_started = communicator::start_thread(
      "muster-connect",
      [done, mesh, theirs = std::move(theirs)] { done->set_value(mesh->connect(theirs)); });
  if (!is_started) {
    return client::failure(ErrorCode::resource_exhausted, "the system has no thread left");
  }
  client::Interruption interruption;
  std::optional<Error> failure;
  while (connected.wait_for(between_looks) != std::future_status::ready) {
    if (auto posted = notice.poll()) failure = communicator::caused_elsewhere(*std::move(posted));
    if (impl.gate().is_closed()) failure = communicator::caused_elsewhere(*impl.gate().reason());
    if (!failure && communicator::Agreement::Clock::now() >= agreement_.vote_begins()) {
      failure = client::failure(ErrorCode::timed_out, "Gloo was still connecting to rank " +
                                                          std::to_string(mesh->waited_for()));
    }
    if (!failure && interruption.is_there()) failure = client::Interruption::error();
    if (!failure) continue;
    mesh->begin_no_more();
    break;
  }
  if (!failure) {
    auto result = connected.get();
    if (!result) failure = std::move(result).error();
  }
  if (!failure) return {};
  if (failure->code != ErrorCode::aborted) notice.post(*failure, agreement_.left());
  return *std::move(failure);
}

Result<void> Creation::enter(Impl& impl, const std::shared_ptr<Mesh>& mesh,
                             const std::vector<PreflightReport>& reports,
                             communicator::FailureNotice& notice) const {
  const auto pass = impl.gate().enter();
  if (!pass) return communicator::caused_elsewhere(pass.error());
  const auto own = static_cast<std::size_t>(agreement_.group().rank());
  std::vector<std::string> theirs;
  for (const PreflightReport& report : reports) theirs.push_back(report.addresses[own]);
  return connect(impl, mesh, std::move(theirs), notice);
}

Result<std::shared_ptr<Impl>> Creation::run() {
  if (auto refused = agreement_.refusal()) return *std::move(refused);
  const auto prepared = prepare();
  const auto reports = run_preflight(prepared);
  if (!reports) return reports.error();
  StatelessProcessGroup& group = agreement_.group();
  communicator::Membership membership(group);
  for (const PreflightReport& report : *reports) membership.processes.push_back(report.process);
  const auto impl = std::make_shared<Impl>(options_, std::move(membership), prepared->mesh);
  impl->watch(group);
  communicator::FailureNotice notice(group);
  bool has_failed = false;
  return agreement_.finish(
      impl, notice,
      [&] {
        auto entered = enter(*impl, prepared->mesh, *reports, notice);
        has_failed = !entered;
        return entered;
      },
      [&] {
        if (has_failed) give_up(prepared->mesh);
      });
}

}  // namespace muster::gloo_internal

MUSTER_BEGIN_NAMESPACE

Result<Communicator> gloo::create(StatelessProcessGroup& group, Options options) {
  auto made = gloo_internal::Creation(group, std::move(options)).run();
  if (!made) return std::move(made).error();
  return Communicator(*std::move(made));
}

MUSTER_END_NAMESPACE
