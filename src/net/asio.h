#pragma once

// All of Asio that Muster uses; no other file includes it. Asio's namespace gets a name of our own,
// `muster_asio`: the process that Muster is embedded in may carry another Asio, of another version
// or other settings, and the two must not meet in the linker. The macro stays, so that the code in
// this folder says `asio::` as everybody does. asio.cpp compiles what is not a template, once.

// Asio decides by macros of the standard library how it takes and gives back memory. Without them
// here, a file that includes this header first would give back otherwise than the others take.
#include <version>

#define ASIO_STANDALONE 1
#define ASIO_SEPARATE_COMPILATION 1
#define ASIO_NO_DEPRECATED 1
// Without this Asio marks its templates for export, whatever -fvisibility says.
#define ASIO_DISABLE_VISIBILITY 1
// What Asio needs comes from operator new: a program that keeps a reserve for when memory is short
// (std::set_new_handler) keeps it for Asio, too.
#define ASIO_DISABLE_STD_ALIGNED_ALLOC 1

// g++'s ThreadSanitizer does not know the fences; Asio's other way is a lock.
#if defined(__SANITIZE_THREAD__)
#define ASIO_DISABLE_FENCED_BLOCK 1
#endif

#define asio muster_asio
// Two functions of Asio have C names, which no namespace keeps apart.
#define asio_signal_handler muster_asio_signal_handler
#define asio_detail_posix_thread_function muster_asio_detail_posix_thread_function

#include <asio/any_io_executor.hpp>
#include <asio/basic_waitable_timer.hpp>
#include <asio/bind_executor.hpp>
#include <asio/buffer.hpp>
#include <asio/connect.hpp>
#include <asio/dispatch.hpp>
#include <asio/error.hpp>
#include <asio/error_code.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ip/v6_only.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
