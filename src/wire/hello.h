#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/result.h"
#include "muster/types.h"
#include "wire/rights.h"

// The first bytes of a connection: 512 from the client, 256 back. Both are of fixed size so that
// they can be read and refused without allocating, before anybody is authenticated.
// With an authentication method other than `none` the client adds one 64-byte proof block before
// its first frame; the nonces and the server's proof travel in the hellos.

namespace muster::wire {

inline constexpr std::size_t client_hello_bytes = 512;
inline constexpr std::size_t server_hello_bytes = 256;
inline constexpr std::size_t proof_bytes = 64;
inline constexpr std::size_t name_bytes_max = 64;      ///< host, label, namespace and run
inline constexpr std::size_t refusal_bytes_max = 143;  ///< the detail of a refusing server hello
inline constexpr std::uint16_t protocol_version = 1;

/// Not text, not printable, changed by every transfer that alters line ends.
inline constexpr std::array<std::uint8_t, 8> magic = {0x8d, 'M', 'S', 'T', 'R', '\r', '\n', 0x1a};

enum class AuthMethod : std::uint8_t { none = 0 };

struct ResumeToken {
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const ResumeToken&, const ResumeToken&) = default;
};

struct ClientHello {
  std::uint16_t version_min = protocol_version;
  std::uint16_t version_max = protocol_version;
  Role role = Role::client;
  std::uint8_t auth_method = 0;  ///< AuthMethod; others are answered `unsupported`
  std::array<std::uint8_t, 32> auth_nonce{};
  ProcessInfo process;
  std::string name_space;         ///< at most 64 bytes, empty: the default one
  std::uint64_t incarnation = 0;  ///< the server this session belongs to; 0: none yet
  std::uint64_t session_id = 0;   ///< 0: begin a session; else resume this one
  ResumeToken token;
  /// How long the namespace is kept without sessions; none: as long as the server says.
  std::optional<Duration> idle_lifetime;
  std::string run;  ///< at most 64 bytes, empty: whichever run the namespace is of
};

/// What the server allows and promises: every limit that a client has to keep is among them.
struct ServerLimits {
  std::uint32_t key_bytes_max = 1024;
  std::uint32_t value_bytes_max = 16u << 20;
  std::uint64_t round_bytes_max = 256u << 20;
  std::uint32_t keys_per_operation_max = 1024;
  std::uint32_t cached_results_max = 64;             ///< unacknowledged answers per session
  std::uint32_t cached_result_bytes_max = 1u << 20;  ///< of them, beside shared payloads
  std::uint32_t parked_waits_max = 1024;
  std::uint32_t world_size_max = 16384;
  Duration heartbeat{std::chrono::seconds(1)};
  Duration session_timeout{std::chrono::seconds(15)};
  Duration grace{std::chrono::seconds(2)};
  Duration slack{std::chrono::milliseconds(500)};

  /// The largest request body there can be under these limits; docs/protocol.md "limits".
  std::uint32_t request_bytes_max() const;
  /// The largest of those that bring nothing to keep; also of frames that are no requests.
  std::uint32_t essential_bytes_max() const;
  /// The largest body of a reply or event.
  std::uint32_t reply_bytes_max() const;
};

struct ServerHello {
  std::uint16_t version = protocol_version;  ///< chosen; of a refusal: the newest it speaks
  std::uint16_t status = 0;                  ///< 0, or the ErrorCode for which it closes
  std::uint8_t auth_method = 0;
  bool resumed = false;
  std::uint64_t incarnation = 0;
  std::uint64_t session_id = 0;
  ResumeToken token;
  std::string detail;              ///< only with a status: why, and decided by whom
  ServerLimits limits;             ///< this and the next three only without a status
  ProcessInfo hosting_process;     ///< that embeds the server, without its label; zero:
                                   ///< none, it is musterd
  std::int32_t hosting_rank = -1;  ///< of the group it was made for; -1: none
  bool gives_back = false;         ///< it knows CancelTake::gives_back
  std::array<std::uint8_t, 32> auth_nonce{};
  std::array<std::uint8_t, 32> auth_proof{};
};

/// Appends exactly `client_hello_bytes`; names are cut to `name_bytes_max`.
void append_client_hello(std::string& out, const ClientHello& hello);

/// Appends exactly `server_hello_bytes`.
void append_server_hello(std::string& out, const ServerHello& hello);

/// Whether a connection that began with these bytes can still become a hello; for refusing others
/// at once, who may wait for an answer before they send more.
/// errors  protocol_error (`detail` says what else seems to speak here)
Result<void> check_magic(std::string_view first_bytes);

/// errors  protocol_error (`detail` says what else seems to speak here, such as HTTP or TLS),
///         unsupported (no common version: expected, actual; or an unknown role)
Result<ClientHello> decode_client_hello(std::string_view bytes);
Result<ServerHello> decode_server_hello(std::string_view bytes);

}  // namespace muster::wire
