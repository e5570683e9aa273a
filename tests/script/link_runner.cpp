#include "link_runner.h"

#include <utility>

#include "support/decoded.h"
#include "wire/reply.h"

namespace muster::script {
namespace {

std::string frame_bytes(wire::FrameType type, std::uint64_t id) {
  wire::FrameHeader header;
  header.type = type;
  header.id = id;
  std::string bytes;
  wire::append_frame(bytes, header, "");
  return bytes;
}

/// Long values in short: how often which byte, or that it is not one byte alone.
std::string summary(std::string_view value) {
  const bool is_one_byte = value.find_first_not_of(value.substr(0, 1)) == std::string_view::npos;
  if (value.empty() || !is_one_byte) return std::to_string(value.size()) + "_mixed";
  return std::to_string(value.size()) + "*" + std::string(value.substr(0, 1));
}

/// What asks the server to end the call, if that has to.
auto cancellation_of(const wire::RequestBody& body) {
  decltype(client::Ticket::cancellation) cancellation;
  if (const auto* round = std::get_if<wire::CollectiveCall>(&body)) {
    cancellation = wire::CancelRound{round->epoch, round->round};
  } else if (const auto* regroup = std::get_if<wire::Regroup>(&body)) {
    cancellation = wire::CancelRegroup{regroup->epoch, regroup->attempt};
  } else if (std::holds_alternative<wire::Take>(body)) {
    cancellation = wire::CancelTake{0, true};
  }
  return cancellation;
}

}  // namespace

LinkRunner::LinkRunner() { client_.name = "client"; }

LinkRunner::~LinkRunner() { is_torn_down_ = true; }

std::vector<Line> LinkRunner::run(const Step& step, const std::string& actor) {
  Arguments arguments(step.words);
  lines_.clear();
  if (link_ != nullptr) step_began_ = world_->time;
  if (step.verb == "open") {
    open(arguments);
  } else if (link_ == nullptr) {
    throw ScriptError("the script does not begin with `open`");
  } else if (step.verb == "+") {
    time_passes_ = true;
    world_->pass_until(world_->time + duration_of(arguments.next("a time")).value());
    time_passes_ = false;
  } else if (actor == "server") {
    run_server_step(step.verb, arguments);
  } else if (!run_network_step(step.verb, arguments)) {
    run_application_step(step.verb, arguments);
  }
  arguments.finish();
  return std::exchange(lines_, {});
}

// The application.

void LinkRunner::open(Arguments& arguments) {
  if (link_ == nullptr) {
    StoreOptions options;
    options.io_thread = IoThread::create_for_caller();
    options.handlers = HandlerPlace::io_thread;
    auto world = std::make_unique<LinkWorld>(*this);
    world_ = world.get();
    link_ = client::Link::create("server:29500", std::move(options), std::move(world));
  }
  step_began_ = world_->time;
  const Duration timeout = arguments.duration("timeout").value_or(std::chrono::seconds(30));
  link_->establish(timeout, [this](Result<void>&& result) {
    Line& told = line(result ? "established" : "not established");
    if (result) return;
    told.words += " " + std::string(muster::name_of(result.error().code));
    told.further("detail", result.error().detail);
  });
  world_->serve();
}

void LinkRunner::run_application_step(const std::string& verb, Arguments& arguments) {
  if (verb == "call") {
    call(arguments);
  } else if (verb == "group") {
    client_.groups["g"] = GroupHandle{7, 1, 1, {}};
    client_.current_group = "g";
  } else if (verb == "cancel") {
    cancel(arguments);
  } else if (verb == "accept") {
    const auto id = static_cast<std::uint64_t>(number_of(arguments.next("a call")));
    link_->conclude(id, client::protocol::Verdict::accepted);
  } else if (verb == "give_back") {
    give_back(static_cast<std::uint64_t>(number_of(arguments.next("a call"))));
  } else if (verb == "watch") {
    watch(static_cast<std::uint64_t>(number_of(arguments.next("an epoch"))));
  } else if (verb == "incarnation") {
    line("incarnation " + std::to_string(link_->incarnation()));
  } else if (verb == "give_up") {
    const auto id = static_cast<std::uint64_t>(number_of(arguments.next("a call")));
    link_->give_up(submitted_[id]);
  } else if (verb == "break_down") {
    link_->break_down();
  } else if (verb == "close") {
    link_->close();
  } else if (verb == "holds") {
    Line& told = line("holds");
    told.with("connections", std::to_string(world_->open_count()));
    told.with("listeners",
              std::to_string(world_->ring_listeners_count() + world_->failure_listeners_count()));
  } else {
    throw ScriptError("no such step: " + verb);
  }
  world_->serve();
}

void LinkRunner::call(Arguments& arguments) {
  is_lasting_ = arguments.flag("lasting");
  const std::string verb = arguments.next("a request");
  const auto chained = arguments.number("chained").value_or(1);
  auto asked = request_of(verb, arguments, client_, processes_);
  if (asked == nullptr) throw ScriptError("no such request: " + verb);
  submit(std::move(asked), chained - 1);
}

void LinkRunner::submit(std::unique_ptr<Asked> asked, std::int64_t chained) {
  auto made = std::make_unique<Made>();
  made->runner = this;
  made->asked = std::move(asked);
  made->chained = chained;
  const wire::Request& request = made->asked->owned.request;
  client::Ticket ticket;
  ticket.serial = link_->next_serial();
  ticket.cancellation = cancellation_of(request.body);
  ticket.is_lasting = is_lasting_;
  if (std::holds_alternative<wire::Take>(request.body)) {
    ticket.receipt = client::protocol::Receipt::by_caller;
  }
  ticket.done = [waiting = made.get()](client::Outcome&& outcome) {
    waiting->runner->ended(*waiting, std::move(outcome));
  };
  const auto submitted = link_->submit(request.body, request.timeout, std::move(ticket));
  made->id = submitted.call;
  submitted_[submitted.call] = submitted;
  made_[submitted.call] = std::move(made);
}

void LinkRunner::ended(Made& made, client::Outcome&& outcome) {
  const auto at = line("").at;
  lines_.back() =
      completion_line(made.id, *made.asked, outcome.reply, outcome.fate, client_, processes_);
  lines_.back().at = at;
  std::unique_ptr<Made> over = std::move(made_[made.id]);
  made_.erase(over->id);
  if (outcome.call != 0) {
    lines_.back().with("kept", "yes");
    over->value = *std::move(outcome.reply);
    kept_[outcome.call] = std::move(over);
    return;
  }
  if (over->chained > 0) submit(std::move(over->asked), over->chained - 1);
}

/// Of a take whose value has come.
void LinkRunner::give_back(std::uint64_t id) {
  std::unique_ptr<Made> made = std::move(kept_.at(id));
  client::Ticket ticket;
  ticket.done = [waiting = made.get()](client::Outcome&& outcome) {
    waiting->runner->ended(*waiting, std::move(outcome));
  };
  std::string value = std::move(made->value);
  made_[id] = std::move(made);
  link_->give_back(id, std::move(value), std::move(ticket));
}

/// Tells what those who watch an epoch hear.
class LinkRunner::Watcher final : public client::EpochWatcher {
 public:
  Watcher(LinkRunner& runner, std::uint64_t epoch) : runner_(runner), epoch_(epoch) {}
  void on_event(const wire::Event& event) override {
    runner_.line("epoch " + std::to_string(epoch_) + " hears " +
                 std::string(muster::name_of(event.error.code)));
  }

