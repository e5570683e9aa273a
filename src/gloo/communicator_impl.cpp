#include "gloo/communicator_impl.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include "client/failure.h"
#include "communicator/patience.h"
#include "communicator/report.h"
#include "gloo/quiet_pipe.h"

MUSTER_BEGIN_NAMESPACE

namespace {

using namespace std::chrono_literals;

/// A connection ends at once when its rank is killed; the store waits for that rank to come back
/// for its grace, 2 s unless the server was told otherwise, and then says who it was.
constexpr Duration patience_for_cause = 5s;

}  // namespace

/// The one call that is under way; those of the same thread inside of `grouped` belong to it.
class GlooCommunicator::Impl::Turn {
 public:
  explicit Turn(Impl& impl) : impl_(impl) {
    std::thread::id nobody;
    is_first_ = impl.caller_.compare_exchange_strong(nobody, std::this_thread::get_id());
    is_mine_ = is_first_ || (nobody == std::this_thread::get_id() && impl.is_in_group_);
  }
  ~Turn() {
    if (is_first_) impl_.caller_ = std::thread::id();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool is_mine() const { return is_mine_; }
  bool is_inner() const { return !is_first_; }

 private:
  Impl& impl_;
  bool is_first_ = false;
  bool is_mine_ = false;
};

/// Sends and receives only begin as long as this lives; what has begun goes with it. If the host's
/// function has thrown, the other ranks would wait for that: then the communicator ends.
class GlooCommunicator::Impl::Group {
 public:
  explicit Group(Impl& impl) : impl_(impl) { impl_.is_in_group_ = true; }
  ~Group() {
    impl_.is_in_group_ = false;
    if (!has_returned_ && !impl_.posted_.empty()) {
      impl_.end(client::failure(ErrorCode::aborted,
                                "by an exception of the host's inside of `grouped`, after sends or "
                                "receives had begun"));
    }
    impl_.posted_.clear();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void returned() { has_returned_ = true; }

 private:
  Impl& impl_;
  bool has_returned_ = false;
};

GlooCommunicator::Impl::Impl(GlooOptions options, communicator::Place place,
                             std::shared_ptr<gloo::Mesh> mesh)
    : HasLife(std::move(place), options.on_loss, options.on_over),
      options_(std::move(options)),
      mesh_(std::move(mesh)) {}

GlooCommunicator::Impl::~Impl() {
  unwatch();
  end(client::failure(ErrorCode::aborted, "the communicator's handle is gone"));
}

/// Takes no lock: the thread that held it when the process forked does not exist here.
void GlooCommunicator::Impl::close_inherited() {
  if (mesh_) mesh_->close_inherited();
}

void GlooCommunicator::Impl::end(Error why) {
  if (!life().close(std::move(why))) return;
  retire();
  life().tell_host();
}

std::shared_ptr<gloo::Mesh> GlooCommunicator::Impl::mesh() {
  const std::lock_guard lock(mesh_mutex_);
  return mesh_;
}

/// The last who holds the mesh waits for its thread: this one, or a call that is inside.
void GlooCommunicator::Impl::retire() {
  std::shared_ptr<gloo::Mesh> mesh;
  {
    const std::lock_guard lock(mesh_mutex_);
    mesh = std::move(mesh_);
  }
  if (!mesh) return;
  mesh->transport().interrupt();
  communicator::start_thread("muster-gloo-end",
                             [mesh = std::move(mesh), gate = life().gate(),
                              patience = communicator::patience_of(options_.abort_patience)] {
                               if (!gate->wait_empty(patience)) mesh->cut();
                             });
}

std::optional<Error> GlooCommunicator::Impl::refusal_of(const Subject& subject) const {
  communicator::Arguments arguments = subject.arguments;
  arguments.count = subject.count;
  arguments.parts = subject.parts;
  if (auto refused = communicator::refusal_of(arguments, place().world_size)) return refused;
  if (subject.stream != nullptr) {
    return client::invalid_argument("stream: null, since host memory has none");
  }
  if (subject.count == 0) return std::nullopt;
  if (subject.is_needed_to_send && subject.send == nullptr) {
    return client::invalid_argument("send: null");
  }
  if (subject.is_needed_to_receive && subject.receive == nullptr) {
    return client::invalid_argument("receive: null");
  }
  if (subject.are_buffers_two && subject.send == subject.receive && place().world_size > 1) {
    return client::invalid_argument("send and receive: not the same buffer");
  }
  return std::nullopt;
}

/// The same on ranks that make the same call, and most unlikely the same on others.
std::uint32_t GlooCommunicator::Impl::tag_of(std::string_view operation,
                                             std::initializer_list<std::uint64_t> of_all_ranks) {
  std::string text(operation);
  for (const std::uint64_t number : of_all_ranks) communicator::append_number(text, number);
  const std::uint64_t digest = communicator::digest_of(text);
  return static_cast<std::uint32_t>(digest ^ digest >> 32);
}

gloo::Operation GlooCommunicator::Impl::operation_of(const Subject& subject, gloo::Mesh& mesh,
                                                     std::uint32_t tag) {
  const communicator::Arguments& arguments = subject.arguments;
  return {mesh,           subject.send,        subject.receive, subject.count,
          arguments.type, arguments.operation, arguments.rank,  tag};
}

/// What a call that failed inside of Gloo came to, for its caller and for all later ones.
Error GlooCommunicator::Impl::trouble_of(const gloo::Mesh& mesh, const std::string& said) {
  if (auto reason = gate().reason()) return *std::move(reason);
  const int peer = mesh.transport().waited_for();
  const std::string whom = peer < 0 ? "" : " of rank " + std::to_string(peer);
  const auto left = mesh.transport().deadline() - Clock::now();
  if (left <= Clock::duration::zero()) {
    return client::failure(ErrorCode::timed_out,
                           "waited for the part" + whom +
                               ", which may wait for another rank; all must make the same call");
  }
  const auto patience = std::min(std::chrono::duration_cast<Duration>(left), patience_for_cause);
  if (auto cause = life().await_cause(patience, call_began_, peer)) {
    return *std::move(cause);
  }
  return gloo::gloo_error(
      said + "; waited for the part" + whom +
      ", and the store knows of no loss that explains it: it is over there (its error says why)");
}

Result<void> GlooCommunicator::Impl::run(std::string_view operation, Duration timeout,
                                         const std::function<void(gloo::Mesh& mesh)>& work,
                                         const bool& is_in_host) {
  const auto began = Clock::now();
  const auto told = [&](Error error) { return about(operation, std::move(error), began); };
  const auto pass = gate().enter();
  if (!pass) return told(pass.error());
  const Turn turn(*this);
  if (!turn.is_mine()) {
    return told(client::failure(ErrorCode::busy, "another call of this communicator is under way"));
  }
  const auto resolved = communicator::timeout_or(timeout, options_.timeout);
  if (!resolved) return told(resolved.error());
  const auto held = mesh();
  if (!held) return told(*gate().reason());
  std::string said;
  try {
    const gloo::QuietPipe quiet;
    if (!turn.is_inner()) {
      call_began_ = began;
      held->transport().begin(began + *resolved);
    }
    work(*held);
    return {};
  } catch (const std::exception& error) {
    if (is_in_host) throw;
    said = error.what();
  }
  Error error = told(trouble_of(*held, said));
  end(error);
  return error;
}

Result<void> GlooCommunicator::Impl::collective(const Subject& subject, Work work) {
  if (auto refused = refusal_of(subject)) {
    return about(subject.operation, *std::move(refused), Clock::now());
  }
  return run(subject.operation, subject.timeout, [&](gloo::Mesh& mesh) {
    const communicator::Arguments& arguments = subject.arguments;
    const std::uint32_t tag = tag_of(
        subject.operation, {sequence_++, subject.count, static_cast<std::uint64_t>(arguments.type),
                            static_cast<std::uint64_t>(arguments.operation),
                            static_cast<std::uint64_t>(arguments.rank)});
    if (subject.count > 0) work(operation_of(subject, mesh, tag));
  });
}

Result<void> GlooCommunicator::Impl::post(const Subject& subject,
                                          gloo::Posted::Direction direction) {
  auto refused = refusal_of(subject);
  if (!refused && subject.arguments.rank == place().rank) {
    refused = client::invalid_argument("peer: this rank itself");
  }
  if (refused) return about(subject.operation, *std::move(refused), Clock::now());
  return run(subject.operation, subject.timeout, [&](gloo::Mesh& mesh) {
    if (subject.count == 0) return;
    // Both ranks' part has one name: the n-th send meets the n-th receive.
    const std::uint32_t tag =
        tag_of("posted", {subject.count, static_cast<std::uint64_t>(subject.arguments.type)});
    gloo::Posted posted(operation_of(subject, mesh, tag), direction);
    if (is_in_group_) {
      posted_.push_back(std::move(posted));
    } else {
      posted.wait();
    }
  });
}

Result<void> GlooCommunicator::Impl::grouped(const std::function<Result<void>()>& calls,
                                             Duration timeout) {
  if (!calls) return about("grouped", client::invalid_argument("calls: empty"), Clock::now());
  Result<void> called;
  bool is_in_host = false;
  const auto call = [&] {
    is_in_host = true;
    called = calls();
    is_in_host = false;
  };
  const auto work = [&](gloo::Mesh&) {
    if (is_in_group_) return call();  // all of it belongs to the outer one
    Group group(*this);
    call();
    group.returned();
    for (gloo::Posted& posted : posted_) posted.wait();
  };
  auto waited = run("grouped", timeout, work, is_in_host);
  return called ? waited : called;
}

Result<void> GlooCommunicator::Impl::close(Duration timeout) {
  const auto began = Clock::now();
  auto met = run("close", timeout, [&](gloo::Mesh& mesh) {
    life().begin_closing();
    gloo::barrier(mesh, tag_of("close", {sequence_}));
  });
  if (!met) return met;
  if (!gate().close(client::failure(ErrorCode::closed, "the communicator was closed"))) {
    return about("close", *gate().reason(), began);
  }
  retire();
  return {};
}

MUSTER_END_NAMESPACE
