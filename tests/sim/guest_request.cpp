#include "guest_request.h"

#include <algorithm>
#include <stdexcept>

namespace muster::sim {
namespace {

using Command = GuestRequest::Command;
using Dialect = GuestRequest::Dialect;

std::string little_endian(std::uint64_t number, int count) {
  std::string bytes;
  for (; count > 0; --count, number >>= 8) bytes.push_back(static_cast<char>(number & 0xff));
  return bytes;
}

int number_in_first(Command command) {
  switch (command) {
    case Command::set: return 0;
    case Command::compare_set: return 1;
    case Command::get: return 2;
    case Command::add: return 3;
    case Command::check: return 4;
    case Command::wait: return 5;
    case Command::count_keys: return 6;
    case Command::watch_key: return 7;
    case Command::delete_key: return 8;
    default: throw std::logic_error("the first dialect has no such command");
  }
}

int number_in_second(Command command) {
  switch (command) {
    case Command::delete_key: return 7;
    case Command::append: return 8;
    case Command::multi_get: return 9;
    case Command::multi_set: return 10;
    case Command::cancel_wait: return 11;
    default: return number_in_first(command);
  }
}

int number_in_newest(Command command) {
  switch (command) {
    case Command::validate: return 0;
    case Command::set: return 1;
    case Command::compare_set: return 2;
    case Command::get: return 3;
    case Command::add: return 4;
    case Command::check: return 5;
    case Command::wait: return 6;
    case Command::count_keys: return 7;
    case Command::delete_key: return 8;
    case Command::append: return 9;
    case Command::multi_get: return 10;
    case Command::multi_set: return 11;
    case Command::cancel_wait: return 12;
    case Command::ping: return 13;
    case Command::queue_push: return 14;
    case Command::queue_pop: return 15;
    case Command::queue_length: return 16;
    case Command::list_keys: return 17;
    case Command::barrier: return 18;
    default: throw std::logic_error("the newest dialect has no such command");
  }
}

int number_of(Command command, Dialect dialect) {
  switch (dialect) {
    case Dialect::first: return number_in_first(command);
    case Dialect::second: return number_in_second(command);
    case Dialect::newest: break;
  }
  return number_in_newest(command);
}

}  // namespace

std::string number_bytes(std::int64_t number) {
  return little_endian(static_cast<std::uint64_t>(number), 8);
}

std::string sized_bytes(const std::string& bytes) { return little_endian(bytes.size(), 8) + bytes; }

std::string bytes_of(const GuestRequest& request, Dialect dialect) {
  if (!request.unreadable.empty()) return request.unreadable;
  const Command command = request.command;
  std::string bytes(1, static_cast<char>(number_of(command, dialect)));
  const bool is_list = command == Command::check || command == Command::wait ||
                       command == Command::multi_get || command == Command::multi_set;
  if (is_list) bytes += little_endian(request.keys.size(), 8);
  for (std::size_t index = 0; index < request.keys.size(); ++index) {
    bytes += sized_bytes(request.keys[index]);
    if (command == Command::multi_set) bytes += sized_bytes(request.values[index]);
  }
  if (command != Command::multi_set) {
    for (const std::string& value : request.values) bytes += sized_bytes(value);
  }
  if (command == Command::add || command == Command::barrier) bytes += number_bytes(request.number);
  if (command == Command::ping) {
    bytes += little_endian(static_cast<std::uint64_t>(request.number), 4);
  }
  if (command == Command::validate) bytes += little_endian(0x3C85F7CE, 4);
  return bytes;
}

bool GuestRequest::is_same(const server::tcpstore::Request& read) const {
  return unreadable.empty() && command == read.command && number == read.number &&
         std::equal(keys.begin(), keys.end(), read.keys.begin(), read.keys.end()) &&
         std::equal(values.begin(), values.end(), read.values.begin(), read.values.end());
}

std::string GuestRequest::text() const {
  if (!unreadable.empty()) return "bytes that are no request";
  std::string text(server::tcpstore::name_of(command));
  for (const std::string& key : keys) text += " " + key;
  for (const std::string& value : values) text += " =" + value.substr(0, 20);
  if (number != 0) text += " " + std::to_string(number);
  return text;
}

}  // namespace muster::sim
