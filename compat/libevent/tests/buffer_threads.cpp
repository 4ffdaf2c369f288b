// evbuffers and bufferevents with locks, used by several threads at once. Run under
// ThreadSanitizer.

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/thread.h>

namespace {

int failures = 0;

void expect(bool holds, const char* text) {
  if (holds) return;
  std::printf("not so: %s\n", text);
  ++failures;
}
#define EXPECT(condition) expect(condition, #condition)

constexpr int rounds = 2000;

evbuffer* locked_buffer() {
  evbuffer* const created = evbuffer_new();
  if (evbuffer_enable_locking(created, nullptr) != 0) std::abort();
  return created;
}

/// Bytes move between two buffers in both directions, are added and drained. None are lost.
void moves() {
  evbuffer* const one = locked_buffer();
  evbuffer* const other = locked_buffer();
  std::atomic<long> added{0};
  std::atomic<long> removed{0};
  const std::string text(700, 't');
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (int i = 0; i < rounds; ++i) {
      if (evbuffer_add(one, text.data(), text.size()) == 0) added += 700;
      if (evbuffer_prepend(other, text.data(), 50) == 0) added += 50;
    }
  });
  threads.emplace_back([&] {
    for (int i = 0; i < rounds; ++i) {
      evbuffer_add_buffer(other, one);
      evbuffer_remove_buffer(other, one, 1000);
    }
  });
  threads.emplace_back([&] {
    for (int i = 0; i < rounds; ++i) {
      evbuffer_prepend_buffer(one, other);
      evbuffer_pullup(one, 300);
    }
  });
  threads.emplace_back([&] {
    char into[900];
    for (int i = 0; i < rounds; ++i) {
      for (evbuffer* const from : {one, other})
        if (const int n = evbuffer_remove(from, into, sizeof into); n > 0) removed += n;
    }
  });
  for (std::thread& thread : threads) thread.join();
  const auto left = static_cast<long>(evbuffer_get_length(one) + evbuffer_get_length(other));
  EXPECT(added == removed + left);
  evbuffer_free(one);
  evbuffer_free(other);
}

/// Views of the chains of one buffer are freed by other threads than the chains.
void views() {
  std::atomic<int> references{0};
  const auto released = [](const void* data, std::size_t, void* count) {
    std::free(const_cast<void*>(data));
    --*static_cast<std::atomic<int>*>(count);
  };
  for (int i = 0; i < rounds / 10; ++i) {
    evbuffer* const from = locked_buffer();
    for (int j = 0; j < 4; ++j) {
      void* const memory = std::calloc(1, 100);
      ++references;
      evbuffer_add_reference(from, memory, 100, released, &references);
    }
    evbuffer* const one = locked_buffer();
    evbuffer* const other = locked_buffer();
    EXPECT(evbuffer_add_buffer_reference(one, from) == 0);
    EXPECT(evbuffer_add_buffer_reference(other, from) == 0);
    std::thread first([one] { evbuffer_drain(one, 250), evbuffer_free(one); });
    std::thread second([other] { evbuffer_free(other); });
    evbuffer_drain(from, 150);
    evbuffer_free(from);
    first.join();
    second.join();
  }
  EXPECT(references == 0);
}

struct Count {
  std::atomic<long> bytes{0};
};
void count_bytes(bufferevent* bev, void* argument) {
  evbuffer* const input = bufferevent_get_input(bev);
  const std::size_t size = evbuffer_get_length(input);
  evbuffer_drain(input, size);
  static_cast<Count*>(argument)->bytes += static_cast<long>(size);
}

/// Threads write to both ends while the loop transfers, enables and disables.
void transfers(event_base* base, bufferevent* one, bufferevent* other) {
  constexpr long bytes = 4L * rounds * 50;
  Count counts[2];
  bufferevent* const ends[2] = {one, other};
  for (int i = 0; i < 2; ++i) {
    bufferevent_setcb(ends[i], count_bytes, nullptr, nullptr, &counts[i]);
    bufferevent_enable(ends[i], EV_READ | EV_WRITE);
  }
  std::atomic<int> writers{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    ++writers;
    threads.emplace_back([&ends, &writers] {
      const std::string text(50, 'w');
      for (int j = 0; j < rounds; ++j) {
        for (bufferevent* const end : ends) bufferevent_write(end, text.data(), text.size());
        if (j % 100 == 0) {
          bufferevent_disable(ends[0], EV_READ);
          bufferevent_setwatermark(ends[1], EV_READ, 0, 5000);
          bufferevent_enable(ends[0], EV_READ);
        }
      }
      --writers;
    });
  }
  while (writers != 0 || counts[0].bytes != bytes || counts[1].bytes != bytes)
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  for (std::thread& thread : threads) thread.join();
  EXPECT(counts[0].bytes == bytes);
  for (bufferevent* const end : ends) bufferevent_free(end);
  for (int i = 0; i < 6; ++i) event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

void bufferevents() {
  event_base* const base = event_base_new();
  for (const int more :
       {0, int{BEV_OPT_DEFER_CALLBACKS}, BEV_OPT_DEFER_CALLBACKS | BEV_OPT_UNLOCK_CALLBACKS}) {
    const int options = more | BEV_OPT_THREADSAFE | BEV_OPT_CLOSE_ON_FREE;
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0) std::abort();
    bufferevent* const one = bufferevent_socket_new(base, fds[0], options);
    bufferevent* const other = bufferevent_socket_new(base, fds[1], options);
    transfers(base, one, other);
    bufferevent* pair[2];
    if (bufferevent_pair_new(base, options, pair) != 0) std::abort();
    transfers(base, pair[0], pair[1]);
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0) std::abort();
    bufferevent* const below = bufferevent_socket_new(base, fds[0], options);
    transfers(base, bufferevent_filter_new(below, nullptr, nullptr, options, nullptr, nullptr),
              bufferevent_socket_new(base, fds[1], options));
  }
  event_base_free(base);
}

}  // namespace

int main() {
  ::alarm(300);
  if (evthread_use_pthreads() != 0) return 2;
  moves();
  views();
  bufferevents();
  return failures != 0 ? 1 : 0;
}
