#include "net/channel.h"

#include <utility>

namespace muster::net {
namespace {

class OwnerOfFunctions final : public ChannelOwner {
 public:
  explicit OwnerOfFunctions(Channel::Callbacks callbacks) : callbacks_(std::move(callbacks)) {}

  void received(std::string_view bytes) override { callbacks_.received(bytes); }
  void closed(CloseCause cause, std::string detail) override {
    callbacks_.closed(cause, std::move(detail));
  }
  void drained() override {
    if (callbacks_.drained) callbacks_.drained();
  }

 private:
  const Channel::Callbacks callbacks_;
};

}  // namespace

void Channel::start(ChannelOwner& owner) {
  owner_ = &owner;
  begin();
}

void Channel::start(Callbacks callbacks) {
  start(std::shared_ptr<ChannelOwner>(std::make_shared<OwnerOfFunctions>(std::move(callbacks))));
}

void Channel::start(std::shared_ptr<ChannelOwner> owner) {
  callbacks_ = std::move(owner);
  start(*callbacks_);
}

void Channel::let_go_of_owner() {
  owner_ = nullptr;
  callbacks_.reset();
}

}  // namespace muster::net
