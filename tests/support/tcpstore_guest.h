#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine.h"
#include "server/tcpstore/guest.h"

namespace muster::test {

/// Keeps what a client is sent.
class TcpStoreReplies final : public server::tcpstore::ReplySink {
 public:
  void send(std::string_view more) override { bytes += more; }
  void send(core::Payload value, std::size_t skipped, bool) override {
    bytes += value->view().substr(skipped);
    shared_bytes += value->view().size() - skipped;
  }

  std::string bytes;
  std::uint64_t shared_bytes = 0;  ///< that were not copied to get here
};

/// One client of TCPStore's, as the server has it.
struct TcpStoreGuest {
  TcpStoreGuest(core::ConnectionId its_id, core::Quota& quota, server::tcpstore::Dialect fallback,
                const server::tcpstore::RequestLimits& limits)
      : id(its_id), state(quota, fallback, limits) {}

  bool is_open() const { return !is_closed; }

  core::ConnectionId id;
  server::tcpstore::Guest state;
  TcpStoreReplies replies;
  std::size_t taken_bytes = 0;      ///< of `replies`
  bool is_closed = false;           ///< by either side
  std::optional<Error> why_closed;  ///< by the server, if it was not told by the engine
  bool is_postponed = false;
  std::optional<std::size_t> steps_left;  ///< then there is no room; nothing: there always is
  bool has_turns = false;  ///< each ends in the midst of what is long; `go_on` is the next
};

/// Bytes of clients of TCPStore's in, bytes out, over an engine: what src/server does for them,
/// without sockets, turns and memory for what waits to be sent.
class TcpStoreGuests {
 public:
  using Guest = TcpStoreGuest;
  using Dialect = server::tcpstore::Dialect;

  explicit TcpStoreGuests(core::Options options = {}, Dialect its_fallback = Dialect::newest)
      : engine(std::move(options)), fallback(its_fallback) {
    limits.key_bytes_max = engine.options().limits.key_bytes_max;
    limits.value_bytes_max = engine.options().limits.value_bytes_max;
    limits.keys_max = engine.options().guest_keys_max;
  }

  /// Valid as long as this; it is open, unless the engine has refused it.
  Guest& connect(const std::string& name_space = "job") {
    const core::ConnectionId id = ++last_id_;
    Guest& guest =
        *(guests_[id] = std::make_unique<Guest>(id, engine.memory().all, fallback, limits));
    core::Hello event;
    event.connection = id;
    event.hello.name_space = name_space;
    event.unit = "port of " + name_space;
    event.fresh_token.bytes[0] = static_cast<std::uint8_t>(id);
    event.guest = terms;
    apply(event);
    return guest;
  }

  /// Bytes come from it, in one piece.
  void say(Guest& guest, std::string_view bytes) {
    if (guest.is_closed) return;
    // Where nothing else is, so that a read beyond its end is seen.
    const std::vector<char> here(bytes.begin(), bytes.end());
    guest.state.requests.give({here.data(), here.size()});
    if (!guest.is_postponed) read(guest);
    if (!guest.is_closed) guest.state.requests.keep();
    work_off();
  }

  /// There is room again: what was postponed comes again.
  void go_on(Guest& guest, std::optional<std::size_t> steps = std::nullopt) {
    guest.steps_left = steps;
    if (!std::exchange(guest.is_postponed, false)) return;
    guest.state.requests.give({});
    read(guest);
    work_off();
  }

  /// What it was sent since it was last asked here.
  std::string heard(Guest& guest) {
    std::string more = guest.replies.bytes.substr(guest.taken_bytes);
    guest.taken_bytes = guest.replies.bytes.size();
    return more;
  }

  /// Says it, and takes what comes back.
  std::string ask(Guest& guest, std::string_view bytes) {
    say(guest, bytes);
    return heard(guest);
  }

  void disconnect(Guest& guest) {
    if (std::exchange(guest.is_closed, true)) return;
    apply(core::Disconnected{guest.id, core::DisconnectCause::closed});
    work_off();
  }

  /// Forgets one whose connection is over, with what it holds.
  void drop(Guest& guest) { guests_.erase(guest.id); }

  /// Lets time pass as a rim does: it looks at the engine whenever something is due.
  void pass(Duration duration) {
    const core::Instant end = now + duration;
    while (now < end) {
      const core::Instant tick = now + std::chrono::milliseconds(250);
      now = std::max(now, std::min({engine.next_deadline(), tick, end}));
      apply(core::Advance{});
      work_off();
    }
  }

