// File segments: parts of files in evbuffers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <event2/buffer.h>

/// Counted by its chains and by the user. The bytes are sent by sendfile(2), or are brought into
/// memory when a function needs them, for which the lock is held.
struct evbuffer_file_segment {
  std::atomic<std::uint32_t> references;
  int fd;
  unsigned flags;
  bool sendfile;
  void* lock;
  void* mapping;
  std::size_t mapping_size;
  unsigned char* contents;  ///< In the mapping or allocated; null if not in memory.
  ev_off_t offset;
  ev_off_t length;
  evbuffer_file_segment_cleanup_cb cleanup;
  void* cleanup_argument;
};
