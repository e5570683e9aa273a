#include "gloo/communicator_impl.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "client/failure.h"
#include "communicator/messages.h"
#include "communicator/timed_call.h"
#include "communicator/timeouts.h"
#include "gloo/reduction.h"
#include "gloo/sigpipe_guard.h"
#include "gloo/uneven.h"
#include "muster/codec.h"

// How a call runs: enter the gate -> is no other call in progress? -> Gloo, with one deadline for
// all that it waits for -> leave the gate. A call that fails inside Gloo ends the communicator.

namespace muster::gloo_internal {

using communicator::Operation;
using communicator::OperationCall;

namespace {

using namespace std::chrono_literals;

/// How long the store has to report which rank is gone. A connection ends as soon as its rank is
/// killed; the server waits for that rank to come back (2 s, unless it was configured otherwise).
constexpr Duration cause_timeout = 5s;

/// Equal on ranks that make the same call, and most probably different on others.
std::uint32_t tag_of(std::string_view operation, const std::vector<std::uint64_t>& numbers) {
  std::string text(operation);
  for (const std::uint64_t number : numbers) communicator::append_number(text, number);
  const std::uint64_t digest = base::digest_of(text);
  return static_cast<std::uint32_t>(digest ^ digest >> 32);
}

Transfer transfer_of(const OperationCall& call, Mesh& mesh, std::uint32_t tag) {
  return {mesh,      call.send, call.receive, call.count, call.type, call.reduction.operation(),
          call.rank, tag};
}

/// What a scaled sum adds up in place of what the host sends, which stays as it is.
std::vector<char> scaled_elements(const OperationCall& call, double factor, int world_size) {
  const bool is_of_all =
      call.operation == Operation::reduce_scatter || call.operation == Operation::reduce_scatter_v;
  const std::size_t count = is_of_all ? communicator::offset_of(call, world_size) : call.count;
  std::vector<char> scaled(count * size_of(call.type));
  multiply(scaled.data(), call.send, count, call.type, factor);
  return scaled;
}

void run_collective(const OperationCall& call, const Transfer& transfer) {
  switch (call.operation) {
    case Operation::all_reduce: return all_reduce(transfer);
    case Operation::broadcast: return broadcast(transfer);
    case Operation::reduce: return reduce(transfer);
    case Operation::all_gather: return all_gather(transfer);
    case Operation::reduce_scatter: return reduce_scatter(transfer);
    case Operation::all_to_all: return all_to_all(transfer);
    case Operation::gather: return gather(transfer);
    case Operation::scatter: return scatter(transfer);
    case Operation::all_gather_v: return all_gather_v(transfer, call.counts);
    case Operation::reduce_scatter_v: return reduce_scatter_v(transfer, call.counts);
    case Operation::gather_v: return gather_v(transfer, call.counts);
    case Operation::scatter_v: return scatter_v(transfer, call.counts);
    case Operation::send:
    case Operation::recv: return;  // see `post`
  }
}

bool is_transfer_to_peer(Operation operation) {
  return operation == Operation::send || operation == Operation::recv;
}

}  // namespace

/// The one call in progress. Calls of the same thread inside `grouped` belong to it.
class Impl::CallInProgress {
 public:
  explicit CallInProgress(Impl& impl) : impl_(impl) {
    std::thread::id nobody;
    is_first_ = impl.caller_.compare_exchange_strong(nobody, std::this_thread::get_id());
    is_allowed_ = is_first_ || (nobody == std::this_thread::get_id() && impl.is_in_group_);
  }
  ~CallInProgress() {
    if (is_first_) impl_.caller_ = std::thread::id();
  }
  CallInProgress(const CallInProgress&) = delete;
  CallInProgress& operator=(const CallInProgress&) = delete;

  bool is_allowed() const { return is_allowed_; }
  bool is_inner() const { return !is_first_; }

 private:
  Impl& impl_;
  bool is_first_ = false;
  bool is_allowed_ = false;
};

/// While it exists, sends and receives only begin. If the host's function throws after some have
/// begun, the communicator ends: the other ranks would wait for them.
class Impl::OpenGroup {
 public:
  explicit OpenGroup(Impl& impl) : impl_(impl) { impl_.is_in_group_ = true; }
  ~OpenGroup() {
    impl_.is_in_group_ = false;
    if (!has_returned_ && !impl_.posted_.empty()) {
      impl_.end(client::failure(ErrorCode::aborted,
                                "the host threw an exception inside `grouped`, after sends or "
                                "receives had begun"));
    }
    impl_.posted_.clear();
  }
  OpenGroup(const OpenGroup&) = delete;
  OpenGroup& operator=(const OpenGroup&) = delete;

  void returned() { has_returned_ = true; }

