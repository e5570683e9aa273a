// What clients do in scripts: they connect, ask, acknowledge, fall silent and come back.

#include <algorithm>

#include "core_runner.h"

namespace muster::script {
namespace {

std::vector<std::uint64_t> ids_of(Client& client, Arguments& arguments) {
  std::vector<std::uint64_t> ids;
  while (const auto word = arguments.next()) {
    if (*word == "all") {
      ids = client.unacknowledged;
    } else if (*word == "last") {
      if (client.unacknowledged.empty()) throw ScriptError(client.name + " has no reply yet");
      ids.push_back(client.unacknowledged.back());
    } else {
      ids.push_back(client.request_id(*word));
    }
  }
  return ids;
}

void forget(Client& client, const std::vector<std::uint64_t>& ids) {
  std::erase_if(client.unacknowledged, [&](std::uint64_t id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  });
}

}  // namespace

void CoreRunner::run_client_step(const Step& step, const std::string& actor, Arguments& arguments) {
  const auto [found, is_new] = clients_.try_emplace(actor);
  Client& client = found->second;
  client.name = actor;
  if (step.verb == "hello") return connect(client, arguments);
  if (is_new) throw ScriptError(actor + " has not said hello");
  if (run_link_step(step.verb, client, arguments)) return;
  ask(client, step.verb, arguments);
}

bool CoreRunner::run_link_step(const std::string& verb, Client& client, Arguments& arguments) {
  if (verb == "resumes") {
    resume(client, arguments);
  } else if (verb == "drops") {
    disconnect(client, core::DisconnectCause::closed);
  } else if (verb == "breaks") {
    disconnect(client, core::DisconnectCause::lost);
  } else if (verb == "vanishes" || verb == "speaks") {
    client.silent = verb == "vanishes";
  } else if (verb == "ack" || verb == "abandons") {
    acknowledge(client, arguments, verb);
  } else if (verb == "repeats") {
    repeat(client, arguments);
  } else if (verb == "heartbeat") {
    heartbeat(client, arguments);
  } else if (verb == "goodbye") {
    apply_from(client, core::Goodbye{client.connection});
    client.connection = 0;
  } else {
    return false;
  }
  return true;
}

void CoreRunner::say_hello(Client& client) {
  client.connection = ++last_connection_;
  client.silent = false;
  owners_.emplace(client.connection, client.name);
  wire::ResumeToken token;
  token.bytes.fill(0x55);
  token.bytes[0] = static_cast<std::uint8_t>(last_connection_);
  token.bytes[1] = static_cast<std::uint8_t>(last_connection_ >> 8);
  apply(core::Hello{client.connection, client.hello, token});
}

void CoreRunner::connect(Client& client, Arguments& arguments) {
  std::string name = client.name;
  client = Client();
  client.name = std::move(name);
  wire::ClientHello& hello = client.hello;
  hello.process.id = processes_.id_of(arguments.named("process").value_or(client.name));
  hello.process.host = arguments.bytes("host").value_or("h1");
  hello.process.pid = static_cast<std::uint32_t>(arguments.number("pid").value_or(1));
  hello.process.label = arguments.bytes("label").value_or("");
  hello.name_space = arguments.bytes("namespace").value_or("");
  hello.auth_method = static_cast<std::uint8_t>(arguments.number("auth").value_or(0));
  hello.version_min =
      static_cast<std::uint16_t>(arguments.number("version_min").value_or(hello.version_min));
  hello.version_max =
      static_cast<std::uint16_t>(arguments.number("version_max").value_or(hello.version_max));
  if (arguments.flag("observer")) hello.role = wire::Role::observer;
  say_hello(client);
}

void CoreRunner::resume(Client& client, Arguments& arguments) {
  const wire::ClientHello honest = client.hello;
  if (const auto session = arguments.number("session")) {
    client.hello.session_id = static_cast<std::uint64_t>(*session);
  }
  if (const auto incarnation = arguments.number("incarnation")) {
    client.hello.incarnation = static_cast<std::uint64_t>(*incarnation);
  }
  if (arguments.flag("with_wrong_token")) client.hello.token.bytes.fill(0x11);
  if (const auto name_space = arguments.bytes("namespace")) client.hello.name_space = *name_space;
  // A resume that is refused leaves the connection before it as it was.
  const core::ConnectionId before = client.connection;
  say_hello(client);
  if (client.connection == 0) {
    client.hello = honest;
    client.connection = before;
  }
}

void CoreRunner::disconnect(Client& client, core::DisconnectCause cause) {
  if (client.connection == 0) throw ScriptError(client.name + " has no connection");
  const core::ConnectionId connection = client.connection;
  client.connection = 0;
  apply(core::Disconnected{connection, cause});
}

void CoreRunner::acknowledge(Client& client, Arguments& arguments, std::string_view verb) {
  const std::vector<std::uint64_t> ids = ids_of(client, arguments);
  forget(client, ids);
  if (verb == "ack") {
    apply_from(client, core::Acknowledged{client.connection, &ids});
    return;
  }
  for (const std::uint64_t id : ids) client.asked.at(id)->replies_due = 0;
  apply_from(client, core::Abandoned{client.connection, &ids});
}

void CoreRunner::heartbeat(Client& client, Arguments& arguments) {
  std::vector<std::uint64_t> ids;
  for (const std::string& label : arguments.list("acks")) {
    ids.push_back(client.request_id(label));
  }
  forget(client, ids);
  apply_from(client, core::Heartbeat{client.connection, client.next_heartbeat++, &ids});
}

void CoreRunner::repeat(Client& client, Arguments& arguments) {
  const std::string label = arguments.next("which request");
  Asked& asked = *client.asked.at(client.request_id(label));
  if (const auto timeout = arguments.duration("timeout")) {
    asked.owned.request.timeout = *timeout;
  }
  asked.owned.request.acknowledged.clear();
  asked.replies_due = 1;
  send(client, asked);
}

void CoreRunner::ask(Client& client, const std::string& verb, Arguments& arguments) {
  const bool late = arguments.flag("late");
  auto asked = request_of(verb, arguments, client, processes_);
  if (asked == nullptr) throw ScriptError("unknown verb: " + verb);
  arguments.finish();
  forget(client, asked->owned.request.acknowledged);
  const std::uint64_t id = asked->owned.request.id;
  if (!asked->label.empty()) client.labels[asked->label] = id;
  Asked& sent = *(client.asked[id] = std::move(asked));
  if (late) {
    apply(core::Requested{client.closed_connection, &sent.owned.request});
  } else {
    send(client, sent);
  }
}

void CoreRunner::send(Client& client, Asked& asked) {
  apply_from(client, core::Requested{client.connection, &asked.owned.request});
}

}  // namespace muster::script
