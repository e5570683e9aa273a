#include "wire/hello.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "wire/foreign.h"
#include "wire/reply.h"
#include "wire/request.h"
#include "wire/writer.h"

using namespace muster;
using namespace muster::wire;
using namespace std::chrono_literals;
using namespace std::string_view_literals;

namespace {

std::string bytes_of(const ClientHello& hello) {
  std::string bytes;
  append_client_hello(bytes, hello);
  return bytes;
}

std::string bytes_of(const ServerHello& hello) {
  std::string bytes;
  append_server_hello(bytes, hello);
  return bytes;
}

std::string detail_for(std::string_view first_bytes) {
  const auto hello = decode_client_hello(first_bytes);
  REQUIRE_FALSE(hello.has_value());
  CHECK(hello.error().code == ErrorCode::protocol_error);
  CHECK_FALSE(check_magic(first_bytes).has_value());
  return hello.error().detail;
}

bool names(std::string_view detail, std::string_view other) {
  return detail.find(other) != detail.npos;
}

}  // namespace

TEST_CASE("every field of a client hello comes back as it was") {
  ClientHello hello;
  hello.role = Role::supervisor;
  hello.auth_method = 3;
  hello.auth_nonce[31] = 9;
  hello.process.id.bytes[0] = 1;
  hello.process.host = std::string(64, 'h');
  hello.process.pid = 4711;
  hello.process.label = "pod";
  hello.name_space = "job";
  hello.idle_lifetime = std::chrono::seconds(30);
  hello.run = std::string(64, 'r');
  hello.incarnation = ~0ULL;
  hello.session_id = 7;
  hello.token.bytes[15] = 8;
  const std::string bytes = bytes_of(hello);
  REQUIRE(bytes.size() == client_hello_bytes);
  const auto told = decode_client_hello(bytes);
  REQUIRE(told.has_value());
  CHECK(told->role == Role::supervisor);
  CHECK(told->auth_method == 3);
  CHECK(told->auth_nonce == hello.auth_nonce);
  CHECK(told->process.id == hello.process.id);
  CHECK(told->process.host == hello.process.host);
  CHECK(told->process.pid == 4711);
  CHECK(told->process.label == "pod");
  CHECK(told->name_space == "job");
  CHECK(told->idle_lifetime == std::chrono::seconds(30));
  CHECK(told->run == hello.run);
  CHECK(told->incarnation == ~0ULL);
  CHECK(told->session_id == 7);
  CHECK(told->token == hello.token);
}

TEST_CASE("every field of a server hello comes back as it was") {
  ServerHello hello;
  hello.auth_method = 1;
  hello.resumed = true;
  hello.incarnation = 5;
  hello.session_id = 6;
  hello.token.bytes[0] = 7;
  hello.limits.key_bytes_max = 1;
  hello.limits.value_bytes_max = 2;
  hello.limits.round_bytes_max = 3;
  hello.limits.keys_per_operation_max = 4;
  hello.limits.cached_results_max = 5;
  hello.limits.cached_result_bytes_max = ~0U;
  hello.limits.parked_waits_max = 6;
  hello.limits.world_size_max = 7;
  hello.limits.heartbeat = 10ms;
  hello.limits.session_timeout = 600s;
  hello.limits.grace = 9ms;
  hello.limits.slack = 8ms;
  hello.hosting_process.id.bytes[1] = 1;
  hello.hosting_process.host = std::string(64, 'h');
  hello.hosting_process.pid = 12;
  hello.hosting_rank = 3;
  hello.auth_nonce[0] = 1;
  hello.auth_proof[31] = 2;
  const std::string bytes = bytes_of(hello);
  REQUIRE(bytes.size() == server_hello_bytes);
  const auto told = decode_server_hello(bytes);
  REQUIRE(told.has_value());
  CHECK(told->status == 0);
  CHECK(told->resumed);
  CHECK(told->token == hello.token);
  CHECK(told->limits.key_bytes_max == 1);
  CHECK(told->limits.value_bytes_max == 2);
  CHECK(told->limits.round_bytes_max == 3);
  CHECK(told->limits.keys_per_operation_max == 4);
  CHECK(told->limits.cached_results_max == 5);
  CHECK(told->limits.cached_result_bytes_max == ~0U);
  CHECK(told->limits.parked_waits_max == 6);
  CHECK(told->limits.world_size_max == 7);
  CHECK(told->limits.heartbeat == 10ms);
  CHECK(told->limits.session_timeout == 600s);
  CHECK(told->limits.grace == 9ms);
  CHECK(told->limits.slack == 8ms);
  CHECK(told->hosting_process.id == hello.hosting_process.id);
  CHECK(told->hosting_process.host == hello.hosting_process.host);
  CHECK(told->hosting_process.pid == 12);
  CHECK(told->hosting_rank == 3);
  CHECK(told->auth_nonce == hello.auth_nonce);
  CHECK(told->auth_proof == hello.auth_proof);
  CHECK(decode_server_hello(bytes_of(ServerHello{}))->hosting_rank == -1);
}

