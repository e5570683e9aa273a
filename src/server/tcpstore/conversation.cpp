#include "server/tcpstore/conversation.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/failure.h"
#include "base/little_endian.h"
#include "core/memory/charged_memory.h"
#include "core/session/failure.h"
#include "wire/error_body.h"
#include "wire/reply.h"

namespace muster::server::tcpstore {
namespace {

using Kind = Conversation::Step::Kind;

constexpr std::string_view stop_waiting("\0", 1);
constexpr std::string_view wait_cancelled("\1", 1);
constexpr std::string_view ready("\0", 1);
constexpr std::string_view not_ready("\1", 1);
constexpr std::size_t bytes_of_length = 8;
constexpr std::size_t number_bytes = 8;
/// Before the bytes in replies that hold a value of a key.
constexpr std::size_t value_head_bytes = 4;

using LengthBytes = std::array<char, bytes_of_length>;

LengthBytes length_of(std::uint64_t size) {
  LengthBytes bytes;
  base::to_little_endian(size, bytes.data());
  return bytes;
}

void send_bytes(ReplySink& out, std::string_view bytes) {
  const LengthBytes length = length_of(bytes.size());
  out.send({length.data(), length.size()});
  out.send(bytes);
}

/// The body of a reply behind its first bytes, with its length before it.
void send_body(ReplySink& out, const core::SendReply& reply, std::size_t skipped) {
  const std::string_view head =
      std::string_view(reply.head).substr(std::min(skipped, reply.head.size()));
  const std::size_t skipped_of_tail = skipped - std::min(skipped, reply.head.size());
  const std::size_t of_tail = reply.tail ? reply.tail->view().size() - skipped_of_tail : 0;
  const LengthBytes length = length_of(head.size() + reply.value.size() + of_tail);
  out.send({length.data(), length.size()});
  if (!head.empty()) out.send(head);
  if (!reply.value.empty()) out.send(reply.value);
  if (of_tail != 0) out.send(reply.tail, skipped_of_tail, reply.owns_tail);
}

wire::MultiSet multi_set_of(const Request& request) {
  wire::MultiSet body;
  body.entries.reserve(request.keys.size());
  for (std::size_t index = 0; index < request.keys.size(); ++index) {
    body.entries.push_back({request.keys[index], request.values[index]});
  }
  return body;
}

bool is_ok(const core::SendReply& reply) { return reply.code == 0; }

Error error_of(const core::SendReply& reply) {
  auto told = wire::decode_error(reply.code, reply.head);
  return told ? *std::move(told) : base::failure(ErrorCode::internal, "an error that says nothing");
}

std::int64_t number_in(const core::SendReply& reply) {
  return static_cast<std::int64_t>(base::from_little_endian<std::uint64_t>(reply.head.data()));
}

}  // namespace

/// The keys that were listed so far, as they are sent when all are there.
struct Conversation::Listing {
  explicit Listing(core::Quota& quota) : bytes(quota) {}

  bool add(std::string_view more) {
    const std::size_t needed = used + more.size();
    if (needed > bytes.size_bytes()) {
      const std::size_t size = std::max(needed, 2 * bytes.size_bytes());
      if (!bytes.grow(size, size, core::Charging::normal)) return false;
    }
    std::copy(more.begin(), more.end(), bytes.begin() + used);
    used += more.size();
    return true;
  }

