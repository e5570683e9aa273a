#include "client/protocol/connection_state.h"

#include <algorithm>
#include <utility>

namespace muster::client::protocol {

void ConnectionState::open(Instant now) {
  phase_ = Phase::waiting;
  opened_ = now;
  retry_at_ = now;
  server_is_dead_ = false;
  prove();
}

void ConnectionState::connect(Instant now) {
  phase_ = Phase::connecting;
  began_ = now;
  overdue_at_ = now + hello_timeout_;
}

void ConnectionState::greet(Instant now) {
  phase_ = Phase::greeting;
  began_ = now;
  may_have_moved_ = stands_;
}

void ConnectionState::establish() {
  phase_ = Phase::idle;
  stands_ = true;
  is_doubted_ = may_have_moved_ = is_moving_ = false;
  server_is_dead_ = false;
  moves_.reset();
}

void ConnectionState::fail(AttemptOutcome attempt, Instant now) {
  if (attempt == AttemptOutcome::answered) may_have_moved_ = false;
  phase_ = established() ? Phase::idle : Phase::waiting;
  if (established()) return;
  if (attempt != AttemptOutcome::answered) server_is_dead_ = attempt == AttemptOutcome::refused;
  // A long attempt was a wait itself.
  const Instant attempted = overdue_at_ - hello_timeout_;
  const Instant rested = attempted + backoff_.next();
  retry_at_ = std::max(rested, now + backoff_.least());
}

void ConnectionState::doubt(Instant now) {
  if (!is_doubted_) doubted_ = now;
  is_doubted_ = true;
  if (phase_ == Phase::idle || waits_to_move()) seek(now);
  is_moving_ = false;
}

void ConnectionState::move(Instant now) {
  if (!established() || phase_ != Phase::idle) return;
  phase_ = Phase::waiting;
  is_moving_ = true;
  retry_at_ = now + moves_.next();
}

bool ConnectionState::trust(Instant answered) {
  server_is_dead_ = false;
  if (may_have_moved_ || answered < doubted_) return false;
  is_doubted_ = false;
  return std::exchange(phase_, Phase::idle) == Phase::connecting;
}

void ConnectionState::lose(Instant now) {
  stands_ = is_doubted_ = may_have_moved_ = false;
  if (phase_ == Phase::idle || waits_to_move()) seek(now);
  is_moving_ = false;
}

bool ConnectionState::waits_to_move() const { return phase_ == Phase::waiting && is_moving_; }

void ConnectionState::seek(Instant now) {
  phase_ = Phase::waiting;
  retry_at_ = is_useful_ ? now : now + backoff_.next();
  is_useful_ = false;
}

Instant ConnectionState::next_deadline() const {
  switch (phase_) {
    case Phase::waiting: return retry_at_;
    case Phase::connecting:
    case Phase::greeting: return overdue_at_;
    case Phase::idle: break;
  }
  return base::far_future;
}

}  // namespace muster::client::protocol
