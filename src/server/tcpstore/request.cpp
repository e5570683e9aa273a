#include "server/tcpstore/request.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/failure.h"
#include "base/little_endian.h"

namespace muster::server::tcpstore {
namespace {

using base::failure;

constexpr std::uint32_t validate_number = 0x3C85F7CE;
constexpr std::size_t length_bytes = 8;

/// What stands on the wire behind the byte of a command.
enum class Field : std::uint8_t { none, key, value, number, nonce, magic, keys, entries };

struct CommandFacts {
  Command command;
  std::string_view name;
  std::array<Field, 3> fields{};
};

constexpr std::array<CommandFacts, 20> all_facts = {{
    {Command::validate, "VALIDATE", {Field::magic}},
    {Command::set, "SET", {Field::key, Field::value}},
    {Command::compare_set, "COMPARE_SET", {Field::key, Field::value, Field::value}},
    {Command::get, "GET", {Field::key}},
    {Command::add, "ADD", {Field::key, Field::number}},
    {Command::check, "CHECK", {Field::keys}},
    {Command::wait, "WAIT", {Field::keys}},
    {Command::count_keys, "GETNUMKEYS", {}},
    {Command::delete_key, "DELETE_KEY", {Field::key}},
    {Command::append, "APPEND", {Field::key, Field::value}},
    {Command::multi_get, "MULTI_GET", {Field::keys}},
    {Command::multi_set, "MULTI_SET", {Field::entries}},
    {Command::cancel_wait, "CANCEL_WAIT", {}},
    {Command::ping, "PING", {Field::nonce}},
    {Command::queue_push, "QUEUE_PUSH", {Field::key, Field::value}},
    {Command::queue_pop, "QUEUE_POP", {Field::key}},
    {Command::queue_length, "QUEUE_LEN", {Field::key}},
    {Command::list_keys, "LIST_KEYS", {}},
    {Command::barrier, "BARRIER", {Field::key, Field::number}},
    {Command::watch_key, "WATCH_KEY", {Field::key}},
}};

constexpr const CommandFacts& facts_of(Command command) {
  return all_facts[static_cast<std::size_t>(command)];
}

constexpr bool facts_are_in_order() {
  for (std::size_t index = 0; index < all_facts.size(); ++index) {
    if (static_cast<std::size_t>(all_facts[index].command) != index) return false;
  }
  return true;
}
static_assert(facts_are_in_order());

// By the numbers that they have on the wire.
constexpr std::array first_dialect = {
    Command::set,  Command::compare_set, Command::get,       Command::add,       Command::check,
    Command::wait, Command::count_keys,  Command::watch_key, Command::delete_key};
constexpr std::array second_dialect = {
    Command::set,    Command::compare_set, Command::get,        Command::add,
    Command::check,  Command::wait,        Command::count_keys, Command::delete_key,
    Command::append, Command::multi_get,   Command::multi_set,  Command::cancel_wait};
constexpr std::array newest_dialect = {
    Command::validate,     Command::set,       Command::compare_set, Command::get,
    Command::add,          Command::check,     Command::wait,        Command::count_keys,
    Command::delete_key,   Command::append,    Command::multi_get,   Command::multi_set,
    Command::cancel_wait,  Command::ping,      Command::queue_push,  Command::queue_pop,
    Command::queue_length, Command::list_keys, Command::barrier};

std::optional<Command> command_of(Dialect dialect, unsigned char number) {
  const auto find = [number](const auto& commands) {
    return number < commands.size() ? std::optional(commands[number]) : std::nullopt;
  };
  switch (dialect) {
    case Dialect::first: return find(first_dialect);
    case Dialect::second: return find(second_dialect);
    case Dialect::newest: break;
  }
  return find(newest_dialect);
}

std::string named(Command command) { return std::string(name_of(command)); }

Error too_large(const std::string& what, std::uint64_t actual, std::uint64_t limit) {
  Error error = failure(ErrorCode::too_large, what);
  error.actual = actual;
  error.limit = limit;
  return error;
}

}  // namespace

std::string_view name_of(Command command) { return facts_of(command).name; }

bool only_asks(Command command) {
  switch (command) {
    case Command::get:
    case Command::check:
    case Command::wait:
    case Command::count_keys:
    case Command::multi_get:
    case Command::ping:
    case Command::queue_length:
    case Command::list_keys: return true;
    default: return false;
  }
}

/// Looks at one request as far as its bytes have come, and keeps its parts if somebody wants them.
class RequestReader::Walk {
 public:
  Walk(const RequestLimits& limits, std::string_view bytes, Progress& progress, Request* into)
      : limits_(limits), bytes_(bytes), progress_(progress), into_(into) {
    if (into_ == nullptr) return;
    into_->command = progress_.command;
    into_->keys.clear();
    into_->values.clear();
    into_->number = 0;
  }

  /// returns  whether the request is whole; else more has to come, or there is an error
  bool run() {
    const std::array<Field, 3>& fields = facts_of(progress_.command).fields;
    for (; progress_.field < fields.size(); ++progress_.field) {
      if (!pass(fields[progress_.field])) return false;
    }
    return true;
  }

  std::size_t wanted() const { return wanted_; }
  std::optional<Error> take_error() { return std::move(error_); }

 private:
  // Each returns whether all of it has come.

