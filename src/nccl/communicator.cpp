#include <chrono>
#include <optional>
#include <utility>

#include "client/failure.h"
#include "communicator/arguments.h"
#include "muster/codec.h"
#include "nccl/communicator_impl.h"
#include "nccl/formation.h"
#include "nccl/functions.h"

// The public face of a communicator: arguments, and which of NCCL's functions they go to.

MUSTER_BEGIN_NAMESPACE

using communicator::Arguments;
using communicator::refusal_of;
using Impl = NcclCommunicator::Impl;

namespace {

int number_of(DataType type) {
  constexpr int float16 = 6;
  constexpr int float32 = 7;
  constexpr int float64 = 8;
  constexpr int bfloat16 = 9;
  switch (type) {
    case DataType::float16: return float16;
    case DataType::float32: return float32;
    case DataType::float64: return float64;
    case DataType::bfloat16: return bfloat16;
    default: return static_cast<int>(type);  // ncclInt8 to ncclUint64 have our numbers
  }
}

std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }

int number_of(ReduceOp operation) { return static_cast<int>(operation); }

/// What one rank gives to a call.
struct Buffers {
  const void* send = nullptr;
  const void* receive = nullptr;
  bool is_needed_to_send = true;
  bool is_needed_to_receive = true;
  bool may_be_same = true;
};

std::optional<Error> refusal_of(const Buffers& buffers, const Arguments& arguments,
                                int world_size) {
  if (arguments.count == 0) return std::nullopt;
  if (buffers.is_needed_to_send && buffers.send == nullptr) {
    return client::invalid_argument("send: null");
  }
  if (buffers.is_needed_to_receive && buffers.receive == nullptr) {
    return client::invalid_argument("receive: null");
  }
  if (!buffers.may_be_same && buffers.send == buffers.receive && world_size > 1) {
    return client::invalid_argument("send and receive: not the same buffer");
  }
  return std::nullopt;
}

/// An impl is held by value: the host's handler may drop the communicator while it is called.
Result<void> issue(std::shared_ptr<Impl> impl, const Impl::Subject& subject,
                   const Arguments& arguments, const Buffers& buffers,
                   const Impl::Enqueue& enqueue) {
  if (auto refused = refusal_of(impl, subject.operation)) return *std::move(refused);
  const int world_size = impl->place().world_size;
  auto refused = refusal_of(arguments, world_size);
  if (!refused) refused = refusal_of(buffers, arguments, world_size);
  if (refused) {
    return impl->about(subject.operation, *std::move(refused), now());
  }
  return impl->issue(subject, enqueue);
}

const char* at(const void* buffer, std::size_t index, std::size_t bytes) {
  return static_cast<const char*>(buffer) + index * bytes;
}

char* at(void* buffer, std::size_t index, std::size_t bytes) {
  return static_cast<char*>(buffer) + index * bytes;
}

/// Everybody sends a part to everybody (or, with a root, one to all or all to one) by sends and
/// receives in one NCCL group.
class Exchange {
 public:
  Exchange(const NcclFunctions& nccl, NcclHandle handle, CudaStream stream)
      : nccl_(nccl), handle_(handle), stream_(stream), result_(nccl.group_start()) {}

  void send(const void* buffer, std::size_t count, DataType type, int peer) {
    if (result_ == 0) {
      keep(nccl_.send(buffer, count, number_of(type), peer, handle_, stream_));
    }
  }
  void recv(void* buffer, std::size_t count, DataType type, int peer) {
    if (result_ == 0) {
      keep(nccl_.recv(buffer, count, number_of(type), peer, handle_, stream_));
    }
  }
  int finish() {
    if (!is_open_) return result_;
    const int ended = nccl_.group_end();
    return result_ != 0 ? result_ : ended;
  }

 private:
  void keep(int result) {
    if (result != nccl::in_progress) result_ = result;
  }

  const NcclFunctions& nccl_;
  const NcclHandle handle_;
  const CudaStream stream_;
  int result_;
  const bool is_open_ = result_ == 0;
};

}  // namespace

Result<NcclCommunicator> NcclCommunicator::create(StatelessProcessGroup& group, int device,
                                                  NcclOptions options) {
  auto made =
      nccl::Formation(group, device, std::move(options), std::make_shared<nccl::Shared>()).run();
  if (!made) return std::move(made).error();
  return NcclCommunicator(*std::move(made));
}

NcclCommunicator::NcclCommunicator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
NcclCommunicator::NcclCommunicator(NcclCommunicator&&) noexcept = default;

NcclCommunicator& NcclCommunicator::operator=(NcclCommunicator&& other) noexcept {
  if (this == &other) return *this;
  let_go();
  impl_ = std::move(other.impl_);
  return *this;
}

/// When it returns, the host's handler does not run any more.
void NcclCommunicator::let_go() {
  if (!impl_) return;
  if (impl_->refusal("")) return base::keep_forever(std::move(impl_));
  impl_->unwatch();
  impl_->end(client::failure(ErrorCode::aborted, "the communicator's handle is gone"));
}

NcclCommunicator::~NcclCommunicator() { let_go(); }

