#include "link_world.h"

#include <algorithm>
#include <utility>

#include "script.h"

namespace muster::script {

LinkChannel::~LinkChannel() { world_.observer.gone(number_); }

void LinkChannel::send(std::string_view bytes) {
  queue_ += bytes;
  unsent_bytes_ = queue_.size();
}

void LinkChannel::flush() {
  const std::size_t taken = world_.take_room(queue_.size());
  if (!is_open_ || taken == 0) return;
  world_.observer.arrived(number_, queue_.substr(0, taken));
  queue_.erase(0, taken);
  unsent_bytes_ = queue_.size();
}

void LinkChannel::end(bool when_sent) {
  if (!is_open_) return;
  if (when_sent) flush();
  is_open_ = false;
  world_.observer.closed(number_, when_sent);
}

void LinkChannel::receive(std::string_view bytes) {
  if (is_open_) owner_->received(bytes);
}

void LinkChannel::lose(net::CloseCause cause, std::string detail) {
  if (!std::exchange(is_open_, false)) return;
  const auto kept = callbacks_;
  owner_->closed(cause, std::move(detail));
}

std::size_t LinkWorld::take_room(std::size_t bytes) {
  const std::size_t taken = std::min(bytes, room_);
  if (room_ != ~std::size_t{0}) room_ -= taken;
  return taken;
}

std::size_t LinkWorld::send_now(int descriptor, std::string_view bytes) noexcept {
  const auto found = channel(descriptor);
  const bool is_open = found && found->is_open();
  observer.caller_wrote(descriptor, is_open);
  if (!is_open) return bytes.size();
  const std::size_t taken = take_room(bytes.size());
  if (taken > 0) observer.arrived(descriptor, bytes.substr(0, taken));
  return taken;
}

std::uint64_t LinkWorld::on_ring(std::function<void()> listener) {
  ring_listeners_.emplace(++last_number_, std::move(listener));
  return last_number_;
}

std::uint64_t LinkWorld::on_failure(std::function<void(std::string_view why)> listener) {
  failure_listeners_.emplace(++last_number_, std::move(listener));
  return last_number_;
}

void LinkWorld::wake_at(client::Instant when, std::function<void()> work) {
  alarm_at_ = when;
  alarm_ = std::move(work);
}

void LinkWorld::connect(std::function<void(Connected outcome)> handler) {
  connecting_ = std::move(handler);
  observer.connecting();
}

void LinkWorld::connected() {
  const auto handler = std::exchange(connecting_, nullptr);
  if (!handler) throw ScriptError("nobody connects");
  const int number = ++last_channel_;
  auto channel = std::make_shared<LinkChannel>(*this, number);
  channels_[number] = channel;
  serve([&] { handler(std::shared_ptr<net::Channel>(std::move(channel))); });
}

void LinkWorld::not_connected(net::ConnectError error) {
  const auto handler = std::exchange(connecting_, nullptr);
  if (!handler) throw ScriptError("nobody connects");
  serve([&] { handler(std::move(error)); });
}

std::shared_ptr<LinkChannel> LinkWorld::channel(int number) {
  const auto found = channels_.find(number);
  return found == channels_.end() ? nullptr : found->second.lock();
}

std::size_t LinkWorld::open_count() const {
  std::size_t count = 0;
  for (const auto& [number, weak] : channels_) {
    const auto channel = weak.lock();
    if (channel && channel->is_open()) ++count;
  }
  return count;
}

void LinkWorld::give_room(std::size_t bytes) {
  room_ = bytes;
  serve([this] {
    for (const auto& [number, weak] : channels_) {
      if (const auto channel = weak.lock()) channel->flush();
    }
  });
}

void LinkWorld::serve(const std::function<void()>& event) {
  if (std::exchange(is_serving_, true)) return event();
  if (event) event();
  for (int turns = 0; is_rung_ || !tasks_.empty() || !later_.empty(); ++turns) {
    if (turns > 1000) throw ScriptError("the I/O thread never comes to an end");
    if (std::exchange(is_rung_, false)) {
      const auto listeners = ring_listeners_;
      for (const auto& [number, listener] : listeners) listener();
    }
    if (!tasks_.empty()) {
      net::Task* const task = tasks_.front();
      tasks_.pop_front();
      task->run();
    } else if (!later_.empty()) {
      const auto work = std::move(later_.front());
      later_.pop_front();
      work();
    }
  }
  is_serving_ = false;
}

void LinkWorld::pass_until(client::Instant end) {
  for (int looks = 0; alarm_ && alarm_at_ <= end; ++looks) {
    if (looks > 100000) throw ScriptError("the same time is asked for again and again");
    time = std::max(time, alarm_at_);
    const auto work = std::exchange(alarm_, nullptr);
    serve(work);
  }
  time = end;
}

}  // namespace muster::script
