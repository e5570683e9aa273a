#include "client/call_impl.h"

#include <utility>

MUSTER_BEGIN_NAMESPACE

Call::Call() noexcept = default;
Call::Call(std::weak_ptr<Impl> impl, std::uint64_t number) noexcept
    : impl_(std::move(impl)), number_(number) {}
Call::~Call() = default;
Call::Call(const Call&) noexcept = default;
Call::Call(Call&&) noexcept = default;
Call& Call::operator=(const Call&) noexcept = default;
Call& Call::operator=(Call&&) noexcept = default;

void Call::cancel() noexcept {
  if (const auto impl = impl_.lock()) impl->cancel(number_);
}

MUSTER_END_NAMESPACE
