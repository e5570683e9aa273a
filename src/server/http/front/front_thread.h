#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "muster/result.h"
#include "server/http/front.h"
#include "server/http/front/site.h"
#include "server/http/front/tls_context.h"

namespace muster::server::http {

/// What the thread is started with.
struct ThreadOptions {
  std::string address;
  std::vector<std::string> names;
  bool allows_unauthenticated = false;
  bool asks_for_token = false;
  std::vector<TokenHolder> tokens;
  std::vector<Route> routes;
  Limits limits;
  std::shared_ptr<TlsContext> tls;  ///< null: there is none
  bool asks_for_certificate = false;
  std::function<std::uint64_t()> turns;
  Site::Log log;
};

/// The thread of the front. Its descriptors are its own: it hears of others by memory and by one
/// descriptor that both sides have.
class FrontThread {
 public:
  /// Waits until it listens.
  static Result<std::unique_ptr<FrontThread>> start(ThreadOptions options);
  ~FrontThread();
  FrontThread(const FrontThread&) = delete;
  FrontThread& operator=(const FrontThread&) = delete;

  const std::string& address() const { return address_; }
  std::uint16_t port() const { return port_; }
  /// To be carried out on the thread, in the order of the calls.
  void order(std::function<void(Site& site)> work);
  void set_tls(std::shared_ptr<TlsContext> tls);

 private:
  class Rooms;

  explicit FrontThread(ThreadOptions options) : options_(std::move(options)) {}
  Result<void> begin();
  /// All that is on the thread.
  void run(const std::function<void(Result<void>)>& report);
  void ring() const;
  void take_orders(Rooms& rooms);

  struct Orders {
    std::vector<std::function<void(Site& site)>> works;
    std::shared_ptr<TlsContext> tls;  ///< null: as before
    bool ends = false;
  };

  ThreadOptions options_;
  int bell_ = -1;
  std::string address_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  Orders orders_;
  std::thread thread_;
};

}  // namespace muster::server::http
