#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/events.h"
#include "core/memory/payload.h"
#include "core/session/effects.h"
#include "muster/error.h"
#include "server/tcpstore/request.h"
#include "wire/request.h"

namespace muster::server::tcpstore {

/// Where the bytes for a client go, in their order.
class ReplySink {
 public:
  virtual void send(std::string_view bytes) = 0;
  /// All bytes of `value` behind the first `skipped`, from where they are.
  virtual void send(core::Payload value, std::size_t skipped, bool is_for_one) = 0;

 protected:
  ~ReplySink() = default;
};

/// One connection of TCPStore's, without its bytes' way: requests to what the engine is asked for
/// them, and its answers to bytes.
///
/// A request takes one step of the engine or several, each of which may be put off until there is
/// room for its answer; then it is asked for again. Requests are handled one after the other, but
/// for waits: their answers come whenever they do, between those of later requests.
class Conversation {
 public:
  /// One step of a request.
  struct Step {
    enum class Kind : std::uint8_t {
      done,     ///< nothing is left to do: the request is over, or waits
      own,      ///< `request`, as clients of Muster ask
      guests,   ///< `guest_request`, under the id of `request`
      abandon,  ///< the waits of `abandoned`
    };
    Kind kind = Kind::done;
    wire::Request request;
    core::GuestRequest guest_request;
    std::vector<std::uint64_t> abandoned;
  };

  Conversation();
  ~Conversation();

  /// What is kept for the client from now on is charged there.
  void charge_to(core::Quota& quota) { quota_ = &quota; }

  /// What is to be done next for the request, which is the same until it is done. What was asked
  /// for before and has no answer is asked for again, unless it waits.
  ///
  /// into    its views are those of the request
  /// errors  unsupported. No step follows, ever
  Result<void> next(const Request& request, Step& into, ReplySink& out);

  /// An answer of the engine's. To the last step it may come only while `request` stands.
  ///
  /// returns  why the connection has to end, since the client cannot be told; or nothing
  std::optional<Error> answered(const core::SendReply& reply, ReplySink& out);

  /// Whether the last step has had its answer.
  bool is_answered() const { return asked_id_ == 0; }
  /// The last step waits for something: its answer comes later.
  void waits();
  /// Whether the request in hand goes on in steps of which any number may follow.
  bool is_long() const { return listing_ != nullptr; }

  std::size_t waits_count() const { return waits_.size(); }

 private:
  struct Listing;

  Result<void> ask(const Request& request, Step& into, ReplySink& out);
  wire::CompareSet compare_set_of(const Request& request) const;
  bool has_given_up(const Request& request) const;
  void cancel_waits(Step& into, ReplySink& out);
  void abandon_waits(Step& into);

  std::optional<Error> take(const core::SendReply& reply, ReplySink& out);
  void take_compare_set(const core::SendReply& reply, ReplySink& out);
  std::optional<Error> take_page(const core::SendReply& reply, ReplySink& out);
  Error no_room() const;
  std::optional<Error> take_late(const core::SendReply& reply, ReplySink& out);
  void finish(ReplySink& out);

  core::Quota* quota_ = nullptr;
  const Request* request_ = nullptr;  ///< while it is in hand
  std::uint64_t last_id_ = 0;
  std::uint64_t asked_id_ = 0;  ///< of the step that has no answer yet; 0: there is none
  std::size_t step_ = 0;        ///< of the request in hand
  std::int64_t number_ = 0;     ///< that a step of it has brought
  bool is_over_ = false;        ///< the request in hand
  std::vector<std::uint64_t> waits_;
  std::size_t late_count_ = 0;  ///< answers of waits that came in the midst of another answer
  std::unique_ptr<Listing> listing_;
};

}  // namespace muster::server::tcpstore
