// Makes each allocation of a program that uses events fail in turn: no crash, no leak, and every
// event whose addition succeeded is activated.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <vector>

#include <event2/event.h>
#include <event2/thread.h>

#include "allocation_faults.h"
#include "failing_new.h"

namespace {

struct Counted {
  event* ev = nullptr;
  bool added = false;
  int calls = 0;
};

void on_event(evutil_socket_t /*fd*/, short /*what*/, void* argument) {
  ++static_cast<Counted*>(argument)->calls;
}

constexpr int pairs = 40;    // More than the tables of descriptors hold at first.
constexpr int timers = 300;  // More than one chunk of timers.
using Pairs = std::array<std::array<int, 2>, pairs>;

/// Returns what is wrong, or null.
const char* use_events(event_base* base, const Pairs& sockets) {
  std::array<Counted, pairs> readers{};
  std::array<Counted, timers> timeouts{};
  Counted signal;
  Counted once;
  const auto add = [](Counted& counted, const timeval* timeout) {
    counted.added = counted.ev != nullptr && event_add(counted.ev, timeout) == 0;
  };
  event_base_priority_init(base, 3);
  for (int i = 0; i < pairs; ++i) {
    readers[std::size_t(i)].ev =
        event_new(base, sockets[std::size_t(i)][0], EV_READ, on_event, &readers[std::size_t(i)]);
    add(readers[std::size_t(i)], nullptr);
  }
  const timeval brief{0, 1000};
  const timeval* const common = event_base_init_common_timeout(base, &brief);
  for (Counted& timeout : timeouts) {
    timeout.ev = evtimer_new(base, on_event, &timeout);
    const bool is_common = common != nullptr && &timeout > &timeouts[timers / 2];
    add(timeout, is_common ? common : &brief);
  }
  signal.ev = evsignal_new(base, SIGUSR1, on_event, &signal);
  add(signal, nullptr);
  once.added = event_base_once(base, -1, EV_TIMEOUT, on_event, &once, &brief) == 0;
  if (signal.added) raise(SIGUSR1);
  const auto is_done = [](const Counted& counted) {
    return counted.calls == (counted.added ? 1 : 0);
  };
  bool done = false;
  for (int i = 0; i < 2000 && !done; ++i) {
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    done = is_done(signal) && is_done(once);
    for (const Counted& current_object : readers) done = done && is_done(current_object);
    for (const Counted& current_entry : timeouts) done = done && is_done(current_entry);
    if (!done) ::usleep(200);
  }
  const char* wrong = nullptr;
  for (const Counted& current_reader : readers)
    if (!is_done(current_reader)) wrong = "an event of a descriptor is lost";
  for (const Counted& current_timeout : timeouts)
    if (!is_done(current_timeout)) wrong = "a timeout is lost";
  if (!is_done(signal)) wrong = "a signal is lost";
  if (!is_done(once)) wrong = "a timeout of event_base_once() is lost";
  for (const Counted& reader : readers)
    if (reader.ev != nullptr) event_free(reader.ev);
  for (const Counted& entry : timeouts)
    if (entry.ev != nullptr) event_free(entry.ev);
  if (signal.ev != nullptr) event_free(signal.ev);
  return wrong;
}

const char* scenario(const Pairs& sockets) {
  event_config* const config = event_config_new();
  if (config == nullptr) return nullptr;
  event_config_avoid_method(config, "select");
  event_config_set_max_dispatch_interval(config, nullptr, 100, 1);
  event_base* const base = event_base_new_with_config(config);
  event_config_free(config);
  if (base == nullptr) return nullptr;
  const char* wrong = use_events(base, sockets);
  event_base_free(base);
  return wrong;
}

void expect_right(const char* wrong, int failing) {
  if (wrong != nullptr) faults::report("allocation %d: %s", failing, wrong);
}

}  // namespace

int main(int argc, char**) {
  faults::replace_memory_functions();
  if (argc > 1) evthread_use_pthreads();
  Pairs sockets{};
  for (auto& pair : sockets) {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()) != 0) std::abort();
    if (::write(pair[1], "x", 1) != 1) std::abort();
  }
  // What is kept until the process ends is allocated now.
  expect_right(scenario(sockets), faults::none);
  faults::fail_each("events", [&](int failing) {
    const char* wrong = nullptr;
    const bool was_reached = faults::fail_at(failing, [&] { wrong = scenario(sockets); });
    expect_right(wrong, failing);
    return was_reached;
  });
  return faults::failures != 0 ? 1 : 0;
}
