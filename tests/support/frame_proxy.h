#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace muster::test {

/// What passed between one client and the server: frames by their type's number.
struct FrameCounts {
  std::array<std::uint64_t, 16> up{};    ///< client to server
  std::array<std::uint64_t, 16> down{};  ///< server to client
};

/// A TCP proxy on loopback that counts the frames which pass, and can be told to stop passing
/// anything (a half-open connection) or to cut all connections.
class FrameProxy {
 public:
  /// server  "127.0.0.1:port"
  explicit FrameProxy(const std::string& server);
  ~FrameProxy();
  FrameProxy(const FrameProxy&) = delete;
  FrameProxy& operator=(const FrameProxy&) = delete;

  /// Where clients connect.
  const std::string& address() const { return address_; }

  /// Of all connections so far.
  FrameCounts counts() const;

  /// Of those that are open in the proxy: all, and those whose client has ended its side.
  std::size_t connections_count() const { return connections_count_; }
  std::size_t ended_count() const { return ended_count_; }

  /// What has not passed yet stays in the proxy until `resume`.
  void pause() { set(paused_, true); }
  void resume() { set(paused_, false); }

  /// Closes every connection that is open now; nothing passes any more until they are closed.
  void cut() { set(cut_, true); }

 private:
  struct Pump;
  /// Not while something passes.
  void set(std::atomic<bool>& what, bool is_so) {
    const std::lock_guard lock(passing_);
    what = is_so;
  }
  void run();
  void accept_one(std::map<int, Pump>& pumps);
  bool pass(Pump& pump);
  void count_connections(const std::map<int, Pump>& pumps);

  int listener_ = -1;
  int stop_pipe_[2] = {-1, -1};
  std::uint16_t server_port_ = 0;
  std::string address_;
  std::atomic<bool> paused_{false};
  std::atomic<bool> cut_{false};
  std::atomic<std::size_t> connections_count_{0};
  std::atomic<std::size_t> ended_count_{0};
  std::mutex passing_;
  mutable std::mutex mutex_;
  FrameCounts counts_;
  std::thread thread_;
};

}  // namespace muster::test
