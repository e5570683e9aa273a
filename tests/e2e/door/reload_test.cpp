#include <unistd.h>

#include <optional>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "support/await.h"
#include "support/door.h"

// Another version of the credentials, while sessions go on.

namespace {

using muster::ErrorCode;
using muster::Server;
using muster::ServerOptions;
using muster::test::await;
using muster::test::CredentialsFile;
using muster::test::evaluator_key;
using muster::test::HeardLog;
using muster::test::hello_for;
using muster::test::must;
using muster::test::must_fail;
using muster::test::number_of;
using muster::test::other_key;
using muster::test::RawClient;
using muster::test::start_disturbed_server;
using muster::test::tls_context;
using muster::test::TlsClient;
using muster::test::trainer_key;
namespace wire = muster::wire;

const std::string trainer = "team/trainer " + trainer_key + " * all\n";
const std::string trainer_again = "team/trainer " + other_key + " * all\n";
const std::string evaluator = "team/evaluator " + evaluator_key + " * read,write\n";

/// Whether the session is there.
bool works(TlsClient& client) {
  return client.call(wire::Set{"key", "value", {}, false, false}) == 0;
}

struct FromFile {
  explicit FromFile(const std::string& text) : file(text) {
    ServerOptions options;
    options.credentials_file = file.path();
    options.logger = log.logger();
    server.emplace(start_disturbed_server(std::move(options)));
  }
  TlsClient client(const std::string& key) const {
    TlsClient made(server->addresses().front(), tls_context(key));
    REQUIRE(made.begin());
    const auto hello = made.say_hello();
    REQUIRE(hello.has_value());
    REQUIRE(hello->status == 0);
    return made;
  }
  bool knows(const std::string& key) const {
    return TlsClient(server->addresses().front(), tls_context(key)).begin();
  }

  CredentialsFile file;
  HeardLog log;
  std::optional<Server> server;
};

TEST_CASE("whose credential is removed has no session any more, others go on") {
  FromFile own(trainer + evaluator);
  TlsClient stays = own.client(trainer_key);
  TlsClient goes = own.client(evaluator_key);
  own.file.write(trainer);
  const auto change = must(own.server->reload_credentials());
  CHECK(change.removed == std::vector<std::string>{"team/evaluator"});
  CHECK(change.added.empty());
  CHECK(change.identities_count == 1);
  CHECK(goes.is_closed());
  CHECK_FALSE(own.knows(evaluator_key));
  CHECK(works(stays));
  CHECK(own.log.has("1 identities are known; removed: team/evaluator"));
}

TEST_CASE("a handshake that has begun with a key that is gone ends in a refusal") {
  FromFile own(trainer + evaluator);
  TlsClient client(own.server->addresses().front(), tls_context(evaluator_key));
  REQUIRE(client.begin());
  own.file.write(trainer);
  must(own.server->reload_credentials());
  CHECK(client.say_hello().value().status == number_of(ErrorCode::permission_denied));
}

TEST_CASE("a file that is wrong changes nothing") {
  FromFile own(trainer);
  TlsClient client = own.client(trainer_key);
  own.file.write("team/trainer\n");
  CHECK(must_fail(own.server->reload_credentials()).code == ErrorCode::invalid_argument);
  own.file.write(evaluator, 0644);
  CHECK(must_fail(own.server->reload_credentials()).code == ErrorCode::invalid_argument);
  CHECK(own.knows(trainer_key));
  CHECK(works(client));
}

TEST_CASE("a key is exchanged while its identity works") {
  FromFile own(trainer);
  TlsClient old_one = own.client(trainer_key);
  own.file.write(trainer + trainer_again);
  CHECK(must(own.server->reload_credentials()).removed.empty());
  TlsClient new_one = own.client(other_key);
  CHECK(works(old_one));
  own.file.write(trainer_again);
  CHECK(must(own.server->reload_credentials()).removed.empty());
  CHECK(old_one.is_closed());
  CHECK(works(new_one));
}

TEST_CASE("a file that has changed is read without being asked to") {
  FromFile own(trainer);
  own.file.write(trainer + evaluator);
  await([&] { return own.log.has("added: team/evaluator"); });
  CHECK(own.knows(evaluator_key));
  own.file.write("wrong\n");
  await([&] { return own.log.has("the credentials stay as they were"); });
  CHECK(own.knows(evaluator_key));
}

TEST_CASE("through 200 versions of the file a session goes on, and newcomers find it whole") {
  FromFile own(trainer + evaluator);
  TlsClient client = own.client(trainer_key);
  for (int version = 0; version < 200; ++version) {
    own.file.write(version % 2 == 0 ? trainer : trainer + evaluator);
    must(own.server->reload_credentials());
    if (version % 10 == 0) CHECK(works(client));
    if (version % 20 == 0) CHECK(own.knows(trainer_key));
  }
}

TEST_CASE("a user who gets a line of his own has no session by that of his group any more") {
  const std::string gid = std::to_string(::getgid());
  const std::string uid = std::to_string(::getuid());
  const CredentialsFile file("unix:gid=" + gid + " * all as=team/us\n");
  ServerOptions options;
  options.credentials_file = file.path();
  options.listen = {"unix:" + file.folder() + "/socket"};
  Server server = start_disturbed_server(std::move(options));
  auto client = RawClient::with_session(server.addresses().front());
  file.write("unix:gid=" + gid + " * all as=team/us\nunix:uid=54321 * all as=team/other\n");
  must(server.reload_credentials());
  CHECK(client.call(wire::Set{"key", "value", {}, false, false}).header.code == 0);
  file.write("unix:gid=" + gid + " * all as=team/us\nunix:uid=" + uid + " * all as=team/me\n");
  must(server.reload_credentials());
  CHECK(client.is_closed());
}

TEST_CASE("without a file there is nothing to read again") {
  CHECK(must_fail(start_disturbed_server().reload_credentials()).code == ErrorCode::unsupported);
  ServerOptions options;
  options.credentials = trainer;
  Server server = start_disturbed_server(options);
  CHECK(must_fail(server.reload_credentials()).code == ErrorCode::unsupported);
}

}  // namespace
