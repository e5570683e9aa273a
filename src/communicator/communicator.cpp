#include "muster/communicator.h"

#include <map>
#include <utility>
#include <vector>

#include "client/failure.h"
#include "communicator/communicator_impl.h"
#include "communicator/operation_call.h"
#include "communicator/timeouts.h"

// The handle: refuses what no communicator can do, and hands the rest to the one behind it. A call
// holds a reference of its own to that: `on_end` may lead the host to drop the handle meanwhile.

MUSTER_BEGIN_NAMESPACE

using communicator::Operation;
using communicator::OperationCall;
using communicator::refusal_of;

namespace {

using ImplPointer = std::shared_ptr<Communicator::Impl>;

/// Runs `call` with the timeout that `given` means.
template <class Function>
Result<void> with_timeout(const ImplPointer& impl, std::string_view operation, Duration given,
                          const Function& call) {
  if (auto refused = refusal_of(impl, operation)) return *std::move(refused);
  const auto timeout = communicator::timeout_or(given, impl->timeout());
  if (!timeout) {
    return impl->about(operation, timeout.error(), std::chrono::steady_clock::now());
  }
  return call(*timeout);
}

Result<void> perform(ImplPointer impl, OperationCall call) {
  call.name = name_of(call.operation);
  bool is_performed = false;
  auto done = with_timeout(impl, call.name, call.timeout, [&](Duration timeout) -> Result<void> {
    call.timeout = timeout;
    const auto& membership = impl->membership();
    if (auto refused = refusal_of(call, membership.rank, membership.world_size)) {
      return impl->about(call.name, *std::move(refused), std::chrono::steady_clock::now());
    }
    is_performed = true;
    return impl->perform(call);
  });
  if (!is_performed && impl && !impl->refusal(call.name)) impl->refused(done.error());
  return done;
}

Result<void> perform_v(const ImplPointer& impl, OperationCall call,
                       Span<const std::size_t> counts) {
  call.counts = counts;
  return perform(impl, call);
}

}  // namespace

Communicator::Impl::~Impl() = default;

Communicator::Communicator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::Communicator(Communicator&&) noexcept = default;

Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this == &other) return *this;
  release();
  impl_ = std::move(other.impl_);
  return *this;
}

void Communicator::release() {
  if (impl_) impl_->release();
}

Communicator::~Communicator() { release(); }

std::string_view Communicator::kind() const { return impl_ ? impl_->kind() : std::string_view(); }
int Communicator::rank() const { return impl_ ? impl_->membership().rank : -1; }
int Communicator::world_size() const { return impl_ ? impl_->membership().world_size : 0; }
std::uint64_t Communicator::epoch() const { return impl_ ? impl_->membership().epoch : 0; }

const std::string& Communicator::group() const {
  static const std::string none;
  return impl_ ? impl_->membership().group : none;
}

CreationTimes Communicator::creation_times() const {
  return impl_ ? impl_->creation_times() : CreationTimes();
}

std::optional<Error> Communicator::error() const {
  const ImplPointer impl = impl_;
  if (auto refused = refusal_of(impl, "")) return refused;
  return impl->error();
}

Result<void> Communicator::all_reduce(const void* send, void* receive, std::size_t count,
                                      DataType type, Reduction reduction, void* stream,
                                      Duration timeout) {
  return perform(
      impl_, {Operation::all_reduce, send, receive, count, type, reduction, 0, stream, timeout});
}

Result<void> Communicator::broadcast(const void* send, void* receive, std::size_t count,
                                     DataType type, int root, void* stream, Duration timeout) {
  return perform(impl_, {Operation::broadcast, send, receive, count, type, ReduceOp::sum, root,
                         stream, timeout});
}

Result<void> Communicator::reduce(const void* send, void* receive, std::size_t count, DataType type,
                                  Reduction reduction, int root, void* stream, Duration timeout) {
  return perform(impl_,
                 {Operation::reduce, send, receive, count, type, reduction, root, stream, timeout});
}

Result<void> Communicator::all_gather(const void* send, void* receive, std::size_t send_count,
                                      DataType type, void* stream, Duration timeout) {
  return perform(impl_, {Operation::all_gather, send, receive, send_count, type, ReduceOp::sum, 0,
                         stream, timeout});
}

