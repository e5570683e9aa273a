#include "gloo/transport.h"

#include <algorithm>
#include <utility>

namespace muster::gloo_internal {

using std::chrono::milliseconds;

/// One buffer of a call. Gloo's own one wakes its waiter when it is told to abort, also from
/// another thread, and also if that thread comes first: this is what an interruption rests on.
class Transport::Buffer final : public ::gloo::transport::UnboundBuffer {
 public:
  Buffer(Transport& transport, void* memory, size_t bytes)
      : UnboundBuffer(memory, bytes),
        transport_(transport),
        inner_(transport.inner_->createUnboundBuffer(memory, bytes)) {
    transport_.enter(*this);
  }
  ~Buffer() override { transport_.leave(*this); }

  bool waitRecv(int* from, milliseconds) override {
    prepare(source_);
    if (!inner_->waitRecv(from, transport_.left())) throw Interrupted();
    return true;
  }
  bool waitSend(int* to, milliseconds) override {
    prepare(destination_);
    if (!inner_->waitSend(to, transport_.left())) throw Interrupted();
    return true;
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }

  void send(int to, uint64_t slot, size_t offset, size_t bytes) override {
    prepare(destination_ = to);
    inner_->send(to, slot, offset, bytes);
  }
  void recv(int from, uint64_t slot, size_t offset, size_t bytes) override {
    prepare(source_ = from);
    inner_->recv(from, slot, offset, bytes);
  }
  void recv(std::vector<int> from, uint64_t slot, size_t offset, size_t bytes) override {
    prepare(source_ = -1);
    inner_->recv(std::move(from), slot, offset, bytes);
  }

 private:
  void prepare(int peer) const {
    transport_.check();
    transport_.waited_for_ = peer;
  }

  Transport& transport_;
  const std::unique_ptr<::gloo::transport::UnboundBuffer> inner_;
  int source_ = -1;
  int destination_ = -1;
};

std::unique_ptr<::gloo::transport::UnboundBuffer> Transport::createUnboundBuffer(void* memory,
                                                                                 size_t bytes) {
  return std::make_unique<Buffer>(*this, memory, bytes);
}

void Transport::enter(Buffer& buffer) {
  const std::lock_guard lock(buffers_mutex_);
  buffers_.insert(&buffer);
}

void Transport::leave(Buffer& buffer) {
  const std::lock_guard lock(buffers_mutex_);
  buffers_.erase(&buffer);
}

void Transport::interrupt() {
  is_interrupted_ = true;
  const std::lock_guard lock(buffers_mutex_);
  for (Buffer* const buffer : buffers_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

void Transport::check() const {
  if (is_interrupted_) throw Interrupted();
}

milliseconds Transport::left() const {
  const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
  return std::max(left, milliseconds(1));
}

}  // namespace muster::gloo_internal
