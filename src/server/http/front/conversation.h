#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "server/http/front/site.h"

namespace muster::server::http {

/// What is said on one connection: bytes in, answers out, one request after the other. Knows no
/// sockets and no clock.
class Conversation {
 public:
  Conversation(Site& site, Caller caller) : site_(site), caller_(std::move(caller)) {}

  struct Moment {
    base::Instant now;
    std::time_t date;  ///< for people
  };
  /// To be written, before anything else is read.
  struct Output {
    std::string bytes;     ///< empty: nothing yet
    bool is_last = false;  ///< the connection ends behind it
    /// `go_on` is to be called so long after it was written: more comes of the same answer.
    std::optional<std::chrono::milliseconds> goes_on_in = {};
  };

  /// Not to be called before `go_on` has given nothing.
  void take(std::string_view bytes);
  /// Answers the next request, or goes on with an answer; nothing: no request is there yet.
  std::optional<Output> go_on(Moment moment);
  /// What is said to one that takes too long; nothing: not a word, it has said nothing either.
  std::optional<Output> time_out(Moment moment) const;
  /// Whether a part of a request has come.
  bool is_in_request() const { return !bytes_.empty(); }
  /// Whether an answer has begun that goes on: the peer says nothing meanwhile.
  bool is_in_stream() const { return open_ && open_->has_begun; }

  /// What is said instead of anything else.
  static Output farewell(const Reply& reply, Moment moment);

 private:
  /// Counts what is on its way.
  class Held {
   public:
    Held() = default;
    Held(Held&& other) noexcept
        : sum_(std::exchange(other.sum_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Held& operator=(Held&&) = delete;
    ~Held() { set(nullptr, 0); }
    void set(std::uint64_t* sum, std::uint64_t bytes) {
      if (sum_ != nullptr) *sum_ -= bytes_;
      sum_ = sum;
      bytes_ = bytes;
      if (sum_ != nullptr) *sum_ += bytes_;
    }

   private:
    std::uint64_t* sum_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  /// A request whose answer is not there yet, or goes on.
  struct Open {
    Request request;
    base::Instant since;            ///< it is asked for
    base::Instant last_piece = {};  ///< when it was
    std::uint64_t position = 0;
    bool is_last = false;      ///< the connection ends with the answer
    bool has_begun = false;    ///< its head was sent
    Places::Place place = {};  ///< null: it does not go on
    Held held = {};
  };

  Output give_up(const Reply& refusal, Moment moment);
  Output answer(Moment moment);
  Output begin_stream(const Reply& reply, Moment moment);
  Output go_on_with_stream(const Reply& reply, Moment moment);
  Output refuse_stream(Moment moment);
  Output end_stream();
  std::string piece(std::string_view body);

  Site& site_;
  Caller caller_;
  std::string bytes_;
  std::size_t looked_at_ = 0;  ///< of these bytes, no head ends there
  bool has_ended_ = false;
  std::optional<Open> open_;
};

}  // namespace muster::server::http