TEST_CASE("a refusing server hello says why, whatever version it speaks") {
  ServerHello hello;
  hello.version = 9;
  hello.status = static_cast<std::uint16_t>(ErrorCode::fenced);
  hello.detail = std::string(200, 'd');
  const std::string bytes = bytes_of(hello);
  REQUIRE(bytes.size() == server_hello_bytes);
  const auto told = decode_server_hello(bytes);
  REQUIRE(told.has_value());
  CHECK(told->version == 9);
  CHECK(told->status == hello.status);
  CHECK(told->detail == std::string(refusal_bytes_max, 'd'));
}

TEST_CASE("names that are too long are cut in a hello") {
  ClientHello hello;
  hello.process.host = std::string(65, 'h');
  hello.process.label = std::string(1000, 'l');
  hello.name_space = std::string(300, 'n');
  const std::string bytes = bytes_of(hello);
  REQUIRE(bytes.size() == client_hello_bytes);
  const auto told = decode_client_hello(bytes);
  REQUIRE(told.has_value());
  CHECK(told->process.host == std::string(64, 'h'));
  CHECK(told->process.label == std::string(64, 'l'));
  CHECK(told->name_space == std::string(64, 'n'));
}

TEST_CASE("a name longer than its field is a protocol error") {
  for (const std::size_t at : {100U, 101U, 102U}) {
    std::string bytes = bytes_of(ClientHello{});
    bytes[at] = 65;
    CHECK(decode_client_hello(bytes).error().code == ErrorCode::protocol_error);
  }
  std::string bytes = bytes_of(ServerHello{});
  bytes[120] = 65;
  CHECK(decode_server_hello(bytes).error().code == ErrorCode::protocol_error);
}

TEST_CASE("hellos without a common version are unsupported and name both versions") {
  ClientHello newer;
  newer.version_min = 2;
  newer.version_max = 3;
  const Error error = decode_client_hello(bytes_of(newer)).error();
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(error.expected == protocol_version);
  CHECK(error.actual == 2);
  ClientHello older;
  older.version_min = 0;
  older.version_max = 0;
  CHECK(decode_client_hello(bytes_of(older)).error().code == ErrorCode::unsupported);
  ClientHello both;
  both.version_max = 9;
  CHECK(decode_client_hello(bytes_of(both)).has_value());
  ClientHello crossed;
  crossed.version_min = 2;
  CHECK(decode_client_hello(bytes_of(crossed)).error().code == ErrorCode::protocol_error);
  ServerHello server;
  server.version = 2;
  CHECK(decode_server_hello(bytes_of(server)).error().code == ErrorCode::unsupported);
}

TEST_CASE("an unknown role is unsupported") {
  std::string bytes = bytes_of(ClientHello{});
  bytes[12] = 3;
  CHECK(decode_client_hello(bytes).error().code == ErrorCode::unsupported);
}

TEST_CASE("a server that asks for no or impossible heartbeats is refused") {
  ServerHello hello;
  hello.limits.heartbeat = 0s;
  CHECK(decode_server_hello(bytes_of(hello)).error().code == ErrorCode::protocol_error);
  hello.limits.heartbeat = 20s;
  CHECK(decode_server_hello(bytes_of(hello)).error().code == ErrorCode::protocol_error);
}