 private:
  Impl& impl_;
  bool has_returned_ = false;
};

Impl::Impl(const gloo::Options& options, communicator::Membership membership,
           std::shared_ptr<Mesh> mesh)
    : CommonImpl(std::move(membership), options, codec_id::gloo_communicator),
      abort_timeout_(communicator::abort_timeout_of(options.abort_timeout)),
      mesh_(std::move(mesh)) {}

Impl::~Impl() {
  lifecycle().unwatch();
  end(client::failure(ErrorCode::aborted, "the communicator's handle is gone"));
}

void Impl::close_inherited() {
  if (mesh_) mesh_->close_inherited();
}

void Impl::end(Error why) {
  if (!close_gate(std::move(why))) return;
  release_mesh();
  lifecycle().notify_host();
}

std::shared_ptr<Mesh> Impl::mesh() {
  const std::lock_guard lock(mesh_mutex_);
  return mesh_;
}

/// The last holder of the mesh waits for Gloo's thread: the thread that is started here, or a call
/// in progress.
void Impl::release_mesh() {
  std::shared_ptr<Mesh> mesh;
  {
    const std::lock_guard lock(mesh_mutex_);
    mesh = std::move(mesh_);
  }
  if (!mesh) return;
  mesh->transport().interrupt();
  communicator::start_thread("muster-gloo-end", [mesh = std::move(mesh), gate = lifecycle().gate(),
                                                 timeout = abort_timeout_] {
    if (!gate->wait_empty(timeout)) mesh->cut();
  });
}

/// The reason why a call failed inside Gloo, for its caller and for all later ones.
Error Impl::failure_of(const Mesh& mesh, const std::string& said) {
  if (auto reason = gate().reason()) return *std::move(reason);
  const int peer = mesh.transport().waited_for();
  const std::string whom = peer < 0 ? "" : " of rank " + std::to_string(peer);
  const auto left = mesh.transport().deadline() - Clock::now();
  if (left <= Clock::duration::zero()) {
    return client::failure(ErrorCode::timed_out,
                           "waited for the part" + whom +
                               ", which may wait for another rank; all must make the same call");
  }
  const auto limit = std::min(std::chrono::duration_cast<Duration>(left), cause_timeout);
  if (auto cause = lifecycle().await_cause(limit, call_began_, peer)) return *std::move(cause);
  return gloo_error(said + "; waited for the part" + whom +
                    ", and the store knows of no loss that explains it: the communicator has ended "
                    "there (its error says why)");
}

Result<void> Impl::run(std::string_view operation, Duration timeout,
                       const std::function<void(Mesh& mesh)>& work, const bool& is_in_host) {
  const auto began = Clock::now();
  const auto told = [&](Error error) { return about(operation, std::move(error), began); };
  const auto pass = gate().enter();
  if (!pass) return told(pass.error());
  const CallInProgress call(*this);
  if (!call.is_allowed()) {
    return told(
        client::failure(ErrorCode::busy, "another call of this communicator is in progress"));
  }
  const auto held = mesh();
  if (!held) return told(*gate().reason());
  std::string said;
  try {
    const SigpipeGuard guard;
    if (!call.is_inner()) {
      call_began_ = began;
      held->transport().begin(began + timeout);
    }
    work(*held);
    return {};
  } catch (const std::exception& error) {
    if (is_in_host) throw;
    said = error.what();
  }
  Error error = told(failure_of(*held, said));
  end(error);
  return error;
}

Result<void> Impl::perform(const OperationCall& call) {
  const auto refused = [&](std::string detail) {
    return about(call.name, client::invalid_argument(std::move(detail)), Clock::now());
  };
  if (call.stream != nullptr) return refused("stream: null, since host memory has none");
  const bool is_to_peer = is_transfer_to_peer(call.operation);
  if (is_to_peer && call.rank == membership().rank) return refused("peer: this rank itself");
  return run(call.name, call.timeout, [&](Mesh& mesh) {
    if (is_to_peer) {
      post(mesh, call);
    } else {
      collective(mesh, call);
    }
  });
}

void Impl::collective(Mesh& mesh, const OperationCall& call) {
  const std::optional<double> factor = call.reduction.factor();
  std::vector<std::uint64_t> terms{sequence_++,
                                   call.count,
                                   static_cast<std::uint64_t>(call.type),
                                   static_cast<std::uint64_t>(call.reduction.operation()),
                                   factor ? 1U : 0U,  // each rank has its own
                                   static_cast<std::uint64_t>(call.rank)};
  terms.insert(terms.end(), call.counts.begin(), call.counts.end());
  const std::uint32_t tag = tag_of(call.name, terms);
  if (call.count == 0 && call.counts.empty()) return;
  Transfer transfer = transfer_of(call, mesh, tag);
  std::vector<char> scaled;
  if (factor) {
    scaled = scaled_elements(call, *factor, membership().world_size);
    transfer.send = scaled.data();
  }
  run_collective(call, transfer);
}

void Impl::post(Mesh& mesh, const OperationCall& call) {
  if (call.count == 0) return;
  // Both sides use the same tag: the n-th send meets the n-th receive.
  const std::uint32_t tag = tag_of("posted", {call.count, static_cast<std::uint64_t>(call.type)});
  const auto direction =
      call.operation == Operation::send ? Posted::Direction::send : Posted::Direction::receive;
  Posted posted(transfer_of(call, mesh, tag), direction);
  if (is_in_group_) {
    posted_.push_back(std::move(posted));
  } else {
    posted.wait();
  }
}

Result<void> Impl::grouped(const std::function<Result<void>()>& calls, Duration timeout) {
  Result<void> called;
  bool is_in_host = false;
  const auto call = [&] {
    is_in_host = true;
    called = calls();
    is_in_host = false;
  };
  const auto work = [&](Mesh&) {
    if (is_in_group_) return call();  // belongs to the outer group
    OpenGroup group(*this);
    call();
    group.returned();
    for (Posted& posted : posted_) posted.wait();
  };
  auto waited = run("grouped", timeout, work, is_in_host);
  return called ? waited : called;
}

Result<void> Impl::close(Duration timeout) {
  const auto began = Clock::now();
  auto met = run("close", timeout, [&](Mesh& mesh) {
    lifecycle().begin_closing();
    barrier(mesh, tag_of("close", {sequence_}));
  });
  if (!met) return met;
  if (!gate().close(client::failure(ErrorCode::closed, "the communicator was closed"))) {
    return about("close", *gate().reason(), began);
  }
  release_mesh();
  return {};
}

}  // namespace muster::gloo_internal
