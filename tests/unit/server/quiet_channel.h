#pragma once

#include <span>
#include <string>
#include <string_view>

#include "net/channel.h"

namespace muster::server {

/// A connection on which nothing happens.
class QuietChannel : public net::Channel {
 public:
  void send(std::string_view) override {}
  void send(net::SharedBytes) override {}
  void flush() override {}
  void read_into(std::span<char>) override {}
  void pause_reading() override {}
  void resume_reading() override {}
  void read_now() override {}
  void close() override {}
  void close_after_flush(Duration) override {}
  bool is_open() const override { return true; }
  bool is_lingering() const override { return false; }
  std::string peer() const override { return {}; }

 private:
  void begin() override {}
};

}  // namespace muster::server