TEST_CASE("others who knock at the port are named in the error") {
  CHECK(names(detail_for("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP"));
  CHECK(names(detail_for("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"sv), "TLS"));
  CHECK(names(detail_for("SSH-2.0-OpenSSH_9.2p1\r\n"), "SSH"));
  CHECK(names(detail_for("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "HTTP/2"));
  CHECK(names(detail_for("*1\r\n$4\r\nPING\r\n"), "Redis"));
  CHECK(names(detail_for("\x00\xce\xf7\x85\x3c"sv), "TCPStore"));
  CHECK(names(detail_for(std::string(512, 'x')), "does not speak"));
  const auto answer = decode_server_hello("HTTP/1.1 400 Bad Request\r\n\r\n");
  CHECK(names(answer.error().detail, "HTTP"));
}

TEST_CASE("a client of TCPStore is known by its first request, of any version") {
  const std::string_view add = "\x03\x05\0\0\0\0\0\0\0init/"sv;
  const std::string_view set = "\x00\x02\0\0\0\0\0\0\0/a"sv;
  for (const std::string_view request : {"\x00\xce\xf7\x85\x3c"sv, add, set}) {
    CHECK(foreign_protocol(request) == tcpstore_name);
    for (std::size_t size = 1; size < std::min<std::size_t>(request.size(), 10); ++size) {
      CHECK(may_become_tcpstore(request.substr(0, size)));
      CHECK(foreign_protocol(request.substr(0, size)).empty());
    }
  }
  for (const std::string_view asks :
       {"\x00\xce\xf7\x85\x3c\x0dMSTR"sv, "\x00\xce\xf7\x85\x3c\x07"sv}) {
    CHECK(foreign_protocol(asks) != tcpstore_name);  // our own clients do, before they are answered
    CHECK_FALSE(foreign_protocol(asks).empty());
  }
  CHECK_FALSE(may_become_tcpstore(""));
  CHECK_FALSE(may_become_tcpstore(add));
  CHECK_FALSE(may_become_tcpstore("\x04"));
  CHECK_FALSE(may_become_tcpstore("GET "));
  CHECK_FALSE(may_become_tcpstore("\x00\x00\x00\x08\x04\xd2\x16\x2f"sv));  // PostgreSQL
  CHECK(foreign_protocol("\x03\x05\0\0\0\0\0\0\0xyz"sv).empty());
}

TEST_CASE("a hello that is still short of its first bytes can become one") {
  const std::string bytes = bytes_of(ClientHello{});
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    CHECK(check_magic(std::string_view(bytes).substr(0, size)).has_value());
  }
  CHECK_FALSE(check_magic("\x8dMSTR\n").has_value());
}

TEST_CASE("a hello of another length is a protocol error, wherever it is cut") {
  const std::string client = bytes_of(ClientHello{}) + "x";
  for (std::size_t size = 0; size <= client.size(); ++size) {
    const auto told = decode_client_hello(std::string_view(client).substr(0, size));
    CHECK(told.has_value() == (size == client_hello_bytes));
    if (!told) CHECK(told.error().code == ErrorCode::protocol_error);
  }
  const std::string server = bytes_of(ServerHello{}) + "x";
  for (std::size_t size = 0; size <= server.size(); ++size) {
    const auto told = decode_server_hello(std::string_view(server).substr(0, size));
    CHECK(told.has_value() == (size == server_hello_bytes));
  }
}

TEST_CASE("every legal request and reply fits into the limits that the hello tells") {
  ServerLimits limits;
  limits.key_bytes_max = 20;
  limits.value_bytes_max = 1000;
  limits.round_bytes_max = 5000;
  limits.keys_per_operation_max = 50;
  limits.world_size_max = 100;
  const std::string key(20, 'k');
  const std::string value(100, 'v');
  Request request;
  request.id = 1;
  request.acknowledged.resize(ids_per_frame_max);
  const auto fits = [&](RequestBody body) {
    request.body = std::move(body);
    std::string bytes;
    append_request(bytes, request);
    return bytes.size() <= limits.request_bytes_max() + frame_header_bytes;
  };
  CHECK(fits(MultiSet{std::vector<KeyValue>(50, KeyValue{key, value}), 1s}));
  CHECK(fits(CollectiveCall{1, 1, Collective::scatter, 0, 0,
                            std::vector<std::string_view>(100, value.substr(0, 50))}));
  Recover recover;
  recover.streams.resize(streams_per_recover_max);
  CHECK(fits(recover));

  const auto fits_reply = [&limits](const auto& reply) {
    std::string bytes;
    append_body(bytes, reply);
    return bytes.size() <= limits.reply_bytes_max();
  };
  MemberEntry member;
  member.process.host = member.process.label = std::string(64, 'n');
  MembersReply members{std::vector<MemberEntry>(100 + candidates_listed_max, member)};
  for (int rank = 0; rank < 50; ++rank)
    members.members[static_cast<std::size_t>(rank)].info = value;
  CHECK(fits_reply(members));
  CHECK(fits_reply(ListReply{std::vector<ListEntry>(4096, ListEntry{key, 1, 1s, true}), 1}));
}

TEST_CASE("limits at the end of their numbers do not wrap around") {
  ServerLimits limits;
  limits.round_bytes_max = ~0ULL;
  CHECK(limits.request_bytes_max() == 0xffffffff);
  CHECK(limits.reply_bytes_max() == 0xffffffff);
  ServerLimits keys;
  keys.key_bytes_max = keys.keys_per_operation_max = keys.world_size_max = 0xffffffff;
  CHECK(keys.request_bytes_max() == 0xffffffff);
  CHECK(keys.reply_bytes_max() == 0xffffffff);
}
