#include "client/link/connections.h"

#include <utility>

namespace muster::client {
namespace {

constexpr std::size_t shared_bytes_min = 64 * 1024;  // shorter ones are copied into one write
constexpr std::size_t spare_max = 3;
constexpr std::size_t set_aside_max = 16;
constexpr Duration linger{std::chrono::seconds(1)};  // for a goodbye behind unsent bytes

}  // namespace

Connections::Connections() { spare_.reserve(spare_max); }

void Connections::attempt(std::shared_ptr<net::Channel> connection) {
  if (next_) next_->close();
  next_ = std::move(connection);
}

void Connections::promote() {
  if (!next_) return;
  if (current_) current_->close();
  current_ = std::move(next_);
}

void Connections::forget(const net::Channel* connection) {
  if (current_.get() == connection) current_.reset();
  if (next_.get() == connection) next_.reset();
}

void Connections::greet(std::string_view hello) {
  if (next_) next_->send(hello);
}

void Connections::send(std::string&& bytes) {
  if (!current_) return;
  if (bytes.size() < shared_bytes_min) {
    current_->send(bytes);
    if (spare_.size() < spare_max) spare_.push_back(std::move(bytes));
    return;
  }
  auto shared = std::make_shared<const std::string>(std::move(bytes));
  current_->send(net::SharedBytes{*shared, shared});
}

void Connections::flush() {
  if (current_) current_->flush();
  if (next_) next_->flush();
}

bool Connections::is_clear() const {
  return current_ && current_->is_open() && current_->unsent_bytes() == 0;
}

/// When there are many, the second goes: if the path broke under an attempt, it was the first.
void Connections::set_aside() {
  if (!next_) return;
  if (set_aside_.size() == set_aside_max) {
    set_aside_[1]->close();
    set_aside_.erase(set_aside_.begin() + 1);
  }
  set_aside_.push_back(std::exchange(next_, nullptr));
}

void Connections::close_set_aside() {
  for (const auto& connection : set_aside_) connection->close();
  set_aside_.clear();
}

void Connections::close() {
  if (current_) current_->close_after_flush(linger);
  current_.reset();
}

void Connections::abort() {
  if (current_) current_->close();
  current_.reset();
  attempt(nullptr);
  close_set_aside();
}

}  // namespace muster::client
