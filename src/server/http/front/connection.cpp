#include "server/http/front/connection.h"

#include <array>
#include <chrono>
#include <type_traits>
#include <utility>

#include <boost/asio/read.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "base/monotonic_now.h"

// Life cycle: [handshake] -> a request is read -> it is answered -> the next one ... -> the last
// answer -> nothing more is sent, and what still comes is dropped for a moment, so that the system
// does not take the answer back -> closed. One timer runs at a time: that of a head goes on while
// its bytes come one by one.

namespace muster::server::http {
namespace {

namespace net = boost::asio;
using Socket = net::ip::tcp::socket;
using Milliseconds = std::chrono::milliseconds;
using Failure = boost::system::error_code;

constexpr Milliseconds last_bytes_time(1000);
/// For its request, of who has no place.
constexpr Milliseconds time_without_place(1000);
constexpr std::size_t last_bytes_max = 256 * 1024;

template <class Stream>
class Connection : public std::enable_shared_from_this<Connection<Stream>> {
 public:
  template <class... Arguments>
  Connection(Arrived arrived, Site& site, Arguments&... arguments)
      : stream_(std::move(arrived.socket), arguments...),
        timer_(stream_.get_executor()),
        pause_(stream_.get_executor()),
        limits_(site.limits()),
        place_(std::move(arrived.place)),
        refusal_(std::move(arrived.refusal)),
        conversation_(site, std::move(arrived.caller)) {}

  void begin() {
    limit(place_ ? Milliseconds(limits_.head_ms) : time_without_place);
    if (place_) {
      place_->wait([weak = this->weak_from_this()] {
        if (const auto self = weak.lock()) self->yield();
      });
    }
    if constexpr (has_tls) {
      stream_.async_handshake(Stream::server, [self = this->shared_from_this()](Failure failure) {
        if (failure) return self->close();
        self->go_on();
      });
    } else {
      go_on();
    }
  }

 private:
  static constexpr bool has_tls = !std::is_same_v<Stream, Socket>;

  void go_on() {
    auto output = conversation_.go_on(moment());
    if (output && place_) place_->settle();
    if (output && output->bytes.empty() && !output->is_last) return pause(*output->goes_on_in);
    if (output) return write(std::move(*output));
    is_reading_ = true;
    stream_.async_read_some(net::buffer(came_),
                            [self = this->shared_from_this()](Failure failure, std::size_t size) {
                              if (!std::exchange(self->is_reading_, false)) return;  // too late
                              if (failure) return self->close();
                              self->take(std::string_view(self->came_.data(), size));
                            });
  }

  void take(std::string_view bytes) {
    const bool was_in_request = conversation_.is_in_request();
    conversation_.take(bytes);
    if (!was_in_request && is_idle_ && conversation_.is_in_request()) {
      is_idle_ = false;
      limit(Milliseconds(limits_.head_ms));
    }
    go_on();
  }

  void write(Conversation::Output output) {
    is_writing_ = true;
    output_ = std::move(output);
    limit(Milliseconds(limits_.write_ms));
    net::async_write(stream_, net::buffer(output_.bytes),
                     [self = this->shared_from_this()](Failure failure, std::size_t) {
                       if (failure) return self->close();
                       self->written();
                     });
  }

  void written() {
    is_writing_ = false;
    output_.bytes = {};
    if (output_.is_last) return end();
    if (output_.goes_on_in) return pause(*output_.goes_on_in);
    // What has come already of the next request has its time from now on, too.
    is_idle_ = !conversation_.is_in_request();
    limit(Milliseconds(is_idle_ ? limits_.idle_ms : limits_.head_ms));
    go_on();
  }

  /// More comes of the same answer. Its peer has nothing to say, and is gone when it ends.
  void pause(Milliseconds time) {
    limit(time + Milliseconds(limits_.write_ms));
    if (conversation_.is_in_stream() && !std::exchange(is_watching_, true)) drop_last_bytes();
    pause_.expires_after(time);
    pause_.async_wait([self = this->shared_from_this()](Failure failure) {
      if (!failure && self->stream_.lowest_layer().is_open()) self->go_on();
    });
  }

  void end() {
    limit(last_bytes_time);
    if (is_watching_) {
      if (has_tls) return close();  // what follows would meet what is read
      Failure ignored;
      stream_.lowest_layer().shutdown(Socket::shutdown_send, ignored);
      return;
    }
    if constexpr (has_tls) {
      stream_.async_shutdown([self = this->shared_from_this()](Failure) { self->close(); });
    } else {
      Failure ignored;
      stream_.shutdown(Socket::shutdown_send, ignored);
      drop_last_bytes();
    }
  }

  void drop_last_bytes() {
    stream_.async_read_some(net::buffer(came_),
                            [self = this->shared_from_this()](Failure failure, std::size_t size) {
                              self->dropped_ += size;
                              if (failure || self->dropped_ > last_bytes_max) return self->close();
                              self->drop_last_bytes();
                            });
  }

  /// From now on it has so long.
  void limit(Milliseconds time) {
    timer_.expires_after(time);
    timer_.async_wait([weak = this->weak_from_this()](Failure failure) {
      const auto self = weak.lock();
      // A timer that was set again may have run out before.
      if (failure || !self || self->timer_.expiry() > net::steady_timer::clock_type::now()) return;
      self->time_out();
    });
  }

  void time_out() {
    if (is_reading_) {
      auto output = conversation_.time_out(moment());
      if (output) {
        Failure ignored;
        is_reading_ = false;
        stream_.lowest_layer().cancel(ignored);
        return write(std::move(*output));
      }
    }
    // What has not been taken is not kept by the system for who does not take it.
    Failure ignored;
    if (is_writing_) stream_.lowest_layer().set_option(Socket::linger(true, 0), ignored);
    close();
  }

  /// To somebody who may have something to ask.
  void yield() {
    close();
    place_.reset();
  }

  void close() {
    Failure ignored;
    timer_.cancel(ignored);
    pause_.cancel(ignored);
    stream_.lowest_layer().close(ignored);
  }

  Stream stream_;
  net::steady_timer timer_;
  net::steady_timer pause_;
  const Limits limits_;
  Places::Place place_;
  std::shared_ptr<void> refusal_;
  Conversation conversation_;
  std::array<char, 4096> came_;
  Conversation::Output output_;
  bool is_idle_ = false;  ///< between two requests
  bool is_writing_ = false;
  bool is_reading_ = false;   ///< of a request, and not told otherwise
  bool is_watching_ = false;  ///< for the end of a peer that has a stream
  std::size_t dropped_ = 0;
};

}  // namespace

Conversation::Moment moment() { return {base::monotonic_now(), std::time(nullptr)}; }

void serve(Arrived arrived, Site& site) {
  std::make_shared<Connection<Socket>>(std::move(arrived), site)->begin();
}

void serve_by_tls(Arrived arrived, Site& site, std::shared_ptr<TlsContext> context) {
  std::make_shared<Connection<net::ssl::stream<Socket>>>(std::move(arrived), site, *context)
      ->begin();
}

}  // namespace muster::server::http
