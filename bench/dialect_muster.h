#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dialect.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/request.h"

namespace muster::bench {

/// A session, as docs/protocol.md wants one: ids that ascend, replies that are acknowledged.
/// It sends no heartbeats; the server is told to be patient.
class MusterDialect : public Dialect {
 public:
  std::string greeting() const override;
  std::size_t greeting_reply_bytes() const override;
  void greeted(std::string_view bytes) override;
  /// Of a session that has sent something.
  void begin_again() override;

  bool append_set(std::string& out, std::string_view key, std::string_view value,
                  std::int64_t time_to_live_ms) override;
  bool append_get(std::string& out, std::string_view key, std::size_t value_bytes) override;
  bool append_add(std::string& out, std::string_view key) override;
  bool append_multi_get(std::string& out, int count, std::size_t value_bytes) override;
  bool append_wait(std::string& out, std::string_view key, std::size_t value_bytes) override;
  bool append_wake(std::string& out, std::string_view key, std::string_view value) override;
  bool append_count(std::string& out) override;
  void append_goodbye(std::string& out) override;

  /// Any request, with what is to be acknowledged.
  void append_request(std::string& out, wire::RequestBody body, Duration timeout = patience);
  /// What is to be acknowledged, in a frame of its own, as after a barrier.
  void append_acknowledgement(std::string& out);
  /// With the same; its answer counts as a reply.
  void append_heartbeat(std::string& out);
  /// Whether the body of the newest reply is kept, for `reply`.
  void keep_replies(bool keeps) { keeps_replies_ = keeps; }
  const std::string& reply() const { return reply_; }

 protected:
  Piece piece_of(std::string_view begin) override;
  void whole(std::string_view piece) override;

 private:
  /// The first frame says that the server's hello was read.
  void append_echo_once(std::string& out);

  struct Session {
    std::uint64_t incarnation = 0;
    std::uint64_t id = 0;
    wire::ResumeToken token;
  };

  static constexpr Duration patience = std::chrono::seconds(300);

  static constexpr std::size_t in_flight_max = 4096;

  std::string hello_;  ///< the server's, until its token was sent back, or the session goes on
  Session session_;    ///< from its first request on
  bool resumes_ = false;
  std::uint64_t last_id_ = 0;
  std::array<bool, in_flight_max> is_kept_{};  ///< by id: its reply is to be acknowledged
  std::vector<std::uint64_t> unacknowledged_;
  std::uint64_t id_of_count_ = 0;  ///< of the request whose reply tells how many keys there are
  bool keeps_replies_ = false;
  std::string reply_;
};

}  // namespace muster::bench
