#include "server_guests.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/little_endian.h"
#include "support/tcpstore_bytes.h"

namespace muster::script {
namespace {

namespace said = test::tcpstore;

said::Keys keys_in(Arguments& arguments) {
  said::Keys keys;
  while (const auto word = arguments.next()) keys.push_back(bytes_of(*word));
  return keys;
}

said::Entries entries_in(Arguments& arguments) {
  said::Entries entries;
  while (const auto key = arguments.next()) {
    entries.emplace_back(bytes_of(*key), bytes_of(arguments.next("a value")));
  }
  return entries;
}

}  // namespace

std::vector<server::tcpstore::Port> tcpstore_ports(Arguments& arguments,
                                                   const core::Options& options) {
  std::vector<server::tcpstore::Port> ports;
  const Duration idle = arguments.duration("tcpstore_idle").value_or(Duration::zero());
  const auto memory_bytes = arguments.number("tcpstore_memory");
  const bool is_first = arguments.named("tcpstore_dialect").value_or("newest") == "first";
  for (const std::string& name : arguments.list("tcpstore")) {
    server::tcpstore::Port& port = ports.emplace_back();
    port.name_space = name;
    port.unit = {net::UnitId::Kind::port, ports.size()};
    port.unit_name = "port " + name;
    port.terms.idle_lifetime = idle;
    port.terms.limits.memory_bytes = static_cast<std::uint64_t>(memory_bytes.value_or(0));
    port.fallback = is_first ? server::tcpstore::Dialect::first : server::tcpstore::Dialect::newest;
    port.limits.key_bytes_max = options.limits.key_bytes_max;
    port.limits.value_bytes_max = options.limits.value_bytes_max;
    port.limits.keys_max = options.guest_keys_max;
  }
  return ports;
}

std::string GuestTalk::says(Arguments& arguments) {
  const auto times = arguments.number("times").value_or(1);
  const std::string command = arguments.next("a command of TCPStore's");
  const std::size_t before = expected_.size();
  const std::string bytes = request(command, arguments);
  const std::vector<Expected> of_one(expected_.begin() + static_cast<std::ptrdiff_t>(before),
                                     expected_.end());
  std::string all = bytes;
  for (std::int64_t time = 1; time < times; ++time) {
    all += bytes;
    expected_.insert(expected_.end(), of_one.begin(), of_one.end());
  }
  return all;
}

std::string GuestTalk::request(const std::string& command, Arguments& arguments) {
  const auto key = [&arguments] { return bytes_of(arguments.next("a key")); };
  const auto value = [&arguments] { return bytes_of(arguments.next("a value")); };
  const auto number = [&arguments] { return number_of(arguments.next("a number")); };
  const auto answered = [this](std::string bytes, Answer answer, std::size_t count = 1) {
    expect(answer, count);
    return bytes;
  };
  std::string name;  // arguments are read in their order
  if (command == "VALIDATE") return said::validate;
  if (command == "PING") {
    return answered(said::ping(static_cast<std::uint32_t>(number())), Answer::nonce);
  }
  if (command == "GETNUMKEYS") return answered(said::count_keys, Answer::number);
  if (command == "LIST_KEYS") return answered(said::list_keys, Answer::list);
  if (command == "CANCEL_WAIT") return answered(said::cancel_wait, Answer::cancelled);
  if (command == "WAIT") return said::wait(keys_in(arguments));
  if (command == "CHECK") return answered(said::check(keys_in(arguments)), Answer::byte);
  if (command == "MULTI_SET") return said::multi_set(entries_in(arguments));
  if (command == "MULTI_GET") {
    const said::Keys keys = keys_in(arguments);
    return answered(said::multi_get(keys), Answer::values, keys.size());
  }
  name = key();
  if (command == "SET") return said::set(name, value());
  if (command == "APPEND") return said::append(name, value());
  if (command == "QUEUE_PUSH") return said::push(name, value());
  if (command == "GET") return answered(said::get(name), Answer::value);
  if (command == "ADD") return answered(said::add(name, number()), Answer::number);
  if (command == "DELETE_KEY") return answered(said::delete_key(name), Answer::number);
  if (command == "QUEUE_POP") return answered(said::pop(name), Answer::popped);
  if (command == "QUEUE_LEN") return answered(said::queue_length(name), Answer::number);
  if (command == "BARRIER") return said::barrier(name, number());
  if (command == "COMPARE_SET") {
    const std::string expected = value();
    return answered(said::compare_set(name, expected, value()), Answer::value);
  }
  throw ScriptError("no command of TCPStore's: " + command);
}

/// Cuts answers off the bytes that have come; those that are not whole stay.
class GuestTalk::Cut {
 public:
  explicit Cut(std::string& received) : received_(received), rest_(received) {}

