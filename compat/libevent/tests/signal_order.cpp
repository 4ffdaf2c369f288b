// The order of a descriptor's event and a signal that came after it. Programs that wait for the
// last output of a child and for its end rely on it: tmux loses output otherwise.

#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <string>

#include <event2/event.h>
#include <gtest/gtest.h>

namespace {

/// Called once, the next time that the library reads the clock.
void (*at_next_clock)() = nullptr;

std::string order;
int written_to = -1;

void write_and_raise() {
  EXPECT_EQ(::write(written_to, "x", 1), 1);
  std::raise(SIGUSR1);
}

}  // namespace

/// Takes the place of that of the C library.
extern "C" int clock_gettime(clockid_t clock, timespec* at) noexcept {
  using Function = int (*)(clockid_t, timespec*);
  static const auto original = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "clock_gettime"));
  if (void (*const function)() = at_next_clock) {
    at_next_clock = nullptr;
    function();
  }
  return original(clock, at);
}

namespace {

/// The library reads the clock after it has waited, and before it activates events.
void arrange(evutil_socket_t /*fd*/, short /*events*/, void* /*argument*/) {
  order += 't';
  at_next_clock = nullptr;
}

void note_read(evutil_socket_t fd, short /*events*/, void* /*argument*/) {
  char byte = 0;
  EXPECT_EQ(::read(fd, &byte, 1), 1);
  order += 'r';
}

void note_signal(evutil_socket_t /*fd*/, short /*events*/, void* base) {
  order += 's';
  event_base_loopbreak(static_cast<event_base*>(base));
}

TEST(SignalOrder, what_was_written_before_a_signal_is_read_before_it) {
  event_base* const base = event_base_new();
  int fds[2] = {};
  ASSERT_EQ(::pipe(fds), 0);
  written_to = fds[1];
  event* const reading = event_new(base, fds[0], EV_READ | EV_PERSIST, &note_read, nullptr);
  event* const signal = evsignal_new(base, SIGUSR1, &note_signal, base);
  event* const ready = event_new(base, fds[1], EV_WRITE, &arrange, nullptr);
  for (event* const current_event : {reading, signal, ready})
    ASSERT_EQ(event_add(current_event, nullptr), 0);
  // The descriptor for writing is ready, so that the first wait ends at once. Both happen after it.
  at_next_clock = &write_and_raise;
  event_base_dispatch(base);
  EXPECT_TRUE(order == "trs" || order == "rts") << order;
  for (event* const entry : {reading, signal, ready}) event_free(entry);
  event_base_free(base);
  for (const int fd : fds) ::close(fd);
}

}  // namespace
