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

void Connections::replace(std::shared_ptr<net::Channel> connection) {
  if (current_) current_->close();
  current_ = std::move(connection);
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
}

bool Connections::is_clear() const {
  return current_ && current_->is_open() && current_->unsent_bytes() == 0;
}

/// When there are many, the second goes: the first is the one that the session was on.
void Connections::set_aside() {
  if (!current_) return;
  if (set_aside_.size() == set_aside_max) {
    set_aside_[1]->close();
    set_aside_.erase(set_aside_.begin() + 1);
  }
  set_aside_.push_back(std::exchange(current_, nullptr));
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
  replace(nullptr);
  close_set_aside();
}

}  // namespace muster::client
