#pragma once

// The sanitizer that this program is built with, for g++ and clang: 1 or 0.

#if defined(__has_feature)
#define MUSTER_TEST_HAS_ASAN __has_feature(address_sanitizer)
#define MUSTER_TEST_HAS_TSAN __has_feature(thread_sanitizer)
#else
#ifdef __SANITIZE_ADDRESS__
#define MUSTER_TEST_HAS_ASAN 1
#else
#define MUSTER_TEST_HAS_ASAN 0
#endif
#ifdef __SANITIZE_THREAD__
#define MUSTER_TEST_HAS_TSAN 1
#else
#define MUSTER_TEST_HAS_TSAN 0
#endif
#endif