int NcclCommunicator::rank() const { return impl_ ? impl_->place().rank : -1; }
int NcclCommunicator::world_size() const { return impl_ ? impl_->place().world_size : 0; }
int NcclCommunicator::device() const { return impl_ ? impl_->device().ordinal() : -1; }
std::uint64_t NcclCommunicator::epoch() const { return impl_ ? impl_->place().epoch : 0; }

MakingTimes NcclCommunicator::making() const { return impl_ ? impl_->making() : MakingTimes(); }

const std::string& NcclCommunicator::group() const {
  static const std::string none;
  return impl_ ? impl_->place().group : none;
}

std::optional<Error> NcclCommunicator::error() const {
  if (auto refused = refusal_of(impl_, "")) return refused;
  return std::shared_ptr(impl_)->look();
}

Result<void> NcclCommunicator::all_reduce(const void* send, void* receive, std::size_t count,
                                          DataType type, ReduceOp operation, CudaStream stream,
                                          Duration timeout) {
  return issue(impl_, {"all_reduce", "ncclAllReduce", timeout}, {type, operation, 0, count},
               {send, receive}, [&](const NcclFunctions& nccl, NcclHandle handle) {
                 return nccl.all_reduce(send, receive, count, number_of(type), number_of(operation),
                                        handle, stream);
               });
}

Result<void> NcclCommunicator::broadcast(const void* send, void* receive, std::size_t count,
                                         DataType type, int root, CudaStream stream,
                                         Duration timeout) {
  return issue(impl_, {"broadcast", "ncclBroadcast", timeout}, {type, ReduceOp::sum, root, count},
               {send, receive, rank() == root}, [&](const NcclFunctions& nccl, NcclHandle handle) {
                 return nccl.broadcast(send, receive, count, number_of(type), root, handle, stream);
               });
}

Result<void> NcclCommunicator::reduce(const void* send, void* receive, std::size_t count,
                                      DataType type, ReduceOp operation, int root,
                                      CudaStream stream, Duration timeout) {
  return issue(impl_, {"reduce", "ncclReduce", timeout}, {type, operation, root, count},
               {send, receive, true, rank() == root},
               [&](const NcclFunctions& nccl, NcclHandle handle) {
                 return nccl.reduce(send, receive, count, number_of(type), number_of(operation),
                                    root, handle, stream);
               });
}

Result<void> NcclCommunicator::all_gather(const void* send, void* receive, std::size_t send_count,
                                          DataType type, CudaStream stream, Duration timeout) {
  return issue(impl_, {"all_gather", "ncclAllGather", timeout},
               {type, ReduceOp::sum, 0, send_count, static_cast<std::size_t>(world_size())},
               {send, receive}, [&](const NcclFunctions& nccl, NcclHandle handle) {
                 return nccl.all_gather(send, receive, send_count, number_of(type), handle, stream);
               });
}

Result<void> NcclCommunicator::reduce_scatter(const void* send, void* receive,
                                              std::size_t receive_count, DataType type,
                                              ReduceOp operation, CudaStream stream,
                                              Duration timeout) {
  return issue(impl_, {"reduce_scatter", "ncclReduceScatter", timeout},
               {type, operation, 0, receive_count, static_cast<std::size_t>(world_size())},
               {send, receive}, [&](const NcclFunctions& nccl, NcclHandle handle) {
                 return nccl.reduce_scatter(send, receive, receive_count, number_of(type),
                                            number_of(operation), handle, stream);
               });
}

Result<void> NcclCommunicator::all_to_all(const void* send, void* receive, std::size_t count,
                                          DataType type, CudaStream stream, Duration timeout) {
  return issue(impl_, {"all_to_all", "ncclAlltoAll", timeout},
               {type, ReduceOp::sum, 0, count, static_cast<std::size_t>(world_size())},
               {send, receive, true, true, false},
               [&](const NcclFunctions& nccl, NcclHandle handle) {
                 if (nccl.all_to_all != nullptr) {
                   return nccl.all_to_all(send, receive, count, number_of(type), handle, stream);
                 }
                 const std::size_t part = count * size_of(type);
                 Exchange exchange(nccl, handle, stream);
                 for (int peer = 0; peer < world_size(); ++peer) {
                   const auto index = static_cast<std::size_t>(peer);
                   exchange.send(at(send, index, part), count, type, peer);
                   exchange.recv(at(receive, index, part), count, type, peer);
                 }
                 return exchange.finish();
               });
}

Result<void> NcclCommunicator::gather(const void* send, void* receive, std::size_t count,
                                      DataType type, int root, CudaStream stream,
                                      Duration timeout) {
  return issue(impl_, {"gather", "ncclGather", timeout},
               {type, ReduceOp::sum, root, count, static_cast<std::size_t>(world_size())},
               {send, receive, true, rank() == root},
               [&](const NcclFunctions& nccl, NcclHandle handle) {
                 if (nccl.gather != nullptr) {
                   return nccl.gather(send, receive, count, number_of(type), root, handle, stream);
                 }
                 Exchange exchange(nccl, handle, stream);
                 exchange.send(send, count, type, root);
                 for (int peer = 0; rank() == root && peer < world_size(); ++peer) {
                   exchange.recv(at(receive, static_cast<std::size_t>(peer), count * size_of(type)),
                                 count, type, peer);
                 }
                 return exchange.finish();
               });
}

