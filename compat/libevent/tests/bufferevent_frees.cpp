// A callback frees its own bufferevent, in every event and with every combination of options: the
// callback is the last one, no memory is used after it was freed, and none is left.
//
// The sanitizers find uses of freed memory. Without them, freed memory is overwritten.

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/thread.h>

namespace {

int live = 0;
int failures = 0;

void* allocate(std::size_t size) {
  void* const memory = std::malloc(size);
  live += memory != nullptr ? 1 : 0;
  return memory;
}
void* reallocate(void* memory, std::size_t size) {
  live += memory == nullptr ? 1 : 0;
  return std::realloc(memory, size);
}
void release(void* memory) {
  if (memory == nullptr) return;
  --live;
  std::memset(memory, 0xdb, malloc_usable_size(memory));
  std::free(memory);
}

enum class Kind { socket, pair, filter };
enum class Moment { read, written, end, reset, timed_out, connected, refused };
constexpr const char* kinds[] = {"socket", "pair", "filter"};
constexpr const char* moments[] = {"read",     "written",   "end",    "reset",
                                   "timeouts", "connected", "refused"};

struct Victim {
  bufferevent* bev = nullptr;
  Moment moment{};
  int calls = 0;  ///< After it was freed, these would be too many.
  bool freed = false;
  bool other_too = false;  ///< Frees the other end as well.
  bufferevent* other = nullptr;
};

void free_both(Victim& victim) {
  victim.freed = true;
  bufferevent_free(victim.bev);
  if (!victim.other_too || victim.other == nullptr) return;
  bufferevent_free(victim.other);
  victim.other = nullptr;
}
void note(Victim& victim) {
  if (victim.freed) ++victim.calls;
}
void on_read(bufferevent* /*bev*/, void* argument) {
  auto& victim = *static_cast<Victim*>(argument);
  note(victim);
  if (victim.moment == Moment::read && !victim.freed) free_both(victim);
}
void on_write(bufferevent* /*bev*/, void* argument) {
  auto& victim = *static_cast<Victim*>(argument);
  note(victim);
  if (victim.moment == Moment::written && !victim.freed) free_both(victim);
}
void on_event(bufferevent* /*bev*/, short /*what*/, void* argument) {
  auto& victim = *static_cast<Victim*>(argument);
  note(victim);
  if (victim.moment != Moment::read && victim.moment != Moment::written && !victim.freed)
    free_both(victim);
}
void ignore(bufferevent* /*bev*/, short /*what*/, void* /*argument*/) {}

bufferevent_filter_result pass(evbuffer* from, evbuffer* to, ev_ssize_t /*limit*/,
                               bufferevent_flush_mode /*mode*/, void* /*context*/) {
  evbuffer_add_buffer(to, from);
  return BEV_OK;
}

/// Two ends that are connected. The first one is the victim.
bool make_ends(event_base* base, Kind kind, int options, bufferevent* (&ends)[2]) {
  if (kind == Kind::pair) return bufferevent_pair_new(base, options, ends) == 0;
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0) return false;
  for (int i = 0; i < 2; ++i)
    ends[i] = bufferevent_socket_new(base, fds[i], options | BEV_OPT_CLOSE_ON_FREE);
  if (kind == Kind::filter) {
    ends[0] = bufferevent_filter_new(ends[0], pass, pass, options | BEV_OPT_CLOSE_ON_FREE, nullptr,
                                     nullptr);
  }
  return ends[0] != nullptr && ends[1] != nullptr;
}

/// A listener for the moments of connecting, or a port that refuses.
int listening_socket(sockaddr_in& address, bool listens) {
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
  if (listens && ::listen(fd, 4) != 0) std::abort();
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return fd;
}

