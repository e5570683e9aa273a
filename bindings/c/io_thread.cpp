#include "calls.h"

// I/O threads, and calls in their callback form.

namespace {

using muster::IoThread;
using muster::c::guarded_or;

muster_io_thread* io_thread_of(std::shared_ptr<IoThread> thread) {
  return thread ? new muster_io_thread{std::move(thread)} : nullptr;
}

}  // namespace

muster_io_thread* muster_io_thread_create(const char* name) {
  return guarded_or<muster_io_thread*>(
      nullptr, [&] { return io_thread_of(IoThread::create(name == nullptr ? "muster" : name)); });
}

muster_io_thread* muster_io_thread_create_for_host_loop(void) {
  return guarded_or<muster_io_thread*>(
      nullptr, [] { return io_thread_of(IoThread::create_for_host_loop()); });
}

int muster_io_thread_descriptor(const muster_io_thread* thread) {
  return thread == nullptr ? -1 : thread->thread->descriptor();
}

bool muster_io_thread_serve_ready(muster_io_thread* thread) {
  return guarded_or(false, [&] {
    if (thread == nullptr) return false;
    const std::shared_ptr<IoThread> kept = thread->thread;  // a callback may free the handle
    return kept->serve_ready();
  });
}

void muster_io_thread_finish(muster_io_thread* thread) {
  guarded_or(false, [&] {
    if (thread == nullptr) return false;
    const std::shared_ptr<IoThread> kept = thread->thread;
    kept->finish();
    return true;
  });
}

void muster_io_thread_free(muster_io_thread* thread) { delete thread; }

void muster_call_cancel(muster_call* call) {
  if (call == nullptr) return;
  const std::shared_ptr<muster::c::PendingCall> kept = call->pending;
  kept->cancel();
}

void muster_call_free(muster_call* call) { delete call; }
