#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/channel.h"

namespace muster::client {

/// The connection to the server; one that is to take its place, while it has not; and attempts that
/// were given up after they had said hello: if the server took them for the session's, their ends
/// would tell it that this process has ended. On the I/O thread.
class Connections {
 public:
  Connections();

  /// The one that stands. Null: there is none.
  net::Channel* current() const { return current_.get(); }
  /// The one that is to take its place. Null: there is none.
  net::Channel* next() const { return next_.get(); }
  /// Whether it is one of both.
  bool has(const net::Channel* connection) const {
    return connection == current() || connection == next();
  }
  /// A new attempt, or (null) none; the last one is closed.
  void attempt(std::shared_ptr<net::Channel> connection);
  /// The attempt takes the place of the current one, which is closed.
  void promote();
  /// It has ended by itself.
  void forget(const net::Channel* connection);

  /// On the attempt.
  void greet(std::string_view hello);

  /// On the current one, if there is one.
  void send(std::string&& bytes);
  void flush();
  /// Whether everything has left, and more can.
  bool is_clear() const;

  /// The attempt.
  void set_aside();
  void close_set_aside();
  /// When what was sent has left: the current one.
  void close();
  /// All of them, at once.
  void abort();

  /// Memory of what was sent; at most `spare_max` pieces of it.
  std::vector<std::string>& spare() { return spare_; }

 private:
  std::shared_ptr<net::Channel> current_;
  std::shared_ptr<net::Channel> next_;
  std::vector<std::shared_ptr<net::Channel>> set_aside_;  ///< the oldest first
  std::vector<std::string> spare_;
};

}  // namespace muster::client
