// What differs on purpose from libevent 2.1.12: see differences.md.

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

namespace {

int failures = 0;

void expect(bool holds, const char* text) {
  if (holds) return;
  std::printf("not so: %s\n", text);
  ++failures;
}
#define EXPECT(condition) expect(condition, #condition)

int make_file(const char* content) {
  char name[] = "/tmp/buffer_differences.XXXXXX";
  const int fd = ::mkstemp(name);
  ::unlink(name);
  const auto size = static_cast<ssize_t>(std::strlen(content));
  if (fd < 0 || ::write(fd, content, std::strlen(content)) != size) std::abort();
  return fd;
}
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

struct Sockets {
  Sockets() {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0) std::abort();
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  ~Sockets() {
    for (const int fd : fds) ::close(fd);
  }
  std::string received() const {
    char bytes[100];
    const ssize_t n = ::read(fds[1], bytes, sizeof bytes);
    return {bytes, n > 0 ? static_cast<std::size_t>(n) : 0};
  }
  int fds[2];
};

/// A segment "to the end" ends with the file.
void rest_of_a_file() {
  const Sockets sockets;
  for (const bool sendfile : {false, true}) {
    evbuffer* const b = evbuffer_new();
    if (sendfile) evbuffer_set_flags(b, EVBUFFER_FLAG_DRAINS_TO_FD);
    EXPECT(evbuffer_add_file(b, make_file("0123456789"), 4, -1) == 0);
    EXPECT(evbuffer_get_length(b) == 6);
    EXPECT(evbuffer_write(b, sockets.fds[0]) == 6);
    EXPECT(sockets.received() == "456789");
    EXPECT(evbuffer_add_file(b, make_file("0123456789"), 20, -1) == 0);
    EXPECT(evbuffer_get_length(b) == 0);
    evbuffer_free(b);
  }
}

void part_of_a_file() {
  const Sockets sockets;
  evbuffer* const b = evbuffer_new();
  evbuffer_set_flags(b, EVBUFFER_FLAG_DRAINS_TO_FD);
  EXPECT(evbuffer_add_file(b, make_file("0123456789"), 0, -1) == 0);
  EXPECT(evbuffer_write_atmost(b, sockets.fds[0], 3) == 3);
  EXPECT(evbuffer_get_length(b) == 7);
  EXPECT(sockets.received() == "012");
  // The rest is needed in memory.
  EXPECT(evbuffer_search(b, "56", 2, nullptr).pos == 2);
  char into[4];
  EXPECT(evbuffer_remove(b, into, sizeof into) == 4 && std::memcmp(into, "3456", 4) == 0);
  EXPECT(evbuffer_write(b, sockets.fds[0]) == 3);
  EXPECT(sockets.received() == "789");
  evbuffer_free(b);
}

void part_of_a_file_to_another_buffer() {
  evbuffer* const b = evbuffer_new();
  evbuffer* const other = evbuffer_new();
  evbuffer_set_flags(b, EVBUFFER_FLAG_DRAINS_TO_FD);
  EXPECT(evbuffer_add_file(b, make_file("0123456789"), 2, -1) == 0);
  EXPECT(evbuffer_remove_buffer(b, other, 3) == 3);
  const unsigned char* const bytes = evbuffer_pullup(other, -1);
  EXPECT(bytes != nullptr && std::memcmp(bytes, "234", 3) == 0);
  evbuffer_free(b);
  evbuffer_free(other);
}

void empty_files() {
  for (const bool sendfile : {false, true}) {
    evbuffer* const b = evbuffer_new();
    if (sendfile) evbuffer_set_flags(b, EVBUFFER_FLAG_DRAINS_TO_FD);
    const int fd = make_file("");
    EXPECT(evbuffer_add_file(b, fd, 0, -1) == 0);
    EXPECT(evbuffer_get_length(b) == 0);
    EXPECT(evbuffer_add(b, "x", 1) == 0);
    EXPECT(!is_open(fd));
    evbuffer_free(b);
  }
}

evbuffer_cb_entry* removed = nullptr;
int invocations = 0;

void changed_callbacks() {
  evbuffer* b = evbuffer_new();
  const auto count = [](evbuffer*, const evbuffer_cb_info*, void*) { ++invocations; };
  const auto remove = [](evbuffer* buffer, const evbuffer_cb_info*, void*) {
    if (removed != nullptr) evbuffer_remove_cb_entry(buffer, removed);
    removed = nullptr;
  };
  removed = evbuffer_add_cb(b, count, nullptr);
  evbuffer_add_cb(b, count, nullptr);
  evbuffer_add_cb(b, remove, nullptr);
  evbuffer_add(b, "x", 1);
  evbuffer_add(b, "x", 1);
  EXPECT(invocations == 2);
  evbuffer_free(b);

  b = evbuffer_new();
  evbuffer_add_cb(b, count, nullptr);
  evbuffer_add_cb(
      b, [](evbuffer* buffer, const evbuffer_cb_info*, void*) { evbuffer_free(buffer); }, nullptr);
  EXPECT(evbuffer_add(b, "x", 1) == 0);
}

void ticks() {
  const timeval refused[] = {{0, 0}, {0, 999}, {-1, 0}, {LONG_MAX, 0}, {INT_MAX / 1000 + 1L, 0}};
  for (const timeval& tick : refused) EXPECT(ev_token_bucket_cfg_new(1, 1, 1, 1, &tick) == nullptr);
}

struct Reads {
  int count;
  std::size_t bytes;
};

/// 16 KiB are read first, then all that is there.
void bulk() {
  const Sockets sockets;
  constexpr std::size_t size = 60'000;
  event_base* const base = event_base_new();
  bufferevent* const bev = bufferevent_socket_new(base, sockets.fds[0], 0);
  Reads reads{0, 0};
  bufferevent_setcb(
      bev,
      [](bufferevent* from, void* argument) {
        auto& counted = *static_cast<Reads*>(argument);
        ++counted.count;
        counted.bytes = evbuffer_get_length(bufferevent_get_input(from));
      },
      nullptr, nullptr, &reads);
  bufferevent_enable(bev, EV_READ);
  const std::string sent(size, 's');
  EXPECT(::write(sockets.fds[1], sent.data(), size) == static_cast<ssize_t>(size));
  for (int i = 0; i < 6; ++i) event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  EXPECT(reads.bytes == size);
  EXPECT(reads.count == 2);
  bufferevent_free(bev);
  event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  event_base_free(base);
}

}  // namespace

int main() {
  event_set_log_callback([](int, const char*) {});
  rest_of_a_file();
  part_of_a_file();
  part_of_a_file_to_another_buffer();
  empty_files();
  changed_callbacks();
  ticks();
  bulk();
  return failures != 0 ? 1 : 0;
}