  void work_off() {
    while (engine.has_backlog()) apply(core::Continue{});
  }

  core::Engine engine;
  Dialect fallback;
  server::tcpstore::RequestLimits limits;
  core::GuestTerms terms;
  core::Instant now{std::chrono::seconds(1000)};

 private:
  using Kind = server::tcpstore::Conversation::Step::Kind;

  /// All requests that are whole.
  void read(Guest& guest) {
    server::tcpstore::Request request;
    while (!guest.is_closed) {
      const auto size = guest.state.requests.next(request);
      if (!size) return close(guest, size.error());
      if (*size == 0) return;
      if (handle(guest, request)) continue;
      if (guest.is_closed) return;
      guest.is_postponed = true;
      guest.state.requests.put_back();
      guest.state.requests.keep();
      return;
    }
  }

  /// returns  whether it is done; else it comes again, unless the guest is gone
  bool handle(Guest& guest, const server::tcpstore::Request& request) {
    server::tcpstore::Conversation& conversation = guest.state.conversation;
    server::tcpstore::Conversation::Step step;
    for (;;) {
      const auto asked = conversation.next(request, step, guest.replies);
      if (!asked) close(guest, asked.error());
      if (guest.is_closed) return false;
      if (step.kind == Kind::done) return true;
      carry_out(guest, step);
      if (guest.is_closed) return false;
      if (step.kind == Kind::abandon) continue;
      if (was_postponed_) return false;
      if (guest.steps_left && *guest.steps_left > 0) --*guest.steps_left;
      if (!conversation.is_answered()) conversation.waits();
      if (guest.has_turns && conversation.is_long()) return false;
    }
  }

  void carry_out(Guest& guest, server::tcpstore::Conversation::Step& step) {
    // More than there ever is stands ahead of what it asks for, and it takes nothing.
    const bool has_no_room = guest.steps_left == std::size_t{0};
    const core::UnsentReplies unsent =
        has_no_room ? core::UnsentReplies{1, 0, UINT64_MAX / 4, 0} : core::UnsentReplies{};
    if (step.kind == Kind::abandon) {
      apply(core::Abandoned{guest.id, &step.abandoned});
    } else if (step.kind == Kind::own) {
      apply(
          core::Requested{guest.id, &step.request, guest.state.requests.memory_of_last(), unsent});
    } else {
      apply(core::RequestedByGuest{guest.id, step.request.id, &step.guest_request, unsent});
    }
  }

  void apply(const core::Event& event) {
    was_postponed_ = false;
    std::vector<Guest*> lost;
    for (core::Effect& effect : engine.apply(event, now)) {
      std::visit([this, &lost](auto& one) { look_at(one, lost); }, effect);
    }
    const bool was_postponed = was_postponed_;
    for (Guest* const guest : lost) {
      apply(core::Disconnected{guest->id, core::DisconnectCause::lost});
    }
    was_postponed_ = was_postponed;
  }

  void look_at(core::SendHello& effect, std::vector<Guest*>&) {
    if (effect.hello->status != 0) return;
    Guest& guest = *guests_.at(effect.connection);
    guest.state.requests.charge_to(*effect.quota);
    guest.state.conversation.charge_to(*effect.quota);
  }
  void look_at(core::SendReply& effect, std::vector<Guest*>& lost) {
    Guest& guest = *guests_.at(effect.connection);
    if (guest.is_closed) return;
    auto why = guest.state.conversation.answered(effect, guest.replies);
    if (!why) return;
    guest.is_closed = true;
    guest.why_closed = std::move(why);
    lost.push_back(&guest);
  }
  void look_at(core::Close& effect, std::vector<Guest*>&) {
    guests_.at(effect.connection)->is_closed = true;
  }
  void look_at(core::Postpone&, std::vector<Guest*>&) { was_postponed_ = true; }
  template <class Other>
  void look_at(Other&, std::vector<Guest*>&) {}

  /// The server ends the connection.
  void close(Guest& guest, const Error& why) {
    guest.is_closed = true;
    guest.why_closed = why;
    apply(core::Disconnected{guest.id, core::DisconnectCause::closed});
  }

  std::map<core::ConnectionId, std::unique_ptr<Guest>> guests_;
  core::ConnectionId last_id_ = 0;
  bool was_postponed_ = false;
};

}  // namespace muster::test
