#include "client/group/delivery.h"

#include <new>
#include <utility>

#include "client/failure.h"

MUSTER_BEGIN_NAMESPACE

using client::protocol::GroupState;

Delivery::Impl::Impl(std::shared_ptr<client::Group> group, Rank source, Tag tag)
    : group_(std::move(group)), source_(static_cast<std::uint32_t>(source.number)), tag_(tag) {}

Delivery::Impl::~Impl() { refuse(); }

void Delivery::Impl::refuse() noexcept {
  if (state_ != State::held || group_->link()->is_forked()) return;
  try {
    group_->link()->conclude(call_, client::protocol::Verdict::refused);
    const Error refused = client::failure(ErrorCode::codec_failure, "the object was not accepted");
    end(&refused);
  } catch (const std::bad_alloc&) {
    group_->link()->break_down();
  }
}

void Delivery::Impl::settle(const client::Outcome& outcome) {
  if (outcome.reply) {
    call_ = outcome.call;
    state_ = State::held;
  } else {
    end(&outcome.reply.error());
  }
}

void Delivery::Impl::accept() {
  if (state_ != State::held || group_->link()->is_forked()) return;
  group_->link()->conclude(call_, client::protocol::Verdict::accepted);
  end(nullptr);
}

StreamPosition Delivery::Impl::position() const {
  return {static_cast<int>(source_), group_->rank(), tag_.number, object_.sequence};
}

void Delivery::Impl::end(const Error* error) {
  state_ = State::over;
  group_->numbers().with_state(
      [&](GroupState& state) { state.end_receive(source_, tag_.number, error); });
}

Delivery::Delivery(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Delivery::Delivery(Delivery&&) noexcept = default;

/// The I/O thread may hold the rest a little longer.
Delivery::~Delivery() {
  if (impl_) impl_->refuse();
}

Delivery& Delivery::operator=(Delivery&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

std::string_view Delivery::bytes() const {
  return impl_ ? std::string_view(impl_->object().bytes) : std::string_view();
}

StreamPosition Delivery::position() const { return impl_ ? impl_->position() : StreamPosition(); }

ReceivedBytes Delivery::accept() {
  if (!impl_) return {};
  const std::shared_ptr<Impl> impl = std::move(impl_);
  impl->accept();
  return std::move(impl->object());
}

MUSTER_END_NAMESPACE
