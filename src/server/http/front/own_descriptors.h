#pragma once

namespace muster::server::http {

/// Gives the calling thread a table of descriptors of its own, in which there are only `kept`, as
/// `kept_as`, the standard error, and nothing behind the other two standard streams: what the
/// server closes is closed then, and what comes to the front takes no number from the server.
///
/// From now on a descriptor's number means something else on this thread than on others: nothing
/// that has one passes between them, and no other thread is started here.
///
/// returns  0, or an errno; then the thread may still share some
int take_own_descriptors(int kept);

inline constexpr int kept_as = 3;

}  // namespace muster::server::http
