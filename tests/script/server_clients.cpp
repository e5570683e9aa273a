// What clients do in scripts of the server: they connect, write, take what they are sent, or do
// not.

#include <algorithm>
#include <utility>

#include "net/address/resolver.h"
#include "server_runner.h"

namespace muster::script {
namespace {

/// Of no message that there is.
constexpr auto unknown_operation = static_cast<wire::Operation>(999);

/// Whose shares a connection of `host` counts for.
net::UnitId unit_of(const std::string& host) {
  if (host == "unix") return {net::UnitId::Kind::user, 1000};
  if (host == "root") return {net::UnitId::Kind::user, 0};
  const auto found = net::resolve_number(host, 50000);
  if (!found) throw ScriptError("no address: " + host);
  return net::unit_of(-1, found->addresses.front());
}

}  // namespace

void ServerRunner::run_client_step(const Step& step, const std::string& actor,
                                   Arguments& arguments) {
  service();
  ConnectedClient& one = clients_[actor];
  one.client.name = actor;
  if (run_connection_step(step.verb, one, arguments)) return;
  if (run_frame_step(step.verb, one, arguments)) return;
  ask(one, step.verb, arguments);
}

bool ServerRunner::run_connection_step(const std::string& verb, ConnectedClient& one,
                                       Arguments& arguments) {
  if (verb == "connects") {
    connect(one, arguments);
  } else if (verb == "hello") {
    const bool is_connected = one.connection != nullptr && !one.connection->has_hello;
    if (!is_connected) connect(one, arguments);
    one.client.keeps_echo = one.client.silent = arguments.flag("without_echo");
    one.client.hello = hello_of(arguments, one.client.name, processes_);
    say_hello(one);
  } else if (verb == "resumes") {
    const wire::ClientHello hello = resuming_hello_of(arguments, one.client.hello);
    connect(one, arguments);
    one.client.hello = hello;
    say_hello(one);
  } else {
    if (one.connection == nullptr) throw ScriptError(one.client.name + " has no connection");
    return run_socket_step(verb, one, arguments);
  }
  return true;
}

bool ServerRunner::run_socket_step(const std::string& verb, ConnectedClient& one,
                                   Arguments& arguments) {
  if (verb == "takes") {
    take(one, arguments);
  } else if (verb == "stays") {
    one.connection->channel->stay();
  } else if (verb == "drops" || verb == "breaks") {
    one.connection->channel->end(verb == "drops" ? net::CloseCause::by_peer
                                                 : net::CloseCause::lost);
  } else if (verb == "vanishes" || verb == "speaks") {
    one.client.silent = verb == "vanishes";
  } else {
    return false;
  }
  return true;
}

/// returns  whether the verb writes something that is no request
bool ServerRunner::run_frame_step(const std::string& verb, ConnectedClient& one,
                                  Arguments& arguments) {
  std::string bytes;
  if (verb == "bytes") {
    bytes = bytes_of(arguments.next("which bytes"));
  } else if (verb == "says") {
    if (one.connection == nullptr || one.connection->guest == nullptr) {
      throw ScriptError(one.client.name + " is no client of TCPStore's");
    }
    bytes = one.connection->guest->says(arguments);
  } else if (verb == "writes_later") {
    one.writes_later = true;
  } else if (verb == "sends") {
    send_later(one, arguments);
  } else if (verb == "ack" || verb == "abandons") {
    const std::vector<std::uint64_t> ids = one.client.ids(arguments);
    one.client.forget(ids);
    const auto type = verb == "ack" ? wire::FrameType::acknowledge : wire::FrameType::abandon;
    wire::append_ids(bytes, type, 0, ids);
  } else if (verb == "heartbeat") {
    wire::append_ids(bytes, wire::FrameType::heartbeat, one.client.next_heartbeat++, {});
  } else if (verb == "goodbye") {
    wire::append_goodbye(bytes, "the script says so");
  } else if (verb == "echo") {
    wire::append_echo(bytes, echo_of(arguments, one.client.hello));
  } else if (verb == "unknown") {
    ask_unknown(one, arguments);
  } else {
    return false;
  }
  if (!bytes.empty()) write(one, bytes);
  return true;
}

void ServerRunner::connect(ConnectedClient& one, Arguments& arguments) {
  const std::string host = arguments.named("from").value_or("127.0.0.1");
  const bool stays = arguments.flag("stays");
  const auto port = arguments.named("tcpstore");
  if (!world_.is_listening) throw ScriptError("the server does not listen any more");
  Connection& connection = *connections_.emplace_back(std::make_unique<Connection>());
  connection.owner = one.client.name;
  connection.channel = std::make_shared<FakeChannel>(
      host + ":50000",
      FakeChannel::Observer{
          [this, &connection](std::string_view bytes) { took(connection, bytes); },
          [this, &connection](std::string_view what) { line_of(connection, std::string(what)); },
          [this] { return world_.time; }});
  if (stays) connection.channel->stay();
  std::string name = std::move(one.client.name);
  if (one.connection == nullptr) one.client = Client();
  one.client.name = std::move(name);
  one.connection = &connection;
  one.writes_later = false;
  one.later.clear();
  if (!port) return service().accepted(connection.channel, unit_of(host));
  connection.guest = std::make_unique<GuestTalk>();
  const std::vector<server::tcpstore::Port>& open = service().settings().tcpstore;
  for (std::uint16_t number = 0; number < open.size(); ++number) {
    if (open[number].name_space != *port) continue;
    return service().accepted(connection.channel, unit_of(host),
                              {server::Arrival::Kind::tcpstore, number});
  }
  throw ScriptError("the server has no port for TCPStore's clients of namespace " + *port);
}

void ServerRunner::say_hello(ConnectedClient& one) {
  std::string bytes;
  wire::append_client_hello(bytes, one.client.hello);
  write(one, bytes);
}

void ServerRunner::take(ConnectedClient& one, Arguments& arguments) {
  const std::string what = arguments.next("everything, nothing, or how many bytes");
  FakeChannel& channel = *one.connection->channel;
  if (what == "everything") {
    channel.take_everything();
  } else if (what == "nothing") {
    channel.take_nothing();
  } else {
    channel.take(static_cast<std::uint64_t>(number_of(what)));
  }
}

/// Sends what was written, or its first bytes.
void ServerRunner::send_later(ConnectedClient& one, Arguments& arguments) {
  const auto first = arguments.number("first");
  std::string bytes = std::move(one.later);
  one.later.clear();
  if (first) {
    one.later = bytes.substr(std::min<std::size_t>(bytes.size(), static_cast<std::size_t>(*first)));
    bytes.resize(bytes.size() - one.later.size());
  }
  one.writes_later = !one.later.empty();
  one.connection->channel->deliver(bytes);
}

void ServerRunner::ask(ConnectedClient& one, const std::string& verb, Arguments& arguments) {
  const auto times = arguments.number("times").value_or(1);
  auto asked = request_of(verb, arguments, one.client, processes_);
  if (asked == nullptr) throw ScriptError("unknown verb: " + verb);
  arguments.finish();
  one.client.forget(asked->owned.request.acknowledged);
  std::string bytes;
  wire::Request& request = asked->owned.request;
  for (std::int64_t time = 1; time < times; ++time) {
    wire::append_request(bytes, request);
    auto again = std::make_unique<Asked>();
    again->owned.request.body = request.body;
    one.client.asked[request.id] = std::move(again);
    request.id = one.client.next_request_id++;
  }
  wire::append_request(bytes, request);
  if (!asked->label.empty()) one.client.labels[asked->label] = request.id;
  one.client.asked[request.id] = std::move(asked);
  write(one, bytes);
}

void ServerRunner::ask_unknown(ConnectedClient& one, Arguments& arguments) {
  auto asked = std::make_unique<Asked>();
  wire::Request& request = asked->owned.request;
  request.id = one.client.next_request_id++;
  request.body = wire::Status{};
  for (const std::string& label : arguments.list("acks")) {
    request.acknowledged.push_back(one.client.request_id(label));
  }
  one.client.forget(request.acknowledged);
  std::string bytes;
  wire::append_request(bytes, request, unknown_operation, "");
  one.client.asked[request.id] = std::move(asked);
  write(one, bytes);
}

/// Behind what has to come first.
void ServerRunner::write(ConnectedClient& one, std::string_view bytes) {
  std::string all = std::exchange(one.connection->echo, {});
  all += bytes;
  if (one.writes_later) {
    one.later += all;
  } else {
    one.connection->channel->deliver(all);
  }
}

}  // namespace muster::script
