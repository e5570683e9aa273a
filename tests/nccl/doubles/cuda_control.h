#pragma once

// A libcuda.so.1 of the tests' own, on a machine without a GPU: the memory of the host is that of
// the devices, and a stream is a queue with a thread. It reads once, when it is loaded:
//
//   CUDA_DOUBLE_DEVICES         how many devices there are (1)
//   CUDA_DOUBLE_UUIDS           theirs, 32 hexadecimal digits each, with commas between
//   CUDA_DOUBLE_DRIVER_VERSION  (13000)
//   CUDA_DOUBLE_INIT_RESULT     what cuInit gives instead of 0
//   CUDA_DOUBLE_MEMORY_BYTES    of each device (1 GiB)
//   CUDA_DOUBLE_FAIL            functions that fail, as in cuMemAlloc_v2=2,cuEventCreate=999
//
// The same can be told by a test that loads it by its path and asks it for these:

extern "C" {

/// As it was when it was loaded, and before cuInit; not while anything is alive.
void cuda_double_reset();

void cuda_double_set_devices(int count);
/// `uuid` has 16 bytes.
void cuda_double_set_uuid(int device, const unsigned char* uuid);
void cuda_double_set_driver_version(int version);
void cuda_double_set_init_result(int result);

/// From now on the function of this name gives this result and does nothing; 0: it works again.
void cuda_double_fail(const char* function, int result);

/// How many there are now of: streams, events, allocations, contexts (those retained), threads,
/// queued (what streams have not finished). -1: no such kind.
long cuda_double_alive(const char* kind);
}