  core::ChargedMemory bytes;
  std::size_t used = 0;
  std::uint64_t count = 0;
  std::uint64_t cursor = 0;
};

Conversation::Conversation() = default;
Conversation::~Conversation() = default;

Result<void> Conversation::next(const Request& request, Step& into, ReplySink& out) {
  request_ = &request;
  into.kind = Kind::done;
  if (has_given_up(request)) {
    abandon_waits(into);
    return {};
  }
  if (!is_over_) {
    if (auto asked = ask(request, into, out); !asked) return asked;
  }
  if (into.kind == Kind::done) finish(out);
  return {};
}

/// A client of PyTorch 1 or 2.0 says nothing when the time of its wait is up, and asks for the next
/// thing. It would take a late answer for that of its next request.
bool Conversation::has_given_up(const Request& request) const {
  return request.dialect == Dialect::first && !waits_.empty() && step_ == 0 && !is_over_;
}

/// The answers of waits that had to wait for that of the request follow it.
void Conversation::finish(ReplySink& out) {
  request_ = nullptr;
  is_over_ = false;
  step_ = 0;
  for (; late_count_ > 0; --late_count_) out.send(stop_waiting);
}

Result<void> Conversation::ask(const Request& request, Step& into, ReplySink& out) {
  const auto own = [&](wire::RequestBody body) {
    into.kind = Kind::own;
    into.request.id = asked_id_ = ++last_id_;
    into.request.timeout = Duration::zero();
    into.request.body = std::move(body);
  };
  const auto guests = [&](core::GuestRequest asked) {
    into.kind = Kind::guests;
    into.request.id = asked_id_ = ++last_id_;
    into.guest_request = std::move(asked);
  };
  const std::vector<std::string_view>& keys = request.keys;
  const std::vector<std::string_view>& values = request.values;
  switch (request.command) {
    case Command::validate: break;
    case Command::ping:
      out.send(std::string_view(length_of(static_cast<std::uint64_t>(request.number)).data(),
                                sizeof(std::uint32_t)));
      // No wait ends, but the engine has to know of every request: it ends a reservation.
      into.kind = Kind::abandon;
      into.abandoned.clear();
      is_over_ = true;
      break;
    case Command::set: own(wire::Set{keys[0], values[0], {}, false, false}); break;
    case Command::append: own(wire::Append{keys[0], values[0]}); break;
    case Command::get: own(wire::Get{keys[0]}); break;
    case Command::add: own(wire::Add{keys[0], request.number}); break;
    case Command::delete_key: own(wire::Remove{{keys[0]}}); break;
    case Command::compare_set: own(compare_set_of(request)); break;
    case Command::multi_get:
      if (!keys.empty()) own(wire::Get{keys[step_]});
      break;
    case Command::multi_set:
      if (!keys.empty()) own(multi_set_of(request));
      break;
    case Command::check: guests(core::CheckKeys{keys}); break;
    case Command::wait: guests(core::AwaitKeys{keys}); break;
    case Command::count_keys: guests(core::CountKeys{}); break;
    case Command::queue_push: guests(core::Push{keys[0], values[0]}); break;
    case Command::queue_pop: guests(core::Pop{keys[0]}); break;
    case Command::queue_length: guests(core::CountQueued{keys[0]}); break;
    case Command::list_keys:
      own(wire::List{wire::ListKind::keys, {}, listing_ ? listing_->cursor : 0, 0});
      break;
    case Command::barrier:
      if (step_ == 0) {
        own(wire::Add{keys[0], 1});
      } else if (number_ >= request.number) {
        guests(core::Release{keys[0]});
      } else {
        guests(core::AwaitRelease{keys[0]});
      }
      break;
    case Command::cancel_wait: cancel_waits(into, out); break;
    case Command::watch_key:
      return base::failure(ErrorCode::unsupported, "WATCH_KEY is not served");
  }
  return {};
}

/// Nothing expected: the key may be absent, or there without a byte. Each is tried in turn.
wire::CompareSet Conversation::compare_set_of(const Request& request) const {
  wire::CompareSet body;
  body.key = request.keys[0];
  if (!request.values[0].empty() || step_ % 2 != 0) body.expected = request.values[0];
  body.desired = request.values[1];
  return body;
}

void Conversation::cancel_waits(Step& into, ReplySink& out) {
  out.send(wait_cancelled);
  is_over_ = true;
  abandon_waits(into);
}

void Conversation::abandon_waits(Step& into) {
  into.kind = Kind::abandon;
  into.abandoned.swap(waits_);
  waits_.clear();
}

void Conversation::waits() {
  waits_.push_back(std::exchange(asked_id_, 0));
  is_over_ = true;
}

// Answers.

std::optional<Error> Conversation::answered(const core::SendReply& reply, ReplySink& out) {
  if (reply.request_id != asked_id_ || asked_id_ == 0) return take_late(reply, out);
  asked_id_ = 0;
  is_over_ = true;  // unless it takes another step
  const bool is_value =
      request_->command == Command::get || request_->command == Command::multi_get;
  if (is_value && reply.code == static_cast<std::uint16_t>(ErrorCode::not_found)) {
    send_bytes(out, {});
  } else if (!is_ok(reply)) {
    return error_of(reply);
  } else if (auto why = take(reply, out)) {
    return why;
  }
  ++step_;
  if (request_->command == Command::multi_get) is_over_ = step_ == request_->keys.size();
  return std::nullopt;
}

/// Of a step that went well.
std::optional<Error> Conversation::take(const core::SendReply& reply, ReplySink& out) {
  switch (request_->command) {
    case Command::get:
    case Command::multi_get: send_body(out, reply, value_head_bytes); break;
    case Command::compare_set: take_compare_set(reply, out); break;
    case Command::check: out.send(reply.head == "\1" ? ready : not_ready); break;
    case Command::wait: out.send(stop_waiting); break;
    case Command::add:
    case Command::delete_key:
    case Command::count_keys:
    case Command::queue_length: out.send(reply.head); break;
    case Command::queue_pop:
      out.send(std::string_view(reply.head).substr(0, number_bytes));
      if (number_in(reply) > 0) send_body(out, reply, number_bytes);
      break;
    case Command::barrier:
      if (step_ != 0) {
        out.send(stop_waiting);
      } else {
        number_ = number_in(reply);
        is_over_ = false;
      }
      break;
    case Command::list_keys: return take_page(reply, out);
    default: break;  // what has no answer
  }
  return std::nullopt;
}

/// A client learns what is there afterwards. Of a key that is absent it is told what it expected,
/// as by TCPStore.
void Conversation::take_compare_set(const core::SendReply& reply, ReplySink& out) {
  constexpr std::size_t applied_at = 0;
  constexpr std::size_t is_there_at = 1;
  constexpr std::size_t value_at = 2 + value_head_bytes;
  const std::string_view expected = request_->values[0];
  if (reply.head[applied_at] != 0) return send_bytes(out, request_->values[1]);
  const bool is_there = reply.head[is_there_at] != 0;
  const bool is_empty =
      is_there && reply.head.size() == value_at && reply.value.empty() && !reply.tail;
  const bool is_the_other = step_ % 2 == 0 ? is_empty : !is_there;
  if (expected.empty() && is_the_other) {
    is_over_ = false;  // it is as was expected, or was when it was looked at: once more, for that
  } else if (!is_there) {
    send_bytes(out, expected);
  } else {
    send_body(out, reply, value_at);
  }
}

std::optional<Error> Conversation::take_page(const core::SendReply& reply, ReplySink& out) {
  const auto page = wire::decode_body<wire::ListReply>(reply.head);
  if (!page) return page.error();
  if (!listing_) {
    listing_ = std::make_unique<Listing>(*quota_);
    if (!listing_->add(std::string_view(length_of(0).data(), bytes_of_length))) return no_room();
  }
  for (const wire::ListEntry& entry : page->entries) {
    const LengthBytes length = length_of(entry.name.size());
    if (!listing_->add({length.data(), length.size()}) || !listing_->add(entry.name)) {
      return no_room();
    }
    ++listing_->count;
  }
  listing_->cursor = page->cursor;
  is_over_ = page->cursor == 0;
  if (!is_over_) return std::nullopt;
  base::to_little_endian(listing_->count, listing_->bytes.begin());
  const std::unique_ptr<Listing> whole = std::move(listing_);
  const std::string_view all = whole->bytes.all().substr(0, whole->used);
  core::Payload payload = whole->bytes.take_over(*quota_, all, core::Charging::normal);
  if (payload == nullptr) return core::memory_exhausted(*quota_, all.size());
  out.send(std::move(payload), 0, true);
  return std::nullopt;
}

Error Conversation::no_room() const {
  return core::memory_exhausted(*quota_, 2 * listing_->bytes.size_bytes());
}

/// A wait is over. Nothing is sent in the midst of another answer.
std::optional<Error> Conversation::take_late(const core::SendReply& reply, ReplySink& out) {
  if (std::erase(waits_, reply.request_id) == 0) return std::nullopt;
  if (!is_ok(reply)) return error_of(reply);
  if (step_ != 0) {
    ++late_count_;
  } else {
    out.send(stop_waiting);
  }
  return std::nullopt;
}

}  // namespace muster::server::tcpstore
