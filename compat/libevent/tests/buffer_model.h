// Random calls of the functions of evbuffers, compared with strings: one test, and its model.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <event2/buffer.h>

namespace buffer_model {

constexpr int buffer_count = 3;

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2654435761U + 88172645463325252U) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ >> 11;
  }
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : next() % limit; }
  /// Mostly small, sometimes large, often near a power of two.
  std::size_t size() {
    switch (below(8)) {
      case 0:
        return 0;
      case 1:
        return 1 + below(8);
      case 2:
        return (std::size_t{128} << below(9)) - 80 + below(160) * (below(4) == 0 ? 1 : 0);
      case 3:
        return below(20'000);
      default:
        return below(300);
    }
  }

 private:
  std::uint64_t state_;
};

struct Tracked {
  evbuffer* buffer = nullptr;
  std::string bytes;
  bool front_frozen = false;
  bool back_frozen = false;
  bool has_callback = false;
  evbuffer_cb_entry* callback = nullptr;
  std::size_t seen = 0;  // The length that the callback was told.
  bool told_wrong = false;
};

class Test {
 public:
  Test(std::uint64_t seed, bool is_original)
      : random_(seed), seed_(seed), is_original_(is_original) {
    for (Tracked& tracked : tracked_) tracked.buffer = evbuffer_new();
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_) != 0) std::abort();
  }
  Test(const Test&) = delete;
  Test& operator=(const Test&) = delete;
  ~Test() {
    for (Tracked& tracked : tracked_) evbuffer_free(tracked.buffer);
    for (const int fd : ends_) ::close(fd);
    if (references_ != 0) fail("%d references were not released", references_);
  }

  void run(int calls) {
    for (int i = 0; i < calls; ++i) {
      call_ = i;
      one_call();
      for (Tracked& tracked : tracked_) verify(tracked);
    }
  }

 private:
  __attribute__((format(printf, 2, 3), noreturn)) void fail(const char* format, ...) {
    std::fprintf(stderr, "seed %llu, call %d (%s): ", static_cast<unsigned long long>(seed_), call_,
                 operation_);
    std::va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputc('\n', stderr);
    std::exit(1);
  }
  void equal(long long got, long long expected, const char* text) {
    if (got != expected) fail("%s: %lld, expected %lld", text, got, expected);
  }

  static void told(evbuffer* /*buffer*/, const evbuffer_cb_info* info, void* argument) {
    auto& tracked = *static_cast<Tracked*>(argument);
    if (info->orig_size != tracked.seen) tracked.told_wrong = true;
    tracked.seen = info->orig_size + info->n_added - info->n_deleted;
  }
  static void released(const void* data, std::size_t /*size*/, void* argument) {
    --static_cast<Test*>(argument)->references_;
    std::free(const_cast<void*>(data));
  }

  void verify(Tracked& tracked) {
    equal(static_cast<long long>(evbuffer_get_length(tracked.buffer)),
          static_cast<long long>(tracked.bytes.size()), "length");
    std::vector<evbuffer_iovec> extents(
        static_cast<std::size_t>(evbuffer_peek(tracked.buffer, -1, nullptr, nullptr, 0)));
    const int count = evbuffer_peek(tracked.buffer, -1, nullptr, extents.data(),
                                    static_cast<int>(extents.size()));
    std::size_t at = 0;
    for (int i = 0; i < count; ++i) {
      const evbuffer_iovec& extent = extents[static_cast<std::size_t>(i)];
      if (at + extent.iov_len > tracked.bytes.size()) fail("too many bytes");
      if (extent.iov_len != 0 &&
          std::memcmp(extent.iov_base, tracked.bytes.data() + at, extent.iov_len) != 0)
        fail("other bytes after %zu", at);
      at += extent.iov_len;
    }
    equal(static_cast<long long>(at), static_cast<long long>(tracked.bytes.size()), "extents");
    if (!tracked.has_callback) return;
    if (tracked.told_wrong) fail("the callback was told a wrong size");
    equal(static_cast<long long>(tracked.seen), static_cast<long long>(tracked.bytes.size()),
          "told");
  }

  std::string some_bytes(std::size_t size) {
    // Few values, so that searches find partial matches, and line ends.
    static constexpr char values[] = "aaaaaaaaabbbc\r\n\r\n\0x";
    std::string text(size, '\0');
    for (char& byte : text) byte = values[random_.below(sizeof values - 1)];
    return text;
  }
  evbuffer_ptr position(Tracked& tracked, std::size_t at) {
    evbuffer_ptr ptr{};
    const int result = evbuffer_ptr_set(tracked.buffer, &ptr, at, EVBUFFER_PTR_SET);
    equal(result, at <= tracked.bytes.size() ? 0 : -1, "ptr_set");
    equal(ptr.pos, at <= tracked.bytes.size() ? static_cast<long long>(at) : -1, "ptr");
    return ptr;
  }

  void one_call();
  void add(Tracked& to);
  void move(Tracked& from, Tracked& to);
  void take(Tracked& from);
  void search(Tracked& in);
  void lines(Tracked& in);
  void space(Tracked& in);
  void transfer(Tracked& with);
  void settings(Tracked& tracked);
  void files(Tracked& to);

  Random random_;
  std::uint64_t seed_;
  bool is_original_;  ///< Makes no calls that libevent 2.1.12 fails on.
  int call_ = 0;
  const char* operation_ = "";
  Tracked tracked_[buffer_count];
  int references_ = 0;
  int ends_[2] = {-1, -1};
  std::string in_flight_;
};

}  // namespace buffer_model
