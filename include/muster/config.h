#pragma once

#include <cstddef>  // says which ABI of libstdc++ is in use

#if defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI == 0
#error "Muster needs libstdc++'s C++11 ABI: compile without -D_GLIBCXX_USE_CXX11_ABI=0"
#endif

/// MUSTER_API marks what the shared library exports; everything else is hidden.
#define MUSTER_API __attribute__((visibility("default")))

/// Every public name lives in the inline namespace of its ABI generation, so that two
/// incompatible versions of the library cannot be mixed up at link time.
#define MUSTER_BEGIN_NAMESPACE \
  namespace muster {           \
  inline namespace v1 {
#define MUSTER_END_NAMESPACE \
  }                          \
  }

// Hosts may be compiled without exceptions: then what their own code throws ends the process.
#ifdef __cpp_exceptions
#define MUSTER_TRY try
#define MUSTER_CATCH_ALL catch (...)
#else
#define MUSTER_TRY if constexpr (true)
#define MUSTER_CATCH_ALL if constexpr (false)
#endif
