#pragma once

// A libnccl of the tests' own. Its ids are made as NCCL makes them: each has a listening socket of
// this process that exec'd children inherit, and a thread that accepts until nobody can come any
// more. A test loads it by its path and asks it for these, too.

extern "C" {

/// From now on ncclGetUniqueId gives this result; 0: it makes ids.
void nccl_double_refuse(int result);

/// Called before each id is made; null: nothing is.
void nccl_double_before(void (*action)());

/// How many ids are still waited at.
int nccl_double_waiting();
}
