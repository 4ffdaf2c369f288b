// Makes each allocation of each function of evbuffers fail in turn, and makes buffers longer than
// any memory. A function that fails must leave the bytes as they were, and nothing may leak.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include <event2/buffer.h>
#include <event2/event.h>

extern "C" {
#include <event2/buffer_compat.h>
}

#include "allocation_faults.h"

using failing_allocations::release;
using faults::report;

namespace {

std::string bytes_of(evbuffer* buffer) {
  std::string bytes(evbuffer_get_length(buffer), '?');
  evbuffer_copyout(buffer, bytes.data(), bytes.size());
  return bytes;
}

struct Buffers {
  evbuffer* one = nullptr;
  evbuffer* other = nullptr;
};

/// Two buffers with several chains. Of the first one, bytes were removed; the last chain of the
/// other one has no space.
Buffers make_buffers() {
  static const std::string large(3000, 'l');
  Buffers buffers{evbuffer_new(), evbuffer_new()};
  evbuffer_add(buffers.one, "dropped line one\nline two\n", 26);
  evbuffer_drain(buffers.one, 8);
  evbuffer_add_reference(buffers.one, "referred", 8, nullptr, nullptr);
  evbuffer_add(buffers.one, large.data(), large.size());
  evbuffer_add(buffers.other, "other", 5);
  evbuffer_add_reference(buffers.other, "other reference", 15, nullptr, nullptr);
  evbuffer_add(buffers.other, large.data(), large.size());
  evbuffer_add_reference(buffers.other, "last", 4, nullptr, nullptr);
  return buffers;
}

/// Returns whether it succeeded.
using Call = std::function<bool(evbuffer* one, evbuffer* other)>;

/// Returns whether an allocation failed.
bool call_once(const char* name, const Call& call, int failing) {
  const Buffers buffers = make_buffers();
  const std::string one = bytes_of(buffers.one);
  const std::string other = bytes_of(buffers.other);
  bool succeeded = false;
  const bool failed =
      faults::fail_at(failing, [&] { succeeded = call(buffers.one, buffers.other); });
  if (!failed && !succeeded) report("%s fails with memory", name);
  if (!succeeded && (bytes_of(buffers.one) != one || bytes_of(buffers.other) != other))
    report("%s changed bytes although allocation %d failed", name, failing);
  // The buffers still work.
  evbuffer_add(buffers.one, "x", 1);
  evbuffer_prepend(buffers.one, "x", 1);
  const std::string after = bytes_of(buffers.one);
  if (after.front() != 'x' || after.back() != 'x') report("%s broke the buffer", name);
  evbuffer_free(buffers.one);
  evbuffer_free(buffers.other);
  return failed;
}

void try_all(const char* name, const Call& call) {
  faults::fail_each(name, [&](int failing) { return call_once(name, call, failing); });
}

int temporary_file() {
  char name[] = "/tmp/buffer_faults.XXXXXX";
  const int fd = ::mkstemp(name);
  ::unlink(name);
  if (::write(fd, "0123456789", 10) != 10) std::abort();
  return fd;
}

const std::string large(20'000, 'a');

void added_bytes() {
  try_all("new", [](evbuffer*, evbuffer*) {
    evbuffer* const created = evbuffer_new();
    if (created != nullptr) evbuffer_free(created);
    return created != nullptr;
  });
  try_all("add", [](evbuffer* one, evbuffer*) {
    return evbuffer_add(one, large.data(), large.size()) == 0;
  });
  try_all("prepend", [](evbuffer* one, evbuffer*) {
    return evbuffer_prepend(one, large.data(), large.size()) == 0;
  });
  try_all("add_iovec", [](evbuffer* one, evbuffer*) {
    evbuffer_iovec extents[2] = {{const_cast<char*>(large.data()), large.size()},
                                 {const_cast<char*>(large.data()), large.size()}};
    return evbuffer_add_iovec(one, extents, 2) == 2 * large.size();
  });
  try_all("add_printf", [](evbuffer* one, evbuffer*) {
    return evbuffer_add_printf(one, "%s", large.c_str()) == static_cast<int>(large.size());
  });
  try_all("expand", [](evbuffer* one, evbuffer*) { return evbuffer_expand(one, 5000) == 0; });
  try_all("reserve_space, one extent", [](evbuffer* one, evbuffer*) {
    evbuffer_iovec extent{};
    return evbuffer_reserve_space(one, 5000, &extent, 1) == 1;
  });
  try_all("reserve_space", [](evbuffer* one, evbuffer*) {
    evbuffer_iovec extents[2];
    if (evbuffer_reserve_space(one, 5000, extents, 2) < 0) return false;
    return evbuffer_reserve_space(one, 50'000, extents, 2) >= 0;
  });
}

void other_calls() {
  try_all("pullup", [](evbuffer* one, evbuffer*) { return evbuffer_pullup(one, -1) != nullptr; });
  try_all("find", [](evbuffer* one, evbuffer*) {
    return evbuffer_find(one, reinterpret_cast<const unsigned char*>("redl"), 4) != nullptr;
  });
  try_all("readln", [](evbuffer* one, evbuffer*) {
    char* const line = evbuffer_readln(one, nullptr, EVBUFFER_EOL_LF);
    if (line == nullptr) return false;
    release(line);
    return true;
  });
  try_all("add_buffer",
          [](evbuffer* one, evbuffer* other) { return evbuffer_add_buffer(one, other) == 0; });
  try_all("prepend_buffer",
          [](evbuffer* one, evbuffer* other) { return evbuffer_prepend_buffer(one, other) == 0; });
  try_all("remove_buffer", [](evbuffer* one, evbuffer* other) {
    return evbuffer_remove_buffer(other, one, 12) == 12;
  });
  try_all("add_buffer_reference", [](evbuffer* one, evbuffer* other) {
    return evbuffer_add_buffer_reference(one, other) == 0;
  });
  try_all("add_reference", [](evbuffer* one, evbuffer*) {
    return evbuffer_add_reference(one, "r", 1, nullptr, nullptr) == 0;
  });
}

void files() {
  for (const unsigned flags : {0U, unsigned{EVBUF_FS_DISABLE_SENDFILE},
                               unsigned{EVBUF_FS_DISABLE_SENDFILE | EVBUF_FS_DISABLE_MMAP}}) {
    try_all("file segment", [flags](evbuffer* one, evbuffer*) {
      const int fd = temporary_file();
      evbuffer_file_segment* const segment = evbuffer_file_segment_new(fd, 0, 10, flags);
      if (segment == nullptr) {
        ::close(fd);
        return false;
      }
      // If this fails for lack of memory, it frees the segment, as in libevent.
      const bool added = evbuffer_add_file_segment(one, segment, 0, -1) == 0;
      if (added) evbuffer_file_segment_free(segment);
      ::close(fd);
      return added;
    });
  }
  try_all("add_file", [](evbuffer* one, evbuffer*) {
    const int fd = temporary_file();
    if (evbuffer_add_file(one, fd, 0, -1) == 0) return true;
    ::close(fd);  // Open only if the segment could not be made.
    return false;
  });
  try_all("read", [](evbuffer*, evbuffer* other) {
    const int fd = temporary_file();
    ::lseek(fd, 0, SEEK_SET);
    const int n = evbuffer_read(other, fd, -1);
    ::close(fd);
    return n == 10;
  });
}

void callbacks() {
  try_all("add_cb", [](evbuffer* one, evbuffer*) {
    return evbuffer_add_cb(
               one, [](evbuffer*, const evbuffer_cb_info*, void*) {}, nullptr) != nullptr;
  });
  try_all("setcb", [](evbuffer* one, evbuffer*) {
    return evbuffer_setcb(one, [](evbuffer*, std::size_t, std::size_t, void*) {}, nullptr) == 0;
  });
}

/// A buffer with as many bytes as a size can be. None of them is looked at.
void lengths() {
  evbuffer* const b = evbuffer_new();
  evbuffer* const other = evbuffer_new();
  static const char byte = 'b';
  EXPECT(evbuffer_add_reference(b, &byte, SIZE_MAX, nullptr, nullptr) == 0);
  EXPECT(evbuffer_add(b, "x", 1) == -1);
  EXPECT(evbuffer_prepend(b, "x", 1) == -1);
  EXPECT(evbuffer_add_printf(b, "%d", 1) == -1);
  EXPECT(evbuffer_add_reference(b, &byte, 1, nullptr, nullptr) == -1);
  evbuffer_add(other, "other", 5);
  EXPECT(evbuffer_add_buffer(b, other) == -1);
  EXPECT(evbuffer_prepend_buffer(b, other) == -1);
  EXPECT(evbuffer_remove_buffer(other, b, 2) == -1);
  EXPECT(evbuffer_add_buffer_reference(b, other) == -1);
  evbuffer_iovec extent{};
  EXPECT(evbuffer_reserve_space(b, 10, &extent, 1) == 1);
  EXPECT(evbuffer_commit_space(b, &extent, 1) == -1);
  EXPECT(evbuffer_add_iovec(b, &extent, 1) == 0);
  EXPECT(evbuffer_read(b, 0, 0) == 0);
  EXPECT(evbuffer_get_length(b) == SIZE_MAX);
  EXPECT(evbuffer_get_length(other) == 5);
  EXPECT(evbuffer_drain(b, SIZE_MAX) == 0);
  EXPECT(evbuffer_get_length(b) == 0);
  evbuffer_free(b);
  evbuffer_free(other);
}

}  // namespace

int main() {
  faults::replace_memory_functions();
  added_bytes();
  other_calls();
  files();
  callbacks();
  lengths();
  const int left = failing_allocations::live;
  if (left != 0) report("%d allocations are left", left);
  return faults::failures != 0 ? 1 : 0;
}
