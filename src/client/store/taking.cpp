#include <memory>
#include <string>
#include <utility>

#include "client/store/store_call.h"
#include "muster/detail/taken_value.h"
#include "muster/interruptible.h"

// Takes and pops. What they bring is acknowledged when the program has it; until then it can be
// given back.

MUSTER_BEGIN_NAMESPACE

namespace detail {

/// What a take or a pop, its answer and the program that gets the value share.
///
/// Life cycle: made with the call -> settled, when that is over; if a value has come, the server
/// keeps it -> accepted; or refused, when this goes; or given back, and settled once more.
class TakenValue::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(std::shared_ptr<client::Link> link, std::string_view operation)
      : link_(std::move(link)), operation_(operation) {}
  ~Impl() { conclude(client::protocol::Verdict::refused); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void settle(const client::Outcome& outcome) { call_ = outcome.call; }
  void set_value(std::string value) { value_ = std::move(value); }

  std::string accept() {
    conclude(client::protocol::Verdict::accepted);
    return std::move(value_);
  }

  /// Of a blocking call. Its thread may have been interrupted since the value came: then the
  /// program will not have it.
  Result<std::string> accept_unless_interrupted() {
    const Interruptible* const interruptible = Interruptible::current();
    const bool is_interrupted = interruptible != nullptr && interruptible->is_interrupted();
    if (!is_interrupted || call_ == 0) return accept();
    client::Waiting waiting(
        *link_, [this](client::Ticket&& ticket) { return ask_to_give_back(std::move(ticket)); });
    client::Outcome outcome = waiting.outcome();
    if (!outcome.reply) return std::move(outcome.reply).error();
    value_ = *std::move(outcome.reply);
    return accept();
  }

  void give_back(Handler<TakenValue> handler) {
    auto started =
        std::make_unique<client::Started<TakenValue>>(link_, operation_, std::move(handler));
    started->call.context.operation = operation_;
    started->call.decode = [self = shared_from_this()](std::string&& value) -> Result<TakenValue> {
      self->set_value(std::move(value));
      return TakenValue(self);
    };
    if (call_ == 0) {  // it is received already
      started->outcome = {std::move(value_), client::protocol::Fate::answered};
      return client::run_handler_later(std::move(started));
    }
    client::Ticket ticket;
    ticket.done = [started = std::move(started)](client::Outcome&& outcome) mutable {
      started->outcome = std::move(outcome);
      client::run_handler(std::move(started));
    };
    ask_to_give_back(std::move(ticket));
  }

 private:
  client::Link::Submitted ask_to_give_back(client::Ticket&& ticket) {
    ticket.settle = [self = shared_from_this()](const client::Outcome& outcome) {
      self->settle(outcome);
    };
    return link_->give_back(std::exchange(call_, 0), std::move(value_), std::move(ticket));
  }

  void conclude(client::protocol::Verdict verdict) {
    const client::CallId call = std::exchange(call_, 0);
    if (call != 0 && !link_->is_forked()) link_->conclude(call, verdict);
  }

  const std::shared_ptr<client::Link> link_;
  const std::string_view operation_;
  client::CallId call_ = 0;  ///< whose answer is to be acknowledged; 0: none
  std::string value_;
};

TakenValue::TakenValue(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
TakenValue::TakenValue(TakenValue&&) noexcept = default;
TakenValue& TakenValue::operator=(TakenValue&&) noexcept = default;
TakenValue::~TakenValue() = default;

std::string TakenValue::accept() { return std::exchange(impl_, nullptr)->accept(); }

void TakenValue::give_back(Handler<TakenValue> handler) {
  std::exchange(impl_, nullptr)->give_back(std::move(handler));
}

}  // namespace detail

MUSTER_END_NAMESPACE

namespace muster::client {
namespace {

using detail::TakenValue;
using Taking = std::shared_ptr<TakenValue::Impl>;

/// `receive` makes what the program gets, when it gets it.
template <class T, class Request>
PreparedCall<T> taking_call(const std::shared_ptr<Store::Impl>& impl, std::string_view key,
                            Result<T> (*receive)(const Taking& taking)) {
  PreparedCall<T> made;
  made.context.operation = wire::name_of(wire::operation<Request>);
  made.body = Request{key};
  if (!impl) return made;
  const Taking taking = std::make_shared<TakenValue::Impl>(impl->link(), made.context.operation);
  made.decode = [taking, receive](std::string&& body) -> Result<T> {
    auto reply = wire::decode_body<wire::ValueReply>(body);
    if (!reply) return std::move(reply).error();
    taking->set_value(cut_out(body, reply->value));
    return receive(taking);
  };
  made.ticket.settle = [taking](const Outcome& outcome) { taking->settle(outcome); };
  made.ticket.receipt = protocol::Receipt::by_caller;
  made.ticket.cancellation = wire::CancelTake{0, true};
  return made;
}

Result<std::string> received(const Taking& taking) { return taking->accept_unless_interrupted(); }
Result<TakenValue> not_received(const Taking& taking) { return TakenValue(taking); }

}  // namespace
}  // namespace muster::client

MUSTER_BEGIN_NAMESPACE

using client::run;
using client::taking_call;

Result<std::string> Store::take(std::string_view key, Duration timeout) {
  return run(impl_, timeout, taking_call<std::string, wire::Take>(impl_, key, client::received));
}

Call Store::take_async(std::string_view key, Duration timeout, Handler<std::string> handler) {
  return run(impl_, timeout, taking_call<std::string, wire::Take>(impl_, key, client::received),
             std::move(handler));
}

Result<std::string> Store::queue_pop(std::string_view key, Duration timeout) {
  return run(impl_, timeout,
             taking_call<std::string, wire::QueuePop>(impl_, key, client::received));
}

Call Store::queue_pop_async(std::string_view key, Duration timeout, Handler<std::string> handler) {
  return run(impl_, timeout, taking_call<std::string, wire::QueuePop>(impl_, key, client::received),
             std::move(handler));
}

namespace detail {

Call take_async(Store* store, std::string_view key, Duration timeout, Handler<TakenValue> handler) {
  return run(store->impl(), timeout,
             taking_call<TakenValue, wire::Take>(store->impl(), key, client::not_received),
             std::move(handler));
}

Call queue_pop_async(Store* store, std::string_view key, Duration timeout,
                     Handler<TakenValue> handler) {
  return run(store->impl(), timeout,
             taking_call<TakenValue, wire::QueuePop>(store->impl(), key, client::not_received),
             std::move(handler));
}

}  // namespace detail

MUSTER_END_NAMESPACE
