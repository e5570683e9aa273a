#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dialect.h"
#include "support/process.h"

namespace muster::net::tls {
class TlsContext;
}

namespace muster::bench {

/// What a server's connections are.
enum class Wire { clear, encrypted };

/// Where the programs are.
struct Programs {
  std::string echo_server;
  std::string musterd;
  std::string redis;  ///< redis-server, under any name
  std::string memcached;
  std::string etcd;
  std::string python;           ///< one that finds torch
  std::string libuv_python;     ///< one that finds a torch with libuv
  std::string tcpstore_server;  ///< the script
  std::string folder;           ///< for what they write
};

/// A server under test: a process of its own, on a core of its own, on a port that was free. It
/// ends with this object.
class Subject {
 public:
  /// flags  beside those that the questions need
  Subject(Kind kind, const Programs& programs, int core, std::vector<std::string> flags = {},
          Wire wire = Wire::clear);
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  Kind kind() const { return kind_; }
  std::string name() const {
    return std::string(name_of(kind_)) + (wire_ == Wire::encrypted ? ", TLS" : "");
  }
  /// What its clients encrypt by; null: nothing is encrypted.
  const std::shared_ptr<const net::tls::TlsContext>& tls() const { return tls_; }
  std::uint16_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// Of all its threads, by the kernel's account. Exact while the server sleeps.
  double processor_us() const;
  /// How often its threads have left their core, by their own will or not.
  double switches() const;
  /// Resident: all of it, and what is its own (not the program's file).
  double resident_bytes() const;
  /// Returns when it has used no processor time for a while: what was sent to it is done. After
  /// half a minute in any case.
  void settle() const;

 private:
  std::vector<std::string> threads() const;
  void start(const Programs& programs);
  std::vector<std::string> command(const Programs& programs) const;
  std::vector<std::string> musterd_command(const Programs& programs) const;
  void learn_port();

  Kind kind_;
  std::vector<std::string> flags_;
  Wire wire_;
  std::shared_ptr<const net::tls::TlsContext> tls_;
  std::uint16_t port_ = 0;
  std::unique_ptr<test::Process> process_;
};

/// This thread, and those that it makes from now on, run on this core alone.
void pin_to(int core);
/// The last one is the server's. On a machine with one core both are the same.
int server_core();
int client_core();

}  // namespace muster::bench
