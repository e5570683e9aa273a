#include "client/protocol/protocol.h"

#include "client/protocol/machine.h"

namespace muster::client::protocol {

class Protocol::Impl : public Machine {
 public:
  using Machine::Machine;
};

Protocol::Protocol(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Protocol::Protocol(const Protocol& broken, Error why)
    : impl_(std::make_unique<Impl>(*broken.impl_, std::move(why))) {}
Protocol::~Protocol() = default;
Protocol::Protocol(Protocol&&) noexcept = default;
Protocol& Protocol::operator=(Protocol&&) noexcept = default;

void Protocol::open(Instant now) { impl_->open(now); }
void Protocol::apply(const Input& input, Instant now) { impl_->apply(input, now); }
CallId Protocol::submit(const wire::RequestBody& body, Duration timeout, Instant now) {
  return impl_->submit(body, timeout, now);
}
void Protocol::cancel(CallId call, Instant now) { impl_->cancel(call, now); }
void Protocol::close(Instant now) { impl_->close(now); }
void Protocol::reopen(Instant now) { impl_->reopen(now); }
Instant Protocol::next_deadline() const { return impl_->next_deadline(); }
std::vector<Effect> Protocol::take_effects(std::vector<Effect> spare) {
  return impl_->take_effects(std::move(spare));
}
bool Protocol::has_effects() const { return impl_->has_effects(); }
std::optional<Transmit> Protocol::take_transmit() { return impl_->take_transmit(); }
void Protocol::give_spare(std::string bytes) { impl_->give_spare(std::move(bytes)); }
const wire::ServerHello& Protocol::server() const { return impl_->server(); }
bool Protocol::established() const { return impl_->established(); }
const Error* Protocol::failure() const { return impl_->failure(); }
const Error& Protocol::last_trouble() const { return impl_->last_trouble(); }
std::size_t Protocol::pending_count() const { return impl_->pending_count(); }

}  // namespace muster::client::protocol
