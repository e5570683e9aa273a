#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include <doctest/doctest.h>

#include "nccl/functions.h"
#include "nccl/ids/bootstrap_socket.h"
#include "nccl/ids/id_message.h"
#include "support/machine.h"

namespace muster::nccl_internal {
namespace {

sockaddr_in loopback(sockaddr_in) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

sockaddr_in6 loopback(sockaddr_in6) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return address;
}

/// A socket on loopback that exec'd children inherit, and an id that names it.
template <class Address>
class NamedSocket {
 public:
  NamedSocket() {
    Address address = loopback(Address{});
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    socket_ = ::socket(generic->sa_family, SOCK_STREAM, 0);
    REQUIRE(::bind(socket_, generic, size) == 0);
    REQUIRE(::getsockname(socket_, generic, &size) == 0);
    std::memcpy(id.data(), "12345678", 8);
    std::memcpy(id.data() + 8, &address, sizeof address);
  }
  ~NamedSocket() { ::close(socket_); }

  void listen() const { REQUIRE(::listen(socket_, 1) == 0); }
  bool is_close_on_exec() const { return (::fcntl(socket_, F_GETFD) & FD_CLOEXEC) != 0; }
  int descriptor() const { return socket_; }

  nccl::UniqueId id{};

 private:
  int socket_ = -1;
};

TEST_CASE("the socket that an id names is found, and touched only when it is told to") {
  NamedSocket<sockaddr_in> named;
  named.listen();
  CHECK(find_bootstrap_socket(named.id) == named.descriptor());
  CHECK_FALSE(named.is_close_on_exec());
  set_close_on_exec(named.id);
  CHECK(named.is_close_on_exec());
}

TEST_CASE("the socket of an id with an IPv6 address is found") {
  if (!test::has_ipv6()) return;
  NamedSocket<sockaddr_in6> named;
  named.listen();
  CHECK(find_bootstrap_socket(named.id) == named.descriptor());
}

TEST_CASE("a thread that accepts at the socket ends when the id is given up") {
  NamedSocket<sockaddr_in> named;
  named.listen();
  CHECK(nccl::give_up(named.id));
  CHECK(::accept(named.descriptor(), nullptr, nullptr) < 0);
}

TEST_CASE("a socket that does not listen is none") {
  NamedSocket<sockaddr_in> named;
  CHECK_FALSE(find_bootstrap_socket(named.id));
}

TEST_CASE("where two descriptors fit none is touched") {
  NamedSocket<sockaddr_in> named;
  named.listen();
  const int second = ::dup(named.descriptor());
  set_close_on_exec(named.id);
  CHECK_FALSE(named.is_close_on_exec());
  CHECK_FALSE(nccl::give_up(named.id));
  ::close(second);
}

TEST_CASE("an id that looks otherwise names no socket") {
  NamedSocket<sockaddr_in> named;
  named.listen();
  nccl::UniqueId with_a_tail = named.id;
  with_a_tail.back() = 1;
  CHECK_FALSE(find_bootstrap_socket(with_a_tail));
  nccl::UniqueId of_another_family = named.id;
  of_another_family[8] = 1;
  CHECK_FALSE(find_bootstrap_socket(of_another_family));
  nccl::UniqueId of_another_port = named.id;
  of_another_port[11] = static_cast<char>(of_another_port[11] ^ 1);
  CHECK_FALSE(find_bootstrap_socket(of_another_port));
  CHECK_FALSE(find_bootstrap_socket(nccl::UniqueId{}));
}

TEST_CASE("an answer brings the id as it is") {
  nccl::UniqueId id{};
  for (std::size_t index = 0; index < id.size(); ++index) id[index] = static_cast<char>(index);
  const auto answer = decode_id_message(encode_id_message(id));
  REQUIRE(answer);
  CHECK(*answer == id);
}

TEST_CASE("an answer brings why there is no id") {
  Error error;
  error.code = ErrorCode::nccl;
  error.actual = 5;
  error.detail = "what 7 said";
  const auto answer = decode_id_message(encode_id_message(error));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ErrorCode::nccl);
  CHECK(answer.error().actual == 5);
  CHECK(answer.error().detail == "what 7 said");
}

TEST_CASE("what is no answer is a protocol error") {
  for (const std::string& bytes :
       {std::string(), std::string("i"), "i" + std::string(127, 'x'), "i" + std::string(129, 'x'),
        std::string("f"), std::string("f 81"), std::string("f81"), std::string("f81 "),
        std::string("f81 5"), std::string("f99999999 5 x"), std::string("f-1 5 x"),
        std::string("f81 -5 x"), std::string("x81 5 y")}) {
    CAPTURE(bytes);
    const auto answer = decode_id_message(bytes);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ErrorCode::protocol_error);
  }
}

TEST_CASE("a library that is not there, or is another, is missing") {
  for (const char* const path : {"/nowhere/libnccl.so.2", "libm.so.6"}) {
    CAPTURE(path);
    const auto library = load_nccl(path);
    REQUIRE_FALSE(library);
    CHECK(library.error().code == ErrorCode::library_missing);
    CHECK(library.error().detail.find(path) != std::string::npos);
  }
}

}  // namespace
}  // namespace muster::nccl_internal
