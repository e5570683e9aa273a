#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "client/failure.h"
#include "gloo/communicator_impl.h"
#include "gloo/formation.h"
#include "muster/codec.h"

// The public face of a communicator: what each call needs, and which operation it is.

MUSTER_BEGIN_NAMESPACE

using communicator::refusal_of;
using Impl = GlooCommunicator::Impl;

namespace {

// An impl is held by value: the host's handler may drop the communicator while it is called.

Result<void> collective(std::shared_ptr<Impl> impl, const Impl::Subject& subject, Impl::Work work) {
  if (auto refused = refusal_of(impl, subject.operation)) return *std::move(refused);
  return impl->collective(subject, work);
}

Result<void> post(std::shared_ptr<Impl> impl, const Impl::Subject& subject,
                  gloo::Posted::Direction direction) {
  if (auto refused = refusal_of(impl, subject.operation)) return *std::move(refused);
  return impl->post(subject, direction);
}

}  // namespace

Result<GlooCommunicator> GlooCommunicator::create(StatelessProcessGroup& group,
                                                  GlooOptions options) {
  auto made = gloo::Formation(group, std::move(options)).run();
  if (!made) return std::move(made).error();
  return GlooCommunicator(*std::move(made));
}

GlooCommunicator::GlooCommunicator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
GlooCommunicator::GlooCommunicator(GlooCommunicator&&) noexcept = default;

GlooCommunicator& GlooCommunicator::operator=(GlooCommunicator&& other) noexcept {
  if (this == &other) return *this;
  let_go();
  impl_ = std::move(other.impl_);
  return *this;
}

/// When it returns, the host's handler does not run any more.
void GlooCommunicator::let_go() {
  if (!impl_) return;
  if (impl_->refusal("")) {
    impl_->close_inherited();
    return base::keep_forever(std::move(impl_));
  }
  impl_->unwatch();
  impl_->end(client::failure(ErrorCode::aborted, "the communicator's handle is gone"));
}

GlooCommunicator::~GlooCommunicator() { let_go(); }

int GlooCommunicator::rank() const { return impl_ ? impl_->place().rank : -1; }
int GlooCommunicator::world_size() const { return impl_ ? impl_->place().world_size : 0; }
std::uint64_t GlooCommunicator::epoch() const { return impl_ ? impl_->place().epoch : 0; }

MakingTimes GlooCommunicator::making() const { return impl_ ? impl_->making() : MakingTimes(); }

const std::string& GlooCommunicator::group() const {
  static const std::string none;
  return impl_ ? impl_->place().group : none;
}

std::optional<Error> GlooCommunicator::error() const {
  if (auto refused = refusal_of(impl_, "")) return refused;
  return impl_->gate().reason();
}

Result<void> GlooCommunicator::all_reduce(const void* send, void* receive, std::size_t count,
                                          DataType type, ReduceOp operation, void* stream,
                                          Duration timeout) {
  return collective(impl_, {"all_reduce", timeout, stream, {type, operation}, send, receive, count},
                    gloo::all_reduce);
}

Result<void> GlooCommunicator::broadcast(const void* send, void* receive, std::size_t count,
                                         DataType type, int root, void* stream, Duration timeout) {
  Impl::Subject subject{"broadcast", timeout, stream, {type, ReduceOp::sum, root},
                        send,        receive, count};
  subject.is_needed_to_send = rank() == root;
  return collective(impl_, subject, gloo::broadcast);
}

Result<void> GlooCommunicator::reduce(const void* send, void* receive, std::size_t count,
                                      DataType type, ReduceOp operation, int root, void* stream,
                                      Duration timeout) {
  Impl::Subject subject{"reduce", timeout, stream, {type, operation, root}, send, receive, count};
  subject.is_needed_to_receive = rank() == root;
  return collective(impl_, subject, gloo::reduce);
}

Result<void> GlooCommunicator::all_gather(const void* send, void* receive, std::size_t send_count,
                                          DataType type, void* stream, Duration timeout) {
  Impl::Subject subject{"all_gather", timeout, stream, {type}, send, receive, send_count};
  subject.parts = static_cast<std::size_t>(world_size());
  return collective(impl_, subject, gloo::all_gather);
}

