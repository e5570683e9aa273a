#include <algorithm>
#include <cstring>
#include <utility>

#include "body.h"
#include "server.h"

// What the rim does for clients of TCPStore's: as GuestReader and FrameReader of src/server do it.
// The room for an answer, and the end of a turn, are chance here.

namespace muster::sim {
namespace {

constexpr server::tcpstore::RequestLimits guest_limits{100, 100'000, 40, 200'000};

std::string body_in(const core::SendReply& reply) {
  std::string bytes = reply.head + std::string(reply.value);
  if (reply.tail != nullptr) bytes += reply.tail->view();
  return bytes;
}

}  // namespace

class Server::Replies final : public server::tcpstore::ReplySink {
 public:
  Replies(Server& server, Network::ConnectionId guest) : server_(server), guest_(guest) {}

  void send(std::string_view bytes) override {
    server_.guest_model_->said(guest_, bytes);
    server_.transmit(guest_, bytes);
  }
  void send(core::Payload value, std::size_t skipped, bool) override {
    send(value->view().substr(skipped));
  }

 private:
  Server& server_;
  Network::ConnectionId guest_;
};

Server::Guest::Guest(core::Quota& quota, Dialect fallback, std::string its_name_space)
    : state(quota, fallback, guest_limits), name_space(std::move(its_name_space)) {}

Server::Guest* Server::guest_on(Network::ConnectionId connection) {
  const auto found = peers_.find(connection);
  return found == peers_.end() ? nullptr : found->second.guest.get();
}

void Server::accept_guest(Network::ConnectionId connection, Dialect fallback,
                          const std::string& name_space) {
  set_end(connection);
  const std::uint64_t client = network_.client_of(connection);
  when_running([this, connection, client, fallback, name_space] {
    Peer& peer = peers_[connection];
    peer.client = client;
    peer.guest = std::make_unique<Guest>(engine_->memory().all, fallback, name_space);
    core::Hello event;
    event.connection = connection;
    event.hello.name_space = name_space;
    event.unit = "guests";
    event.guest.emplace();
    event.guest->idle_lifetime = guest_model_->terms().idle_lifetime;
    apply(event);
  });
}

void Server::welcome_guest(Guest& guest, const core::SendHello& effect) {
  if (effect.hello->status != 0) return;
  guest_model_->came(effect.connection, guest.name_space, last_event_);
  guest.state.requests.charge_to(*effect.quota);
  guest.state.conversation.charge_to(*effect.quota);
}

/// What comes while nothing of it is read waits in its socket.
void Server::received_of_guest(Network::ConnectionId connection, std::string_view bytes) {
  Peer& peer = peers_.at(connection);
  peer.bytes.append(bytes);
  if (peer.is_postponed) return;
  apply(core::Heard{connection});
  read_guest(connection);
}

/// Now and then straight to where it stays.
void Server::read_guest(Network::ConnectionId connection) {
  for (Guest* guest = guest_on(connection); guest != nullptr; guest = guest_on(connection)) {
    Peer& peer = peers_.at(connection);
    const std::span<char> room = std::exchange(guest->room, {});
    const std::size_t most = room.empty() ? peer.bytes.size() : room.size();
    const std::string piece = peer.bytes.substr(0, most);
    peer.bytes.erase(0, piece.size());
    guest_model_->arrived(connection, piece.size());
    std::string_view given = piece;
    if (!room.empty()) {
      std::copy(piece.begin(), piece.end(), room.begin());
      given = {room.data(), piece.size()};
    }
    guest->state.requests.give(given);
    while (read_guest_request(connection)) {
    }
    const auto after = peers_.find(connection);
    if (after == peers_.end() || after->second.is_postponed) return;
    guest_model_->has_read(connection);
    if (after->second.bytes.empty()) return;
  }
}

/// returns  whether there may be another one
bool Server::read_guest_request(Network::ConnectionId connection) {
  Guest* const guest = guest_on(connection);
  if (guest == nullptr) return false;
  if (random_.one_in(20)) {
    guest_waits(connection);
    return false;
  }
  const bool is_part = guest->state.requests.has_part_only();
  server::tcpstore::Request request;
  const auto read = guest->state.requests.next(request);
  if (!read) {
    guest_model_->cannot_read(connection, read.error().code == ErrorCode::resource_exhausted);
    end_guest(connection);
    return false;
  }
  if (*read == 0) {
    if (random_.one_in(2)) guest->room = guest->state.requests.room();
    return false;
  }
  if (is_part) throw std::logic_error("a request of which only a part has come is whole");
  guest_model_->reads(connection, request);
  return carry_out_request(connection, request);
}

/// returns  whether it is done, and the guest still there
bool Server::carry_out_request(Network::ConnectionId connection,
                               const server::tcpstore::Request& request) {
  GuestStep step;
  Replies replies(*this, connection);
  for (;;) {
    server::tcpstore::Conversation& conversation = guest_on(connection)->state.conversation;
    if (!conversation.next(request, step, replies)) {
      guest_model_->stepped(connection, true);
      end_guest(connection);
      return false;
    }
    if (step.kind == GuestStep::Kind::done) {
      guest_model_->done(connection);
      guest_model_->check();
      return true;
    }
    const bool is_taken = take_step(connection, step);
    Guest* const guest = guest_on(connection);
    if (guest == nullptr) return false;
    if (!is_taken) {
      guest->state.requests.put_back();
      guest_waits(connection);
      return false;
    }
    if (step.kind == GuestStep::Kind::abandon) continue;
    if (!conversation.is_answered()) conversation.waits();
    if (conversation.is_long() && random_.one_in(2)) {
      guest->state.requests.put_back();
      guest_waits(connection);
      return false;
    }
  }
}

/// returns  false: it has to come again, or the guest is gone
bool Server::take_step(Network::ConnectionId connection, GuestStep& step) {
  // Now and then there is more ahead of it than there ever is.
  const bool is_half_of_barrier = std::holds_alternative<core::AwaitRelease>(step.guest_request) &&
                                  step.kind == GuestStep::Kind::guests;
  const bool has_no_room = random_.one_in(is_half_of_barrier ? 2 : 12);
  const std::uint64_t ahead_bytes = has_no_room ? UINT64_MAX / 4 : 0;
  for (;;) {
    observe_time();
    const std::uint64_t of_peer_bytes = peers_.at(connection).unsent_bytes;
    core::UnsentReplies unsent{of_peer_bytes, 0, ahead_bytes, 0};
    if (ahead_bytes != 0) ++unsent.of_peer_bytes;
    core::Event event = core::Abandoned{connection, &step.abandoned};
    if (step.kind == GuestStep::Kind::own) {
      event = core::Requested{connection, &step.request,
                              guest_on(connection)->state.requests.memory_of_last(), unsent};
    } else if (step.kind == GuestStep::Kind::guests) {
      event = core::RequestedByGuest{connection, step.request.id, &step.guest_request, unsent};
    }
    const std::vector<core::Effect>& effects = engine_->apply(event, last_event_);
    const bool waits = is_postponed(effects);
    carry_out_all(effects);
    if (!waits) break;
    if (ahead_bytes != 0 || !let_heaviest_go(connection)) return false;
    if (guest_on(connection) == nullptr) return false;
  }
  Guest& guest = *guest_on(connection);
  guest_model_->stepped(connection, guest.is_ending);
  finish_event();
  if (guest.is_ending) end_guest(connection);
  return true;
}

void Server::answer_guest(Guest& guest, const core::SendReply& reply) {
  if (guest.is_ending) return;
  Replies replies(*this, reply.connection);
  guest.is_ending = guest.state.conversation.answered(reply, replies).has_value();
}

/// Until there is room, or it is its turn.
void Server::guest_waits(Network::ConnectionId connection) {
  Peer& peer = peers_.at(connection);
  peer.guest->state.requests.keep();
  peer.guest->room = {};
  peer.is_postponed = true;
  scheduler_.after(random_.between(Duration(1), std::chrono::milliseconds(30)), [this] {
    when_running([this] {
      if (is_up()) continue_postponed();
    });
  });
}

void Server::end_guest(Network::ConnectionId connection) {
  network_.close(connection, Side::server);
  lost(connection);
}

void Server::visit(const std::string& name_space, const wire::RequestBody& body) {
  if (!is_up() || !is_running() || !guest_model_->has_guests(name_space)) return;
  observe_time();
  const Network::ConnectionId visitor = network_.open(0);
  core::Hello hello;
  hello.connection = visitor;
  hello.hello.name_space = name_space;
  hello.unit = "visitor";
  wire::Request request;
  request.id = 1;
  request.timeout = Duration::zero();
  request.body = body;
  bool is_let_in = false;
  const core::Event events[] = {hello, core::Echo{visitor, {}}, core::Requested{visitor, &request},
                                core::Goodbye{visitor}};
  for (const core::Event& event : events) {
    for (const core::Effect& effect : engine_->apply(event, last_event_)) {
      if (const auto* welcome = std::get_if<core::SendHello>(&effect)) {
        is_let_in = welcome->hello->status == 0;
      } else if (const auto* reply = std::get_if<core::SendReply>(&effect)) {
        if (reply->connection != visitor) {
          carry_out(*reply);
        } else {
          guest_model_->own(name_space, body, reply->code, body_in(*reply));
        }
      }
    }
    if (!is_let_in) break;
  }
  finish_event();
  network_.close(visitor, Side::server);
  network_.close(visitor, Side::client);
}

bool Server::is_neighbour(Network::ConnectionId connection) const {
  const auto found = peers_.find(connection);
  return found != peers_.end() && found->second.is_neighbour;
}

void Server::visit_to_pop(const std::string& name_space, const std::string& key, Duration stay) {
  if (!is_up() || !is_running() || !guest_model_->has_guests(name_space)) return;
  observe_time();
  const Network::ConnectionId visitor = network_.open(0);
  peers_[visitor].is_neighbour = true;
  guest_model_->opens(visitor);
  core::Hello hello;
  hello.connection = visitor;
  hello.hello.name_space = name_space;
  hello.unit = "visitor";
  const std::vector<core::Effect> welcome = engine_->apply(hello, last_event_);
  const auto* const answer =
      welcome.empty() ? nullptr : std::get_if<core::SendHello>(&welcome.front());
  const bool is_let_in = answer != nullptr && answer->hello->status == 0;
  if (is_let_in) guest_model_->came(visitor, name_space, last_event_);
  carry_out_all(welcome);
  if (!is_let_in) return end_neighbour(visitor);
  handle(core::Echo{visitor, {}});
  wire::Request request;
  request.id = 1;
  request.timeout = std::chrono::hours(1);
  request.body = wire::QueuePop{key};
  bool is_answered = false;
  for (const core::Effect& effect :
       std::vector<core::Effect>(engine_->apply(core::Requested{visitor, &request}, last_event_))) {
    const auto* const reply = std::get_if<core::SendReply>(&effect);
    if (reply == nullptr || reply->connection != visitor) {
      std::visit([this](const auto& each) { carry_out(each); }, effect);
      continue;
    }
    is_answered = true;
    guest_model_->own(name_space, request.body, reply->code, body_in(*reply));
  }
  if (!is_answered) guest_model_->own_waits(visitor, key);
  finish_event();
  scheduler_.after(stay, [this, visitor] {
    when_running([this, visitor] {
      if (is_up() && is_neighbour(visitor)) end_neighbour(visitor);
    });
  });
}

/// What it has waited for.
bool Server::answer_neighbour(const core::SendReply& reply) {
  if (!is_neighbour(reply.connection)) return false;
  const std::string bytes = body_in(reply);
  const bool has_item = reply.code == 0;
  guest_model_->said(reply.connection,
                     has_item ? body_of<wire::ValueReply>(bytes).value : "an error");
  return true;
}

void Server::end_neighbour(Network::ConnectionId connection) {
  observe_time();
  peers_.erase(connection);
  guest_model_->gone(connection, last_event_);
  handle(core::Goodbye{connection});
  finish_event();
  network_.close(connection, Side::server);
  network_.close(connection, Side::client);
}

}  // namespace muster::sim
