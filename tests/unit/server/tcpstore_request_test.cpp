#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "server/tcpstore/request.h"

// Golden bytes: what PyTorch's clients send, as it stands on the wire.

namespace muster::server::tcpstore {
namespace {

using namespace std::string_literals;

constexpr RequestLimits limits{64, 256, 8};
const std::string validate = "\x00\xCE\xF7\x85\x3C"s;

/// A number of 64 bits.
std::string n(std::uint64_t value) {
  std::string bytes;
  for (int index = 0; index < 8; ++index) bytes += static_cast<char>(value >> (8 * index) & 0xffU);
  return bytes;
}
std::string s(std::string_view text) { return n(text.size()) + std::string(text); }

/// A request with everything in it of its own.
struct Whole {
  Command command;
  std::vector<std::string> keys{};
  std::vector<std::string> values{};
  std::int64_t number = 0;

  friend bool operator==(const Whole&, const Whole&) = default;
};

Whole whole(const Request& request) {
  return {request.command,
          {request.keys.begin(), request.keys.end()},
          {request.values.begin(), request.values.end()},
          request.number};
}

struct Sample {
  std::string bytes;
  Whole request;
};

const std::vector<Sample> newest_samples = {
    {validate, {Command::validate}},
    {"\x01"s + s("/a") + s("1"), {Command::set, {"/a"}, {"1"}}},
    {"\x02"s + s("/a") + s("1") + s("2"), {Command::compare_set, {"/a"}, {"1", "2"}}},
    {"\x03"s + s("/a"), {Command::get, {"/a"}}},
    {"\x04"s + s("init/") + n(1), {Command::add, {"init/"}, {}, 1}},
    {"\x04"s + s("/n") + n(~0ULL), {Command::add, {"/n"}, {}, -1}},
    {"\x05"s + n(2) + s("/a") + s("/b"), {Command::check, {"/a", "/b"}}},
    {"\x06"s + n(1) + s("/a"), {Command::wait, {"/a"}}},
    {"\x06"s + n(0), {Command::wait}},
    {"\x07"s, {Command::count_keys}},
    {"\x08"s + s("/a"), {Command::delete_key, {"/a"}}},
    {"\x09"s + s("/a") + s("tail"), {Command::append, {"/a"}, {"tail"}}},
    {"\x0A"s + n(2) + s("/a") + s("/b"), {Command::multi_get, {"/a", "/b"}}},
    {"\x0B"s + n(2) + s("/a") + s("1") + s("/b") + s(""),
     {Command::multi_set, {"/a", "/b"}, {"1", ""}}},
    {"\x0C"s, {Command::cancel_wait}},
    {"\x0D\x78\x56\x34\x12"s, {Command::ping, {}, {}, 0x12345678}},
    {"\x0E"s + s("/q") + s("item"), {Command::queue_push, {"/q"}, {"item"}}},
    {"\x0F"s + s("/q"), {Command::queue_pop, {"/q"}}},
    {"\x10"s + s("/q"), {Command::queue_length, {"/q"}}},
    {"\x11"s, {Command::list_keys}},
    {"\x12"s + s("/b") + n(4), {Command::barrier, {"/b"}, {}, 4}},
};

const std::vector<Sample> first_samples = {
    {"\x00"s + s("/a") + s("1"), {Command::set, {"/a"}, {"1"}}},
    {"\x01"s + s("/a") + s("1") + s("2"), {Command::compare_set, {"/a"}, {"1", "2"}}},
    {"\x02"s + s("/a"), {Command::get, {"/a"}}},
    {"\x03"s + s("init/") + n(1), {Command::add, {"init/"}, {}, 1}},
    {"\x04"s + n(1) + s("/a"), {Command::check, {"/a"}}},
    {"\x05"s + n(1) + s("/a"), {Command::wait, {"/a"}}},
    {"\x06"s, {Command::count_keys}},
    {"\x07"s + s("/a"), {Command::watch_key, {"/a"}}},
    {"\x08"s + s("/a"), {Command::delete_key, {"/a"}}},
};

const std::vector<Sample> second_samples = {
    {"\x00"s + s("/a") + s("1"), {Command::set, {"/a"}, {"1"}}},
    {"\x01"s + s("/a") + s("1") + s("2"), {Command::compare_set, {"/a"}, {"1", "2"}}},
    {"\x02"s + s("/a"), {Command::get, {"/a"}}},
    {"\x03"s + s("init/") + n(1), {Command::add, {"init/"}, {}, 1}},
    {"\x04"s + n(1) + s("/a"), {Command::check, {"/a"}}},
    {"\x05"s + n(1) + s("/a"), {Command::wait, {"/a"}}},
    {"\x06"s, {Command::count_keys}},
    {"\x07"s + s("/a"), {Command::delete_key, {"/a"}}},
    {"\x08"s + s("/t") + s("tail"), {Command::append, {"/t"}, {"tail"}}},
    {"\x09"s + n(2) + s("/x") + s("/y"), {Command::multi_get, {"/x", "/y"}}},
    {"\x0A"s + n(2) + s("/x") + s("1") + s("/y") + s("2"),
     {Command::multi_set, {"/x", "/y"}, {"1", "2"}}},
    {"\x0B"s, {Command::cancel_wait}},
};

struct Speech {
  std::vector<Sample> samples;
  Dialect fallback;  ///< of a reader that understands them
};
const std::vector<Speech> all_speeches = {{newest_samples, Dialect::first},
                                          {newest_samples, Dialect::newest},
                                          {first_samples, Dialect::first},
                                          {newest_samples, Dialect::second},
                                          {second_samples, Dialect::second}};

std::string all_bytes(const std::vector<Sample>& samples) {
  std::string bytes;
  for (const Sample& sample : samples) bytes += sample.bytes;
  return bytes;
}

/// Gives the bytes in pieces that end at the cuts, and at the end.
std::vector<Whole> read_in_pieces(std::string_view bytes, const std::vector<std::size_t>& cuts,
                                  Dialect fallback = Dialect::first) {
  RequestReader reader(fallback, limits);
  std::vector<Whole> read;
  Request request;
  std::size_t begin = 0;
  std::vector<std::size_t> ends = cuts;
  ends.push_back(bytes.size());
  for (const std::size_t end : ends) {
    for (;;) {
      // Elsewhere each time: nothing that was read before may be looked at.
      const std::string come(bytes.substr(begin, end - begin));
      const auto size = reader.read(come, request);
      REQUIRE(size.has_value());
      if (*size == 0) {
        if (!come.empty()) CHECK(reader.bytes_min() > come.size());
        break;
      }
      read.push_back(whole(request));
      begin += *size;
    }
  }
  CHECK(begin == bytes.size());
  return read;
}

void check_all(const std::vector<Whole>& read, const std::vector<Sample>& samples) {
  REQUIRE(read.size() == samples.size());
  for (std::size_t index = 0; index < samples.size(); ++index) {
    CHECK_MESSAGE(read[index] == samples[index].request, name_of(samples[index].request.command));
  }
}

Error error_of(const std::string& bytes, Dialect fallback = Dialect::first) {
  RequestReader reader(fallback, limits);
  Request request;
  std::string_view rest = bytes;
  for (;;) {
    const auto size = reader.read(rest, request);
    if (!size.has_value()) return size.error();
    REQUIRE(*size != 0);
    rest.remove_prefix(*size);
  }
}

TEST_CASE("every request of each dialect is read, as it stands on the wire") {
  for (const auto& [samples, fallback] : all_speeches) {
    check_all(read_in_pieces(all_bytes(samples), {}, fallback), samples);
  }
}

TEST_CASE("requests are the same wherever their bytes are cut") {
  for (const auto& [samples, fallback] : all_speeches) {
    const std::string bytes = all_bytes(samples);
    std::vector<std::size_t> everywhere;
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      check_all(read_in_pieces(bytes, {cut}, fallback), samples);
      everywhere.push_back(cut);
    }
    check_all(read_in_pieces(bytes, everywhere, fallback), samples);
  }
}

TEST_CASE("a long list that comes in many pieces is looked at once") {
  constexpr RequestLimits wide{64, 256, 1 << 20};
  constexpr std::uint64_t count = 10'000;
  std::string bytes = "\x05"s + n(count);
  for (std::uint64_t index = 0; index < count; ++index) bytes += s("k" + std::to_string(index));
  RequestReader reader(Dialect::first, wide);
  Request request;
  // What has been looked at is spoilt: whoever begins anew finds no length there.
  constexpr std::ptrdiff_t item_bytes_max = 16;
  std::string come;
  Result<std::size_t> size = 0;
  for (std::size_t end = 1; end < bytes.size(); end += 64) {
    if (come.end() - come.begin() > item_bytes_max) {
      std::fill(come.begin() + 1, come.end() - item_bytes_max, '\xff');
    }
    come += bytes.substr(come.size(), end - come.size());
    size = reader.read(come, request);
    REQUIRE(size.has_value());
    REQUIRE(*size == 0);
  }
  size = reader.read(bytes, request);
  CHECK(size.value() == bytes.size());
  REQUIRE(request.keys.size() == count);
  CHECK(request.keys.back() == "k9999");
}

TEST_CASE("a client that begins with VALIDATE is of the newest dialect, others of the fallback") {
  // In the first dialect 00 is SET, and a key of 1,015,412,686 bytes would follow.
  CHECK(read_in_pieces(validate + "\x0D\x01\x02\x03\x04"s, {1, 2, 3, 4}).back().command ==
        Command::ping);
  CHECK(read_in_pieces("\x00"s + s("k") + s("v"), {1, 2, 3}).back().command == Command::set);
  CHECK(error_of("\x0D\x01\x02\x03\x04"s, Dialect::newest).code == ErrorCode::protocol_error);
  CHECK(error_of("\x00\xCE\xF7\x85\x3D"s, Dialect::newest).code == ErrorCode::protocol_error);
  CHECK(error_of(validate + "\x00\xCE\xF7\x85\x3D"s).code == ErrorCode::protocol_error);
}

TEST_CASE("what no client says is refused") {
  CHECK(error_of(validate + "\x13"s).code == ErrorCode::protocol_error);
  CHECK(error_of("\x09"s).code == ErrorCode::protocol_error);
  CHECK(error_of("\x0C"s, Dialect::second).code == ErrorCode::protocol_error);
  CHECK(error_of("\xff"s).detail.find("command 255") != std::string::npos);
  CHECK(error_of("GET / HTTP/1.1\r\n\r\n").code == ErrorCode::protocol_error);
}

TEST_CASE("what is too large is refused by its length alone") {
  const auto refused = [](const std::string& bytes, std::uint64_t actual, std::uint64_t limit) {
    const Error error = error_of(bytes);
    CHECK(error.code == ErrorCode::too_large);
    CHECK(error.actual == actual);
    CHECK(error.limit == limit);
  };
  refused("\x02"s + n(65), 65, 64);
  refused("\x02"s + n(~0ULL), ~0ULL, 64);
  refused("\x00"s + s("k") + n(257), 257, 256);
  refused("\x04"s + n(9), 9, 8);
  refused("\x04"s + n(1ULL << 40), 1ULL << 40, 8);
  refused(validate + "\x0B"s + n(1) + s("k") + n(1ULL << 63), 1ULL << 63, 256);
  const std::string key(64, 'k');
  const std::string value(256, 'v');
  CHECK(read_in_pieces("\x00"s + s(key) + s(value), {}).front() ==
        Whole{Command::set, {key}, {value}});
}

TEST_CASE("the reader tells how many bytes are still to come") {
  RequestReader reader(Dialect::first, limits);
  Request request;
  const std::string bytes = "\x00"s + s("key") + s(std::string(200, 'v'));
  CHECK(reader.read(bytes.substr(0, 1), request).value() == 0);
  CHECK(reader.bytes_min() == 5);  // it may become VALIDATE
  CHECK(reader.read(bytes.substr(0, 9), request).value() == 0);
  CHECK(reader.bytes_min() == 12);
  CHECK(reader.read(bytes.substr(0, 25), request).value() == 0);
  CHECK(reader.bytes_min() == bytes.size());
  CHECK(reader.read(bytes, request).value() == bytes.size());
}

}  // namespace
}  // namespace muster::server::tcpstore