  std::optional<Line> next(const Expected& expected) {
    Line line;
    line.words = "ok";
    std::uint64_t count = 0;
    switch (expected.answer) {
      case Answer::byte: line.words = number(1) == 0 ? "ready" : "not_ready"; break;
      case Answer::cancelled: line.words = number(1) == 1 ? "wait_cancelled" : "wait_over"; break;
      case Answer::nonce: line.words = "pong " + std::to_string(number(4)); break;
      case Answer::number: line.with("number", signed_number()); break;
      case Answer::value: line.with("value", in_quotes(bytes())); break;
      case Answer::values: line.with("values", texts(expected.count)); break;
      case Answer::popped:
        count = number(8);
        line.with("number", std::to_string(count));
        if (count > 0) line.with("value", in_quotes(bytes()));
        break;
      case Answer::list: line.with("keys", texts(number(8))); break;
    }
    if (is_short_) return std::nullopt;
    received_.erase(0, received_.size() - rest_.size());
    return line;
  }

 private:
  std::string take(std::uint64_t count) {
    is_short_ = is_short_ || rest_.size() < count;
    if (is_short_) return {};
    std::string taken(rest_.substr(0, count));
    rest_.remove_prefix(count);
    return taken;
  }
  std::uint64_t number(std::size_t width_bytes) {
    std::string bytes = take(width_bytes);
    bytes.resize(8);
    return base::from_little_endian<std::uint64_t>(bytes.data());
  }
  std::string signed_number() { return std::to_string(static_cast<std::int64_t>(number(8))); }
  std::string bytes() { return take(number(8)); }
  std::string texts(std::uint64_t count) {
    std::vector<std::string> found;
    for (; count > 0 && !is_short_; --count) found.push_back(in_quotes(bytes()));
    return joined(found, ",");
  }

  std::string& received_;
  std::string_view rest_;
  bool is_short_ = false;
};

bool GuestTalk::expects_byte() const {
  if (expected_.empty()) return false;
  const Answer next = expected_.front().answer;
  return next == Answer::byte || next == Answer::cancelled;
}

std::vector<Line> GuestTalk::takes(std::string_view bytes) {
  std::vector<Line> lines;
  if (received_.empty() && bytes.size() == 1 && bytes[0] == '\0' && !expects_byte()) {
    lines.emplace_back().words = "wait_over";
    return lines;
  }
  received_ += bytes;
  while (!received_.empty()) {
    if (expected_.empty()) {
      Line& line = lines.emplace_back();
      const bool is_over = received_[0] == '\0';
      line.words = is_over ? "wait_over" : "bytes that nobody waits for";
      received_.erase(0, is_over ? 1 : received_.size());
      continue;
    }
    std::optional<Line> line = Cut(received_).next(expected_.front());
    if (!line) break;
    // A wait was over before it could be cancelled: that is told before.
    if (line->words != "wait_over") expected_.pop_front();
    lines.push_back(*std::move(line));
  }
  return lines;
}

}  // namespace muster::script
