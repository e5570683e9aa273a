#pragma once

namespace muster::net {

/// While a channel tells its owner something it does not let him go; afterwards it does, if that is
/// due, also when he has thrown.
template <class Of>
class OwnerCall {
 public:
  explicit OwnerCall(Of& of) : of_(of) { of_.in_callback_ = true; }
  ~OwnerCall() {
    of_.in_callback_ = false;
    const bool is_over = of_.state_ == Of::State::closed || of_.state_ == Of::State::lingering;
    if (is_over) of_.let_go_of_owner();
  }
  OwnerCall(const OwnerCall&) = delete;
  OwnerCall& operator=(const OwnerCall&) = delete;

 private:
  Of& of_;
};

}  // namespace muster::net