Result<void> NcclCommunicator::scatter(const void* send, void* receive, std::size_t count,
                                       DataType type, int root, CudaStream stream,
                                       Duration timeout) {
  return issue(impl_, {"scatter", "ncclScatter", timeout},
               {type, ReduceOp::sum, root, count, static_cast<std::size_t>(world_size())},
               {send, receive, rank() == root}, [&](const NcclFunctions& nccl, NcclHandle handle) {
                 if (nccl.scatter != nullptr) {
                   return nccl.scatter(send, receive, count, number_of(type), root, handle, stream);
                 }
                 Exchange exchange(nccl, handle, stream);
                 for (int peer = 0; rank() == root && peer < world_size(); ++peer) {
                   exchange.send(at(send, static_cast<std::size_t>(peer), count * size_of(type)),
                                 count, type, peer);
                 }
                 exchange.recv(receive, count, type, root);
                 return exchange.finish();
               });
}

Result<void> NcclCommunicator::send(const void* buffer, std::size_t count, DataType type, int peer,
                                    CudaStream stream, Duration timeout) {
  return issue(impl_, {"send", "ncclSend", timeout}, {type, ReduceOp::sum, peer, count},
               {buffer, nullptr, true, false}, [&](const NcclFunctions& nccl, NcclHandle handle) {
                 return nccl.send(buffer, count, number_of(type), peer, handle, stream);
               });
}

Result<void> NcclCommunicator::recv(void* buffer, std::size_t count, DataType type, int peer,
                                    CudaStream stream, Duration timeout) {
  return issue(impl_, {"recv", "ncclRecv", timeout}, {type, ReduceOp::sum, peer, count},
               {nullptr, buffer, false, true}, [&](const NcclFunctions& nccl, NcclHandle handle) {
                 return nccl.recv(buffer, count, number_of(type), peer, handle, stream);
               });
}

Result<void> NcclCommunicator::grouped(const std::function<Result<void>()>& calls,
                                       Duration timeout) {
  if (auto refused = refusal_of(impl_, "grouped")) return *std::move(refused);
  if (!calls) return impl_->about("grouped", client::invalid_argument("calls: empty"), now());
  return std::shared_ptr(impl_)->grouped({"grouped", "ncclGroupEnd", timeout}, calls);
}

Result<void> NcclCommunicator::with_native(
    const std::function<Result<void>(NcclHandle handle)>& work, Duration timeout) {
  if (auto refused = refusal_of(impl_, "with_native")) return *std::move(refused);
  if (!work) return impl_->about("with_native", client::invalid_argument("work: empty"), now());
  return std::shared_ptr(impl_)->with_native({"with_native", "NCCL", timeout}, work);
}

Result<NcclHandle> NcclCommunicator::native_handle() const {
  if (auto refused = refusal_of(impl_, "native_handle")) return *std::move(refused);
  if (auto reason = impl_->gate().reason()) return *std::move(reason);
  if (impl_->options().on_loss != OnLoss::notify) {
    return client::invalid_argument(
        "native_handle() needs OnLoss::notify: else it would be "
        "aborted under the kernels that use it");
  }
  return impl_->handle();
}

Result<void> NcclCommunicator::attach(StatelessProcessGroup& group, Duration timeout) {
  if (auto refused = refusal_of(impl_, "attach")) return *std::move(refused);
  const auto resolved = communicator::timeout_or(timeout, impl_->options().timeout);
  if (!resolved) return impl_->about("attach", resolved.error(), now());
  return std::shared_ptr(impl_)->attach(group, codec_id::nccl_communicator, *resolved);
}

void NcclCommunicator::abort() {
  if (refusal_of(impl_, "")) return;
  std::shared_ptr(impl_)->end(client::failure(ErrorCode::aborted, "by its host"));
}

void NcclCommunicator::abort_all(Span<NcclCommunicator* const> communicators) {
  std::vector<nccl::Doomed> doomed;
  std::vector<std::shared_ptr<Impl>> ended;
  std::shared_ptr<Impl> any;
  for (NcclCommunicator* const each : communicators) {
    if (each == nullptr || refusal_of(each->impl_, "")) continue;
    any = each->impl_;
    bool was_first = false;
    for (auto& one : any->doom(client::failure(ErrorCode::aborted, "by its host"), was_first)) {
      doomed.push_back(std::move(one));
    }
    if (was_first) ended.push_back(any);
  }
  if (!doomed.empty()) any->reap(std::move(doomed));
  for (const auto& each : ended) each->tell_host();
}

Result<void> NcclCommunicator::close(Duration timeout) {
  if (auto refused = refusal_of(impl_, "close")) return *std::move(refused);
  const auto resolved = communicator::timeout_or(timeout, impl_->options().timeout);
  if (!resolved) return impl_->about("close", resolved.error(), now());
  return std::shared_ptr(impl_)->close(*resolved);
}

MUSTER_END_NAMESPACE
