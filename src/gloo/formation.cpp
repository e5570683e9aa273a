#include "gloo/formation.h"

#include <gloo/config.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <optional>
#include <thread>
#include <utility>

#include <gloo/transport/address.h>

#include "client/failure.h"
#include "communicator/alarm.h"
#include "communicator/patience.h"
#include "communicator/report.h"
#include "gloo/another_gloo.h"
#include "muster/codec.h"

namespace muster::gloo {
namespace {

using namespace std::chrono_literals;

constexpr Duration between_looks = 1ms;

/// So long a rank that has failed still listens for the others.
constexpr Duration listens_on_for = 200ms;

/// What goes over the wire as it lies in memory.
std::uint64_t terms() {
  constexpr std::uint16_t one = 1;
  const bool is_little = *reinterpret_cast<const unsigned char*>(&one) == 1;
  return communicator::digest_of(
      "address " + std::to_string(::gloo::transport::Address::kMaxByteSize) + " size " +
      std::to_string(sizeof(std::size_t)) + " little " + std::to_string(int{is_little}));
}

/// What each rank says.
Presence told_of(const StatelessProcessGroup& group, std::optional<Error> trouble) {
  Presence own;
  own.rank = group.rank();
  own.members = communicator::members_of(group);
  own.process = group.store().process().id;
  own.terms = terms();
  own.version = GLOO_VERSION;
  own.host = communicator::host_digest();
  own.trouble = std::move(trouble);
  return own;
}

/// Another rank may be connecting to this one, and not know yet that it is in vain.
void give_up(const std::shared_ptr<Mesh>& mesh) {
  const auto let_go = [mesh] {
    std::this_thread::sleep_for(listens_on_for);
    mesh->give_up();
  };
  if (!communicator::start_thread("muster-gives-up", let_go)) mesh->give_up();
}

}  // namespace

Presence present(const StatelessProcessGroup& group, const Endpoint& endpoint, const Mesh& mesh) {
  Presence own = told_of(group, std::nullopt);
  own.family = endpoint.family == AF_INET6 ? 6 : 4;
  own.is_loopback = endpoint.is_loopback;
  own.addresses = mesh.addresses();
  return own;
}

Formation::Formation(StatelessProcessGroup& group, GlooOptions options)
    : making_(group, codec_id::gloo_communicator, options.timeout), options_(std::move(options)) {}

/// All that can be wrong in this process alone. Gloo's thread takes over that it takes no signals.
Result<Formation::Ground> Formation::prepare() const {
  const StatelessProcessGroup& group = making_.group();
  return communicator::with_patience<Ground>(
      "preparing Gloo", making_.left(),
      [options = options_, store = group.store().address(), rank = group.rank(),
       world_size = group.world_size()]() -> Result<Ground> {
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
        return Ground{*std::move(endpoint), *std::move(mesh)};
      },
      [](const Result<Ground>&) {});
}

Result<std::vector<Presence>> Formation::call_roll(const Result<Ground>& ground) const {
  const StatelessProcessGroup& group = making_.group();
  Presence own;
  if (ground) {
    own = present(group, ground->endpoint, *ground->mesh);
  } else {
    own = told_of(group, ground.error());
  }
  return making_.call_roll(
      own, [&](std::string_view bytes) { return decode_presence(bytes, group.world_size()); });
}

/// On a thread of its own, since Gloo does not look at the time while it waits to be connected to:
/// when this returns an error it may go on, until it is given up.
Result<void> Formation::connect(Impl& impl, const std::shared_ptr<Mesh>& mesh,
                                std::vector<std::string> theirs) const {
  const auto done = std::make_shared<std::promise<Result<void>>>();
  auto connected = done->get_future();
  const bool is_started = communicator::start_thread(
      "muster-connects",
      [done, mesh, theirs = std::move(theirs)] { done->set_value(mesh->connect(theirs)); });
  if (!is_started) {
    return client::failure(ErrorCode::resource_exhausted, "the system has no thread left");
  }
  communicator::Alarm alarm(making_.group());
  std::optional<Error> trouble;
  while (connected.wait_for(between_looks) != std::future_status::ready) {
    if (auto raised = alarm.listen()) trouble = communicator::not_own(*std::move(raised));
    if (impl.gate().is_closed()) trouble = communicator::not_own(*impl.gate().reason());
    if (!trouble && communicator::Making::Clock::now() >= making_.vote_begins()) {
      trouble = client::failure(ErrorCode::timed_out, "Gloo was still connecting to rank " +
                                                          std::to_string(mesh->waited_for()));
    }
    if (!trouble) continue;
    mesh->begin_no_more();
    break;
  }
  if (!trouble) {
    auto result = connected.get();
    if (!result) trouble = std::move(result).error();
  }
  if (!trouble) return {};
  if (trouble->code != ErrorCode::aborted) alarm.raise(*trouble, making_.left());
  return *std::move(trouble);
}

Result<void> Formation::enter(Impl& impl, const std::shared_ptr<Mesh>& mesh,
                              const std::vector<Presence>& presences) const {
  const auto pass = impl.gate().enter();
  if (!pass) return communicator::not_own(pass.error());
  const auto own = static_cast<std::size_t>(making_.group().rank());
  std::vector<std::string> theirs;
  for (const Presence& presence : presences) theirs.push_back(presence.addresses[own]);
  return connect(impl, mesh, std::move(theirs));
}

Result<std::shared_ptr<GlooCommunicator::Impl>> Formation::run() {
  if (auto refused = making_.refusal()) return *std::move(refused);
  const auto ground = prepare();
  const auto presences = call_roll(ground);
  if (!presences) return presences.error();
  StatelessProcessGroup& group = making_.group();
  communicator::Place place(group);
  for (const Presence& presence : *presences) place.processes.push_back(presence.process);
  const auto impl = std::make_shared<Impl>(options_, std::move(place), ground->mesh);
  impl->watch(group);
  bool has_failed = false;
  return making_.finish(
      impl,
      [&] {
        auto entered = enter(*impl, ground->mesh, *presences);
        has_failed = !entered;
        return entered;
      },
      [&] {
        if (has_failed) give_up(ground->mesh);
      });
}

}  // namespace muster::gloo
