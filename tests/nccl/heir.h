#pragma once

namespace muster::test {

/// Starts a child that is exec'd and so inherits what this process lets children inherit, such as
/// the socket at which NCCL waits for the ranks of an id. It outlives this process, and ends when
/// nobody reads any more what this process prints.
///
/// returns  whether it runs
bool leave_heir();

/// For `main`: is that child, and gives its exit code; -1 if it is none.
int run_as_heir(int argc, char** argv);

}  // namespace muster::test
