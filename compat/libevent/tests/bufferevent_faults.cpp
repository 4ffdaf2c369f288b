// Makes each allocation of an echo over bufferevents fail in turn: no crash, no leak, and no wrong
// bytes. Then checks what libevent's own tests do not: signals, closed descriptors, a process
// without descriptors, and groups whose members are freed.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_struct.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/listener.h>

#include "allocation_faults.h"

using faults::report;

namespace {

/// Does not use events of its own, for which there may be no memory.
void run_for(event_base* base, long ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (std::chrono::steady_clock::now() < end) {
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
}
void run_ready(event_base* base) {
  for (int i = 0; i < 6; ++i) event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

bool make_sockets(int (&fds)[2]) {
  return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0;
}

void echo(bufferevent* bev, void* /*argument*/) {
  // If this fails for lack of memory, the bytes remain and the next callback tries again.
  bufferevent_write_buffer(bev, bufferevent_get_input(bev));
}

struct Client {
  event_base* base;
  std::string received;
  int events = 0;
};
void on_answer(bufferevent* bev, void* argument) {
  auto& client = *static_cast<Client*>(argument);
  char bytes[256];
  for (std::size_t n = 0; (n = bufferevent_read(bev, bytes, sizeof bytes)) > 0;)
    client.received.append(bytes, n);
}
void on_event(bufferevent* /*bev*/, short kind, void* argument) {
  static_cast<Client*>(argument)->events |= kind;
}

bufferevent_filter_result pass(evbuffer* from, evbuffer* to, ev_ssize_t /*limit*/,
                               bufferevent_flush_mode /*mode*/, void* /*context*/) {
  return evbuffer_add_buffer(to, from) == 0 ? BEV_OK : BEV_ERROR;
}

enum class Kind { sockets, filters, pair, limits };

/// An echo of a few messages. Anything may fail, but no bytes may be wrong.
void exchange(event_base* base, Kind kind) {
  const std::string sent(3000, 'm');
  Client client{base, {}};
  bufferevent* ends[2] = {nullptr, nullptr};
  ev_token_bucket_cfg* limit = nullptr;
  bufferevent_rate_limit_group* group = nullptr;
  if (kind == Kind::pair) {
    if (bufferevent_pair_new(base, 0, ends) != 0) return;
  } else {
    int fds[2];
    if (!make_sockets(fds)) return report("socketpair");
    for (int i = 0; i < 2; ++i) {
      ends[i] = bufferevent_socket_new(base, fds[i], BEV_OPT_CLOSE_ON_FREE);
      if (ends[i] == nullptr) ::close(fds[i]);
    }
  }
  for (bufferevent*& end : ends) {
    if (end == nullptr || kind != Kind::filters) continue;
    bufferevent* const filter =
        bufferevent_filter_new(end, pass, pass, BEV_OPT_CLOSE_ON_FREE, nullptr, nullptr);
    if (filter != nullptr) end = filter;
  }
  if (kind == Kind::limits) {
    const timeval tick{0, 1000};
    limit = ev_token_bucket_cfg_new(2000, 2000, 2000, 2000, &tick);
    if (limit != nullptr) group = bufferevent_rate_limit_group_new(base, limit);
    for (bufferevent* const end : ends) {
      if (end == nullptr || limit == nullptr) continue;
      bufferevent_set_rate_limit(end, limit);
      if (group != nullptr) bufferevent_add_to_rate_limit_group(end, group);
    }
  }
  if (ends[0] != nullptr && ends[1] != nullptr) {
    bufferevent_setcb(ends[0], on_answer, nullptr, on_event, &client);
    bufferevent_setcb(ends[1], echo, nullptr, on_event, &client);
    bufferevent_setwatermark(ends[1], EV_READ, 0, 10'000);
    for (bufferevent* const end : ends) bufferevent_enable(end, EV_READ | EV_WRITE);
    bufferevent_write(ends[0], sent.data(), sent.size());
    run_for(base, kind == Kind::limits ? 15 : 2);
  }
  if (sent.compare(0, client.received.size(), client.received) != 0) report("other bytes");
  for (bufferevent* const end : ends)
    if (end != nullptr) bufferevent_free(end);
  run_ready(base);
  if (group != nullptr) bufferevent_rate_limit_group_free(group);
  if (limit != nullptr) ev_token_bucket_cfg_free(limit);
}

void exchanges(const char* name, Kind kind) {
  event_base* const base = event_base_new();
  exchange(base, kind);  // Allocates what the base keeps.
  faults::fail_each(name, [&](int failing) {
    const bool was_reached = faults::fail_at(failing, [&] { exchange(base, kind); });
    run_ready(base);
    return was_reached;
  });
  event_base_free(base);
}

bufferevent* socket_with(event_base* base, int fd, Client& client, int options) {
  bufferevent* const bev = bufferevent_socket_new(base, fd, options);
  bufferevent_setcb(bev, on_answer, nullptr, on_event, &client);
  return bev;
}

/// The default action of SIGPIPE would end the process.
void broken_pipes() {
  event_base* const base = event_base_new();
  int fds[2];
  for (const bool is_pipe : {false, true}) {
    Client client{base, {}};
    if (is_pipe ? ::pipe2(fds, O_NONBLOCK) != 0 : !make_sockets(fds)) std::abort();
    ::close(fds[0]);
    bufferevent* const bev = socket_with(base, fds[1], client, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_write(bev, "x", 1);
    run_ready(base);
    EXPECT(client.events == (BEV_EVENT_WRITING | BEV_EVENT_ERROR));
    bufferevent_free(bev);
    run_ready(base);
  }
  // By sendfile(2).
  Client client{base, {}};
  if (!make_sockets(fds)) std::abort();
  ::close(fds[0]);
  bufferevent* const bev = socket_with(base, fds[1], client, BEV_OPT_CLOSE_ON_FREE);
  char name[] = "/tmp/bufferevent_faults.XXXXXX";
  const int file = ::mkstemp(name);
  ::unlink(name);
  EXPECT(::write(file, "content", 7) == 7);
  EXPECT(evbuffer_add_file(bufferevent_get_output(bev), file, 0, 7) == 0);
  run_ready(base);
  EXPECT(client.events == (BEV_EVENT_WRITING | BEV_EVENT_ERROR));
  bufferevent_free(bev);
  run_ready(base);
  event_base_free(base);
}

/// A file is sent to a socket that is full, although its event said that it is not. libevent
/// reports the end of the connection.
void file_to_a_full_socket() {
  event_base* const base = event_base_new();
  int fds[2];
  if (!make_sockets(fds)) std::abort();
  Client client{base, {}};
  bufferevent* const bev = socket_with(base, fds[1], client, BEV_OPT_CLOSE_ON_FREE);
  const std::string block(4096, 'f');
  std::size_t filled = 0;
  for (ssize_t n = 0; (n = ::write(fds[1], block.data(), block.size())) > 0;)
    filled += static_cast<std::size_t>(n);
  char name[] = "/tmp/bufferevent_faults.XXXXXX";
  const int file = ::mkstemp(name);
  ::unlink(name);
  EXPECT(::write(file, "content", 7) == 7);
  EXPECT(evbuffer_add_file(bufferevent_get_output(bev), file, 0, 7) == 0);
  event_active(&bev->ev_write, EV_WRITE, 1);
  run_ready(base);
  EXPECT(client.events == 0);
  std::string got;
  for (int i = 0; i < 10'000 && got.size() < filled + 7; ++i) {
    char bytes[8192];
    const ssize_t n = ::read(fds[0], bytes, sizeof bytes);
    if (n > 0) got.append(bytes, static_cast<std::size_t>(n));
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  }
  EXPECT(got.size() == filled + 7 && got.ends_with("content"));
  EXPECT(client.events == 0);
  bufferevent_free(bev);
  run_ready(base);
  ::close(fds[0]);
  event_base_free(base);
}

/// A descriptor that is closed under a bufferevent is an error, not a crash or a loop that spins.
void closed_descriptors() {
  event_base* const base = event_base_new();
  int fds[2];
  if (!make_sockets(fds)) std::abort();
  Client client{base, {}};
  bufferevent* const bev = socket_with(base, fds[1], client, 0);
  bufferevent_enable(bev, EV_READ);
  run_ready(base);
  ::close(fds[1]);
  bufferevent_write(bev, "x", 1);
  run_ready(base);
  bufferevent_trigger(bev, EV_READ, 0);
  bufferevent_free(bev);
  run_ready(base);
  ::close(fds[0]);
  event_base_free(base);
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// A listener that cannot accept must not spin, and must recover.
void no_descriptors() {
  event_base* const base = event_base_new();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int accepted = 0;
  evconnlistener* const listener = evconnlistener_new_bind(
      base,
      [](evconnlistener*, evutil_socket_t fd, sockaddr*, int, void* count) {
        ++*static_cast<int*>(count);
        ::close(fd);
      },
      &accepted, LEV_OPT_CLOSE_ON_FREE, -1, reinterpret_cast<sockaddr*>(&address), sizeof address);
  evconnlistener_set_error_cb(listener, [](evconnlistener*, void*) {});
  socklen_t size = sizeof address;
  ::getsockname(evconnlistener_get_fd(listener), reinterpret_cast<sockaddr*>(&address), &size);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT(::connect(client, reinterpret_cast<sockaddr*>(&address), size) == 0);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 0;
  ::setrlimit(RLIMIT_NOFILE, &none);
  const timeval bound{0, 500'000};
  bool is_spinning = true;
  // On a busy machine, the kernel may charge interrupts to this process: up to five attempts.
  for (int i = 0; i < 5 && is_spinning; ++i) {
    const double start = cpu_seconds();
    event_base_loopexit(base, &bound);
    event_base_dispatch(base);
    is_spinning = cpu_seconds() - start >= 0.01;
  }
  EXPECT(!is_spinning);
  EXPECT(accepted == 0);
  ::setrlimit(RLIMIT_NOFILE, &before);
  for (int i = 0; i < 240 && accepted == 0; ++i) run_for(base, 250);
  EXPECT(accepted == 1);
  evconnlistener_free(listener);
  ::close(client);
  event_base_free(base);
}

/// Members of a suspended group are freed while bytes wait in both directions.
void freed_members() {
  constexpr int count = 6;
  event_base* const base = event_base_new();
  const timeval tick{0, 10'000};
  ev_token_bucket_cfg* const limit = ev_token_bucket_cfg_new(100, 100, 100, 100, &tick);
  bufferevent_rate_limit_group* const group = bufferevent_rate_limit_group_new(base, limit);
  bufferevent* members[count];
  int others[count];
  Client client{base, {}};
  const std::string bytes(1000, 'x');
  for (int i = 0; i < count; ++i) {
    int fds[2];
    if (!make_sockets(fds)) std::abort();
    others[i] = fds[0];
    members[i] = socket_with(base, fds[1], client, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_add_to_rate_limit_group(members[i], group);
    bufferevent_enable(members[i], EV_READ);
    bufferevent_write(members[i], bytes.data(), bytes.size());
    EXPECT(::write(fds[0], bytes.data(), bytes.size()) == 1000);
  }
  run_ready(base);
  for (int i = 0; i < count; i += 2) bufferevent_free(members[i]);
  // Before the memory of those members is freed, and after.
  bufferevent_rate_limit_group_decrement_read(group, -5000);
  bufferevent_rate_limit_group_decrement_write(group, -5000);
  run_for(base, 30);
  for (int i = 1; i < count; i += 2) {
    char into[2000];
    ssize_t got = ::read(others[i], into, sizeof into);
    for (int tries = 0; got <= 0 && tries < 600; ++tries) {
      run_for(base, 30);
      got = ::read(others[i], into, sizeof into);
    }
    EXPECT(got > 0);
    bufferevent_free(members[i]);
  }
  run_ready(base);
  bufferevent_rate_limit_group_free(group);
  ev_token_bucket_cfg_free(limit);
  for (const int fd : others) ::close(fd);
  event_base_free(base);
}

/// Longer than the tests take.
constexpr timeval long_tick{1000, 0};

/// A member that is left when its group is freed is no longer limited.
void freed_group() {
  event_base* const base = event_base_new();
  ev_token_bucket_cfg* const limit = ev_token_bucket_cfg_new(10, 10, 10, 10, &long_tick);
  bufferevent_rate_limit_group* const group = bufferevent_rate_limit_group_new(base, limit);
  int fds[2];
  if (!make_sockets(fds)) std::abort();
  Client client{base, {}};
  bufferevent* const bev = socket_with(base, fds[1], client, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_add_to_rate_limit_group(bev, group);
  bufferevent_enable(bev, EV_READ);
  EXPECT(::write(fds[0], "0123456789012345678901234567890123456789", 40) == 40);
  run_ready(base);
  EXPECT(client.received.size() == 10);
  bufferevent_rate_limit_group_free(group);
  run_ready(base);
  EXPECT(client.received.size() == 40);
  bufferevent_free(bev);
  run_ready(base);
  ev_token_bucket_cfg_free(limit);
  ::close(fds[0]);
  event_base_free(base);
}

/// A limit that is used up must not look like the end of the stream.
void used_up_limit() {
  event_base* const base = event_base_new();
  ev_token_bucket_cfg* const limit = ev_token_bucket_cfg_new(5, 5, 5, 5, &long_tick);
  int fds[2];
  if (!make_sockets(fds)) std::abort();
  Client client{base, {}};
  bufferevent* const bev = socket_with(base, fds[1], client, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_set_rate_limit(bev, limit);
  bufferevent_enable(bev, EV_READ);
  EXPECT(::write(fds[0], "0123456789", 10) == 10);
  bufferevent_write(bev, "0123456789", 10);
  run_ready(base);
  EXPECT(client.received.size() == 5);
  EXPECT(client.events == 0);
  bufferevent_free(bev);
  run_ready(base);
  ev_token_bucket_cfg_free(limit);
  ::close(fds[0]);
  event_base_free(base);
}

}  // namespace

int main() {
  faults::replace_memory_functions();
  ::alarm(300);
  exchanges("sockets", Kind::sockets);
  exchanges("filters", Kind::filters);
  exchanges("pair", Kind::pair);
  exchanges("rate limits", Kind::limits);
  broken_pipes();
  closed_descriptors();
  file_to_a_full_socket();
  no_descriptors();
  freed_members();
  freed_group();
  used_up_limit();
  return faults::failures != 0 ? 1 : 0;
}