 private:
  LinkRunner& runner_;
  const std::uint64_t epoch_;
};

void LinkRunner::watch(std::uint64_t epoch) {
  auto watcher = std::make_shared<Watcher>(*this, epoch);
  if (link_->watchers().add(epoch, watcher)) {
    watchers_.push_back(std::move(watcher));
  } else {
    line("watched already");
  }
}

void LinkRunner::cancel(Arguments& arguments) {
  if (arguments.flag("all")) return link_->cancel();
  const auto id = static_cast<std::uint64_t>(number_of(arguments.next("a call")));
  link_->handle_of(submitted_[id]).cancel();
}

// The network.

bool LinkRunner::run_network_step(const std::string& verb, Arguments& arguments) {
  if (verb == "connected") {
    world_->connected();
  } else if (verb == "refused") {
    world_->not_connected({net::ConnectFailure::refused, "refused"});
  } else if (verb == "unreachable") {
    world_->not_connected({net::ConnectFailure::silent, "no route"});
  } else if (verb == "not_resolved") {
    world_->not_connected({net::ConnectFailure::not_resolved, "no such host"});
  } else if (verb == "lost") {
    if (const auto request = arguments.named("meanwhile")) {
      call_when_gone_ = request_of(*request, arguments, client_, processes_);
    }
    // Only the link holds it, so it is gone as soon as the link lets go of it.
    LinkChannel* const channel = world_->channel(connection_).get();
    if (channel == nullptr) throw ScriptError("there is no connection");
    world_->serve([channel] { channel->lose(net::CloseCause::by_peer, ""); });
  } else if (verb == "room") {
    const std::string room = arguments.next("how many bytes, or `all`");
    world_->give_room(room == "all" ? ~std::size_t{0} : static_cast<std::size_t>(number_of(room)));
  } else {
    return false;
  }
  return true;
}

void LinkRunner::run_server_step(const std::string& verb, Arguments& arguments) {
  if (verb == "lives") {
    server_ = Server::lives;
  } else if (verb == "falls_silent") {
    server_ = Server::in_script;
  } else if (verb == "hangs") {
    server_ = Server::hangs;
  } else if (verb == "hello") {
    receive(hello_bytes(arguments, processes_, 0));
  } else if (verb == "refuses") {
    const auto status = static_cast<std::uint16_t>(code_of(arguments.next("an error's name")));
    receive(hello_bytes(arguments, processes_, status));
  } else if (verb == "reply") {
    const auto id = static_cast<std::uint64_t>(number_of(arguments.next("a call")));
    const auto found = made_.find(id);
    if (found == made_.end()) throw ScriptError("no such call");
    receive(reply_bytes(*found->second->asked, id, arguments));
  } else if (verb == "cancel_reply") {
    const auto id = static_cast<std::uint64_t>(number_of(arguments.next("a call")));
    receive(cancel_reply_bytes(id, arguments));
  } else if (verb == "error") {
    const auto id = static_cast<std::uint64_t>(number_of(arguments.next("a call")));
    receive(error_bytes(id, arguments));
  } else if (verb == "event") {
    receive(event_bytes(arguments));
  } else if (verb == "heartbeat_reply") {
    receive(frame_bytes(wire::FrameType::heartbeat_reply, heartbeat_));
  } else {
    throw ScriptError("the server does no such thing: " + verb);
  }
}

void LinkRunner::receive(const std::string& bytes) {
  const auto channel = world_->channel(connection_);
  if (!channel) throw ScriptError("there is no connection");
  world_->serve([&] { channel->receive(bytes); });
}

// What the world tells of.

void LinkRunner::connecting() {
  if (server_ != Server::hangs) {
    line("connect");
    return;
  }
  world_->soon([this] { world_->connected(); });
}

void LinkRunner::caller_wrote(int connection, bool is_open) {
  line("caller writes to " + std::to_string(connection) + (is_open ? "" : ", which has ended"));
}

void LinkRunner::arrived(int connection, std::string_view bytes) {
  connection_ = connection;
  std::string& stream = streams_[connection];
  stream += bytes;
  std::string_view left = stream;
  while (!left.empty()) {
    std::string_view whole = left;
    auto told = take_line(left);
    if (!told) break;
    auto frame = wire::cut_frame(whole, 0xffffffff);
    const bool is_echo =
        frame.has_value() && *frame && (*frame)->header.type == wire::FrameType::echo;
    if (is_echo) {  // it is told with the next
      whole.remove_prefix(wire::frame_header_bytes + (*frame)->body.size());
      frame = wire::cut_frame(whole, 0xffffffff);
    }
    if (frame.has_value() && *frame && (*frame)->header.type == wire::FrameType::request) {
      const auto request = test::decoded_request(**frame);
      const auto* set = request ? std::get_if<wire::Set>(&request->body) : nullptr;
      if (set != nullptr) told->with("value", summary(set->value));
    }
    tell_frame(connection, *std::move(told));
  }
  stream.erase(0, stream.size() - left.size());
}

void LinkRunner::tell_frame(int connection, Line told) {
  if (server_ == Server::hangs) return;
  if (told.words == "transmit heartbeat") {
    heartbeat_ = static_cast<std::uint64_t>(number_of(told.fields.front().value));
    if (server_ == Server::lives) {
      const auto channel = world_->channel(connection);
      world_->soon([channel, number = heartbeat_] {
        channel->receive(frame_bytes(wire::FrameType::heartbeat_reply, number));
      });
      if (told.fields.size() == 1) return;
    }
  }
  const auto at = line("").at;
  told.words = std::to_string(connection) + " gets" + told.words.substr(8);
  lines_.back() = std::move(told);
  lines_.back().at = at;
}

void LinkRunner::closed(int connection, bool when_sent) {
  if (is_torn_down_) return;
  line(std::to_string(connection) + (when_sent ? " closed when all was sent" : " closed"));
}

void LinkRunner::gone(int connection) {
  if (is_torn_down_ || connection != connection_ || !call_when_gone_) return;
  submit(std::move(*std::exchange(call_when_gone_, std::nullopt)), 0);
}

Line& LinkRunner::line(std::string words) {
  Line& made = lines_.emplace_back();
  made.words = std::move(words);
  if (time_passes_) made.at = world_->time - step_began_;
  return made;
}

}  // namespace muster::script