  bool pass(Field field) {
    switch (field) {
      case Field::key: return pass_key();
      case Field::value: return pass_value();
      case Field::number: return pass_number(sizeof(std::uint64_t));
      case Field::nonce: return pass_number(sizeof(std::uint32_t));
      case Field::magic: return pass_magic();
      case Field::keys: return pass_list(&Walk::pass_key);
      case Field::entries: return pass_list(&Walk::pass_entry);
      case Field::none: break;
    }
    return true;
  }

  bool fail(Error error) {
    error_ = std::move(error);
    return false;
  }

  bool has(std::size_t count) {
    wanted_ = count;
    if (progress_.at + count > limits_.request_bytes_max) {
      return fail(too_large("the bytes of " + named(progress_.command), progress_.at + count,
                            limits_.request_bytes_max));
    }
    return bytes_.size() - progress_.at >= count;
  }

  std::uint64_t number_here() const {
    return base::from_little_endian<std::uint64_t>(bytes_.data() + progress_.at);
  }

  bool pass_bytes(const char* what, std::uint32_t bytes_max,
                  std::vector<std::string_view> Request::*where) {
    if (!has(length_bytes)) return false;
    const std::uint64_t size = number_here();
    if (size > bytes_max) {
      return fail(too_large(what + (" of " + named(progress_.command)), size, bytes_max));
    }
    if (!has(length_bytes + size)) return false;
    if (into_ != nullptr) {
      (into_->*where).push_back(bytes_.substr(progress_.at + length_bytes, size));
    }
    progress_.at += length_bytes + size;
    return true;
  }
  bool pass_key() { return pass_bytes("a key", limits_.key_bytes_max, &Request::keys); }
  bool pass_value() { return pass_bytes("a value", limits_.value_bytes_max, &Request::values); }

  bool pass_entry() {
    if (!progress_.is_at_value && !pass_key()) return false;
    progress_.is_at_value = !pass_value();
    return !progress_.is_at_value;
  }

  bool pass_list(bool (Walk::*pass_item)()) {
    if (!progress_.is_in_list) {
      if (!has(length_bytes)) return false;
      progress_.items = number_here();
      if (progress_.items > limits_.keys_max) {
        return fail(too_large("the keys of " + named(progress_.command), progress_.items,
                              limits_.keys_max));
      }
      progress_.at += length_bytes;
      progress_.is_in_list = true;
    }
    for (; progress_.items > 0; --progress_.items) {
      if (!(this->*pass_item)()) return false;
    }
    progress_.is_in_list = false;
    return true;
  }

  bool pass_number(std::size_t size) {
    if (!has(size)) return false;
    const char* const here = bytes_.data() + progress_.at;
    if (into_ != nullptr) {
      into_->number = size == sizeof(std::uint32_t)
                          ? std::int64_t{base::from_little_endian<std::uint32_t>(here)}
                          : static_cast<std::int64_t>(number_here());
    }
    progress_.at += size;
    return true;
  }

  bool pass_magic() {
    if (!has(sizeof validate_number)) return false;
    if (base::from_little_endian<std::uint32_t>(bytes_.data() + progress_.at) != validate_number) {
      return fail(
          failure(ErrorCode::protocol_error, "VALIDATE has another number than TCPStore's"));
    }
    progress_.at += sizeof validate_number;
    return true;
  }

  const RequestLimits& limits_;
  const std::string_view bytes_;
  Progress& progress_;
  Request* const into_;
  std::optional<Error> error_;
  std::size_t wanted_ = 1;
};

/// A newest client begins with VALIDATE. In the older dialects these bytes are a key of a gigabyte.
std::optional<Error> RequestReader::choose_dialect(std::string_view bytes) {
  constexpr std::size_t validate_bytes = 1 + sizeof validate_number;
  std::array<char, sizeof validate_number> numbers;
  base::to_little_endian(validate_number, numbers.data());
  const std::string_view begun = bytes.substr(1, sizeof validate_number);
  const bool may_validate =
      bytes[0] == '\0' && begun == std::string_view(numbers.data(), begun.size());
  if (may_validate && bytes.size() < validate_bytes) {
    wanted_ = validate_bytes;
  } else {
    dialect_ = may_validate ? Dialect::newest : fallback_;
    if (dialect_ == Dialect::newest && !may_validate) {
      return failure(ErrorCode::protocol_error, "the first request is no VALIDATE of TCPStore's");
    }
  }
  return std::nullopt;
}

Result<std::size_t> RequestReader::read(std::string_view bytes, Request& into) {
  if (bytes.empty()) return 0;
  if (!dialect_) {
    if (auto wrong = choose_dialect(bytes)) return *std::move(wrong);
    if (!dialect_) return 0;
  }
  into.dialect = *dialect_;
  const auto command = command_of(*dialect_, static_cast<unsigned char>(bytes[0]));
  if (!command) {
    return failure(ErrorCode::protocol_error,
                   "command " + std::to_string(static_cast<unsigned char>(bytes[0])) +
                       " is none of TCPStore's");
  }
  const Progress begin{1, 0, 0, false, false, *command};
  const bool is_new = progress_.at == 0;
  if (is_new) progress_ = begin;
  Walk walk(limits_, bytes, progress_, is_new ? &into : nullptr);
  const bool is_whole = walk.run();
  wanted_ = walk.wanted();
  if (auto error = walk.take_error()) return *std::move(error);
  if (!is_whole) return 0;
  if (!is_new) {  // its parts lie where they stay only now
    progress_ = begin;
    Walk(limits_, bytes, progress_, &into).run();
  }
  wanted_ = 1;
  return std::exchange(progress_, {}).at;
}

}  // namespace muster::server::tcpstore
