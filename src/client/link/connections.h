#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "net/channel.h"

namespace muster::client {

/// The connection to the server, and older ones that were given up for their silence: their ends
/// would tell the server that this process has ended. On the I/O thread.
class Connections {
 public:
  Connections();

  /// Null: there is none.
  net::Channel* current() const { return current_.get(); }
  /// In place of the current one, which is closed.
  void replace(std::shared_ptr<net::Channel> connection);
  /// The current one has ended by itself.
  void forget() { current_.reset(); }

  /// On the current one, if there is one.
  void send(std::string&& bytes);
  void flush();
  /// Whether everything has left, and more can.
  bool is_clear() const;

  void set_aside();
  void close_set_aside();
  /// When what was sent has left.
  void close();
  /// All of them, at once.
  void abort();

  /// Memory of what was sent; at most `spare_max` pieces of it.
  std::vector<std::string>& spare() { return spare_; }

 private:
  std::shared_ptr<net::Channel> current_;
  std::vector<std::shared_ptr<net::Channel>> set_aside_;  ///< the oldest first
  std::vector<std::string> spare_;
};

}  // namespace muster::client