Result<void> GlooCommunicator::reduce_scatter(const void* send, void* receive,
                                              std::size_t receive_count, DataType type,
                                              ReduceOp operation, void* stream, Duration timeout) {
  Impl::Subject subject{"reduce_scatter", timeout,      stream, {type, operation}, send,
                        receive,          receive_count};
  subject.parts = static_cast<std::size_t>(world_size());
  return collective(impl_, subject, gloo::reduce_scatter);
}

Result<void> GlooCommunicator::all_to_all(const void* send, void* receive, std::size_t count,
                                          DataType type, void* stream, Duration timeout) {
  Impl::Subject subject{"all_to_all", timeout, stream, {type}, send, receive, count};
  subject.parts = static_cast<std::size_t>(world_size());
  subject.are_buffers_two = true;
  return collective(impl_, subject, gloo::all_to_all);
}

Result<void> GlooCommunicator::gather(const void* send, void* receive, std::size_t count,
                                      DataType type, int root, void* stream, Duration timeout) {
  Impl::Subject subject{"gather", timeout, stream, {type, ReduceOp::sum, root},
                        send,     receive, count};
  subject.parts = static_cast<std::size_t>(world_size());
  subject.is_needed_to_receive = rank() == root;
  return collective(impl_, subject, gloo::gather);
}

Result<void> GlooCommunicator::scatter(const void* send, void* receive, std::size_t count,
                                       DataType type, int root, void* stream, Duration timeout) {
  Impl::Subject subject{"scatter", timeout, stream, {type, ReduceOp::sum, root},
                        send,      receive, count};
  subject.parts = static_cast<std::size_t>(world_size());
  subject.is_needed_to_send = rank() == root;
  return collective(impl_, subject, gloo::scatter);
}

Result<void> GlooCommunicator::send(const void* buffer, std::size_t count, DataType type, int peer,
                                    void* stream, Duration timeout) {
  Impl::Subject subject{"send", timeout, stream, {type, ReduceOp::sum, peer},
                        buffer, nullptr, count};
  subject.is_needed_to_receive = false;
  return post(impl_, subject, gloo::Posted::Direction::send);
}

Result<void> GlooCommunicator::recv(void* buffer, std::size_t count, DataType type, int peer,
                                    void* stream, Duration timeout) {
  Impl::Subject subject{"recv",  timeout, stream, {type, ReduceOp::sum, peer},
                        nullptr, buffer,  count};
  subject.is_needed_to_send = false;
  return post(impl_, subject, gloo::Posted::Direction::receive);
}

Result<void> GlooCommunicator::grouped(const std::function<Result<void>()>& calls,
                                       Duration timeout) {
  if (auto refused = refusal_of(impl_, "grouped")) return *std::move(refused);
  return std::shared_ptr(impl_)->grouped(calls, timeout);
}

Result<void> GlooCommunicator::attach(StatelessProcessGroup& group, Duration timeout) {
  if (auto refused = refusal_of(impl_, "attach")) return *std::move(refused);
  const auto resolved = communicator::timeout_or(timeout, impl_->options().timeout);
  if (!resolved) return resolved.error();
  return std::shared_ptr(impl_)->attach(group, codec_id::gloo_communicator, *resolved);
}

void GlooCommunicator::abort() {
  if (refusal_of(impl_, "")) return;
  std::shared_ptr(impl_)->end(client::failure(ErrorCode::aborted, "by its host"));
}

void GlooCommunicator::abort_all(Span<GlooCommunicator* const> communicators) {
  for (GlooCommunicator* const each : communicators) {
    if (each != nullptr) each->abort();
  }
}

Result<void> GlooCommunicator::close(Duration timeout) {
  if (auto refused = refusal_of(impl_, "close")) return *std::move(refused);
  return std::shared_ptr(impl_)->close(timeout);
}

MUSTER_END_NAMESPACE