Result<void> Communicator::reduce_scatter(const void* send, void* receive,
                                          std::size_t receive_count, DataType type,
                                          Reduction reduction, void* stream, Duration timeout) {
  return perform(impl_, {Operation::reduce_scatter, send, receive, receive_count, type, reduction,
                         0, stream, timeout});
}

Result<void> Communicator::all_to_all(const void* send, void* receive, std::size_t count,
                                      DataType type, void* stream, Duration timeout) {
  return perform(impl_, {Operation::all_to_all, send, receive, count, type, ReduceOp::sum, 0,
                         stream, timeout});
}

Result<void> Communicator::gather(const void* send, void* receive, std::size_t count, DataType type,
                                  int root, void* stream, Duration timeout) {
  return perform(
      impl_, {Operation::gather, send, receive, count, type, ReduceOp::sum, root, stream, timeout});
}

Result<void> Communicator::scatter(const void* send, void* receive, std::size_t count,
                                   DataType type, int root, void* stream, Duration timeout) {
  return perform(impl_, {Operation::scatter, send, receive, count, type, ReduceOp::sum, root,
                         stream, timeout});
}

Result<void> Communicator::send(const void* buffer, std::size_t count, DataType type, int peer,
                                void* stream, Duration timeout) {
  return perform(
      impl_, {Operation::send, buffer, nullptr, count, type, ReduceOp::sum, peer, stream, timeout});
}

Result<void> Communicator::recv(void* buffer, std::size_t count, DataType type, int peer,
                                void* stream, Duration timeout) {
  return perform(
      impl_, {Operation::recv, nullptr, buffer, count, type, ReduceOp::sum, peer, stream, timeout});
}

Result<void> Communicator::all_gather_v(const void* send, void* receive,
                                        Span<const std::size_t> counts, DataType type, void* stream,
                                        Duration timeout) {
  return perform_v(
      impl_, {Operation::all_gather_v, send, receive, 0, type, ReduceOp::sum, 0, stream, timeout},
      counts);
}

Result<void> Communicator::reduce_scatter_v(const void* send, void* receive,
                                            Span<const std::size_t> counts, DataType type,
                                            Reduction reduction, void* stream, Duration timeout) {
  return perform_v(
      impl_, {Operation::reduce_scatter_v, send, receive, 0, type, reduction, 0, stream, timeout},
      counts);
}

Result<void> Communicator::gather_v(const void* send, void* receive, Span<const std::size_t> counts,
                                    DataType type, int root, void* stream, Duration timeout) {
  return perform_v(
      impl_, {Operation::gather_v, send, receive, 0, type, ReduceOp::sum, root, stream, timeout},
      counts);
}

Result<void> Communicator::scatter_v(const void* send, void* receive,
                                     Span<const std::size_t> counts, DataType type, int root,
                                     void* stream, Duration timeout) {
  return perform_v(
      impl_, {Operation::scatter_v, send, receive, 0, type, ReduceOp::sum, root, stream, timeout},
      counts);
}

Result<void> Communicator::grouped(const std::function<Result<void>()>& calls, Duration timeout) {
  const ImplPointer impl = impl_;
  return with_timeout(impl, "grouped", timeout, [&](Duration resolved) -> Result<void> {
    if (calls) return impl->grouped(calls, resolved);
    return impl->about("grouped", client::invalid_argument("calls: empty"),
                       std::chrono::steady_clock::now());
  });
}

Result<void> Communicator::attach(StatelessProcessGroup& group, Duration timeout) {
  const ImplPointer impl = impl_;
  return with_timeout(impl, "attach", timeout,
                      [&](Duration resolved) { return impl->attach(group, resolved); });
}

void Communicator::abort() {
  const ImplPointer impl = impl_;
  if (!refusal_of(impl, "")) impl->abort_all({impl});
}

void Communicator::abort_all(Span<Communicator* const> communicators) {
  std::map<std::string_view, std::vector<ImplPointer>> by_kind;
  for (const Communicator* const each : communicators) {
    if (each == nullptr || refusal_of(each->impl_, "")) continue;
    by_kind[each->impl_->kind()].push_back(each->impl_);
  }
  for (const auto& [kind, impls] : by_kind) impls.front()->abort_all(impls);
}

Result<void> Communicator::close(Duration timeout) {
  const ImplPointer impl = impl_;
  return with_timeout(impl, "close", timeout,
                      [&](Duration resolved) { return impl->close(resolved); });
}

MUSTER_END_NAMESPACE
