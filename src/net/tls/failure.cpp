#include "net/tls/failure.h"

namespace muster::net::tls {
namespace {

/// Which step of a client's has failed; empty: OpenSSL's words have to do.
std::string_view step_of_client(Trouble trouble) {
  switch (trouble) {
    case Trouble::refused:
      return "the server refuses this credential: it does not know the key or the certificate, or "
             "it has another server name";
    case Trouble::untrusted:
      return "the server has not shown that it knows this key, or its certificate is not trusted";
    case Trouble::not_tls:
      return "the server speaks no TLS: it was started without --credentials, or this is its plain "
             "listener";
    case Trouble::unable:
      return "the server cannot shake hands now: it has no memory or no file descriptor left";
    case Trouble::other: break;
  }
  return {};
}

}  // namespace

Failure failure_of(const TlsSession& session) {
  const Trouble trouble = session.trouble();
  Failure failure{CloseCause::lost, session.failure()};
  if (trouble == Trouble::refused || trouble == Trouble::untrusted)
    failure.cause = CloseCause::refused;
  const std::string_view step = session.is_client() ? step_of_client(trouble) : std::string_view();
  if (!step.empty()) failure.detail = std::string(step) + " (" + failure.detail + ")";
  return failure;
}

std::string alert_of_unable() {
  // A record of an alert, in clear as before hands are shaken (RFC 8446, 5.1 and 6): 2 bytes of it,
  // fatal, internal_error.
  return {0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x50};
}

std::string unestablished(const TlsSession& session, std::string_view why) {
  std::string text = "before TLS was established: " + std::string(why);
  if (session.is_client()) {
    text += "; a server that was started without --credentials speaks no TLS";
  }
  return text;
}

}  // namespace muster::net::tls
