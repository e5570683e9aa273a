#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/group/group.h"
#include "muster/process_group_options.h"

MUSTER_BEGIN_NAMESPACE

/// What a receive, its answer and whoever gets the object share. From any thread.
///
/// Life cycle: made with the call -> settled, when it is over; if an object has come, the stream
/// waits for its receiver -> accepted, or refused: then the same object is the stream's next again.
class Delivery::Impl {
 public:
  Impl(std::shared_ptr<client::Group> group, Rank source, Tag tag);
  /// Refuses what was not accepted.
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// The call is over.
  void settle(const client::Outcome& outcome);
  /// What has come, for its receiver.
  void take(ReceivedBytes object) { object_ = std::move(object); }

  ReceivedBytes& object() { return object_; }
  StreamPosition position() const;
  void accept();
  void refuse() noexcept;

 private:
  enum class State : std::uint8_t { pending, held, over };

  void end(const Error* error);

  const std::shared_ptr<client::Group> group_;
  const std::uint32_t source_;
  const Tag tag_;
  client::CallId call_ = 0;
  State state_ = State::pending;
  ReceivedBytes object_;
};

MUSTER_END_NAMESPACE
