// What clients do in scripts: they connect, ask, acknowledge, fall silent and come back.

#include "core_runner.h"

namespace muster::script {

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
  } else if (verb == "echo") {
    echo(client, arguments);
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
  core::Hello event{client.connection, client.hello, token, client.unit, client.grant};
  event.is_of_own_user = client.is_of_own_user;
  apply(event);
}

/// `TENANT/NAME NAMESPACES RIGHTS [sessions=] [groups=] [memory=] [requests=]`, as in a credentials
/// file.
Grant CoreRunner::grant_of(Arguments& arguments) {
  auth::Grant grant;
  const auto identity = auth::read_identity(arguments.next("an identity"));
  const auto namespaces = auth::NamespacePatterns::read(arguments.next("namespaces"));
  const auto rights = auth::read_rights(arguments.next("rights"));
  if (!identity || !namespaces || !rights) throw ScriptError("no credential line is like that");
  grant.identity = *identity;
  grant.namespaces = *namespaces;
  grant.rights = *rights;
  const auto limit = [&](const char* name) {
    return static_cast<std::uint32_t>(arguments.number(name).value_or(0));
  };
  grant.limits.sessions = limit("sessions");
  grant.limits.groups = limit("groups");
  grant.limits.requests_per_second = limit("requests");
  grant.limits.memory_bytes = limit("memory");
  return std::make_shared<const auth::Grant>(std::move(grant));
}

/// `by=LINE`; null: the client proves nothing.
Grant CoreRunner::credential(Arguments& arguments) const {
  const auto name = arguments.named("by");
  if (!name) return nullptr;
  const auto found = grants_.find(*name);
  if (found == grants_.end()) throw ScriptError("there is no credential line " + *name);
  return found->second;
}

/// What a client does at once: it shows that it has read the server's hello.
void CoreRunner::echo(Client& client, Arguments& arguments) {
  apply_from(client, core::Echo{client.connection, echo_of(arguments, client.hello)});
}

void CoreRunner::connect(Client& client, Arguments& arguments) {
  std::string name = client.name;
  client = Client();
  client.name = std::move(name);
  client.hello = hello_of(arguments, client.name, processes_);
  client.grant = credential(arguments);
  const std::string own = client.grant != nullptr ? "identity " + to_string(client.grant->identity)
                                                  : std::string("10.0.0.1");
  client.unit = arguments.named("unit").value_or(own);
  client.is_of_own_user = arguments.flag("own_user");
  const bool echoes = !arguments.flag("without_echo");
  say_hello(client);
  client.silent = !echoes;
  if (echoes && client.connection != 0) echo(client, arguments);
}

void CoreRunner::resume(Client& client, Arguments& arguments) {
  const wire::ClientHello honest = client.hello;
  const Grant grant = client.grant;
  if (const Grant other = credential(arguments)) client.grant = other;
  if (arguments.flag("unproved")) client.grant = nullptr;
  client.hello = resuming_hello_of(arguments, honest);
  // A resume that is refused leaves the connection before it as it was.
  const core::ConnectionId before = client.connection;
  say_hello(client);
  if (client.connection == 0) {
    client.hello = honest;
    client.grant = grant;
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
  const std::vector<std::uint64_t> ids = client.ids(arguments);
  client.forget(ids);
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
  client.forget(ids);
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
  client.forget(asked->owned.request.acknowledged);
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