void run(event_base* base, const Victim& victim) {
  for (int i = 0; i < 5000 && !victim.freed; ++i) {
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    if (!victim.freed) ::usleep(100);
  }
  for (int i = 0; i < 8; ++i) event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

void begin(Victim& victim, Moment moment, bufferevent* other, int other_fd) {
  bufferevent_setcb(victim.bev, on_read, on_write, on_event, &victim);
  bufferevent_enable(victim.bev, EV_READ | EV_WRITE);
  const timeval brief{0, 2000};
  switch (moment) {
    case Moment::read:
      bufferevent_write(other, "some bytes", 10);
      bufferevent_write(victim.bev, "others", 6);
      return;
    case Moment::written:
      bufferevent_write(victim.bev, "some bytes", 10);
      return;
    case Moment::end:
      bufferevent_write(other, "some bytes", 10);
      if (other_fd >= 0) {
        bufferevent_flush(other, EV_WRITE, BEV_FINISHED);
        ::shutdown(other_fd, SHUT_WR);
      } else {
        bufferevent_flush(other, EV_WRITE, BEV_FINISHED);
      }
      return;
    case Moment::reset:
      // Writing fails, and reading finds the end.
      if (other_fd >= 0) ::shutdown(other_fd, SHUT_RDWR);
      bufferevent_write(victim.bev, "some bytes", 10);
      return;
    default:
      bufferevent_set_timeouts(victim.bev, &brief, nullptr);
  }
}

void play(Kind kind, Moment moment, int options, bool other_too) {
  const int before = live;
  event_base* const base = event_base_new();
  Victim victim{.moment = moment, .other_too = other_too};
  int listener = -1;
  if (moment == Moment::connected || moment == Moment::refused) {
    sockaddr_in address;
    listener = listening_socket(address, moment == Moment::connected);
    bufferevent* bev = bufferevent_socket_new(base, -1, options | BEV_OPT_CLOSE_ON_FREE);
    victim.bev = bev;
    bufferevent_setcb(bev, on_read, on_write, on_event, &victim);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    bufferevent_write(bev, "early", 5);
    bufferevent_socket_connect(bev, reinterpret_cast<sockaddr*>(&address), sizeof address);
  } else {
    bufferevent* ends[2] = {nullptr, nullptr};
    if (!make_ends(base, kind, options, ends)) std::abort();
    victim.bev = ends[0];
    victim.other = ends[1];
    bufferevent_setcb(ends[1], nullptr, nullptr, ignore, nullptr);
    bufferevent_enable(ends[1], EV_READ | EV_WRITE);
    begin(victim, moment, ends[1], kind == Kind::pair ? -1 : bufferevent_getfd(ends[1]));
  }
  run(base, victim);
  const bool happened = victim.freed;
  if (!happened) bufferevent_free(victim.bev);
  if (victim.other != nullptr) bufferevent_free(victim.other);
  for (int i = 0; i < 4; ++i) event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  event_base_free(base);
  if (listener >= 0) ::close(listener);
  const char* wrong = !happened           ? "the callback was not invoked"
                      : victim.calls != 0 ? "a callback was invoked after bufferevent_free()"
                      : live != before    ? "memory is left"
                                          : nullptr;
  if (wrong == nullptr) return;
  std::printf("%s, %s, options %#x%s: %s\n", kinds[int(kind)], moments[int(moment)], options,
              other_too ? ", both ends" : "", wrong);
  ++failures;
}

}  // namespace

int main() {
  event_set_mem_functions(allocate, reallocate, release);
  event_set_log_callback([](int, const char*) {});
  evthread_use_pthreads();
  play(Kind::socket, Moment::read, 0, false);  // What is kept is allocated now.
  failures = 0;
  constexpr int deferred = BEV_OPT_DEFER_CALLBACKS;
  constexpr int unlocked = BEV_OPT_DEFER_CALLBACKS | BEV_OPT_UNLOCK_CALLBACKS;
  int count = 0;
  for (const int options : {0, deferred, unlocked, int{BEV_OPT_THREADSAFE},
                            BEV_OPT_THREADSAFE | deferred, BEV_OPT_THREADSAFE | unlocked}) {
    for (const Kind kind : {Kind::socket, Kind::pair, Kind::filter}) {
      for (const Moment moment : {Moment::read, Moment::written, Moment::end, Moment::reset,
                                  Moment::timed_out, Moment::connected, Moment::refused}) {
        const bool connects = moment == Moment::connected || moment == Moment::refused;
        // A pair has nothing to reset, and only sockets connect.
        if (kind == Kind::pair && moment == Moment::reset) continue;
        if (kind != Kind::socket && connects) continue;
        for (const bool other_too : {false, true}) {
          play(kind, moment, options, other_too);
          ++count;
        }
      }
    }
  }
  std::printf("%d cases, %d failures\n", count, failures);
  return failures == 0 ? 0 : 1;
}
