// Random calls of the functions of bufferevents. Whatever is enabled, limited or suspended on the
// way, in the end all bytes have arrived, in order. The program runs on either library.
//
// bufferevent_model [first seed [number of seeds [calls per seed]]]

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

namespace {

constexpr int end_count = 2;

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2654435761U + 88172645463325252U) {}
  std::uint64_t below(std::uint64_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return (state_ >> 11) % limit;
  }

 private:
  std::uint64_t state_;
};

struct Stream {
  std::string sent;
  std::string received;
};

struct End {
  bufferevent* bev = nullptr;
  Stream* out = nullptr;
  Stream* in = nullptr;
  Random* random = nullptr;
  bool reads_all = false;  ///< In its read callback; otherwise a part.
  int writes_left = 0;     ///< How often the write callback writes more.
};

void send(End& end, std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>((end.out->sent.size() + i) * 31 / 7);
  end.out->sent += bytes;
  bufferevent_write(end.bev, bytes.data(), bytes.size());
}

void receive(End& end, std::size_t limit) {
  evbuffer* const input = bufferevent_get_input(end.bev);
  std::string bytes(std::min(limit, evbuffer_get_length(input)), '\0');
  const std::size_t n = bufferevent_read(end.bev, bytes.data(), bytes.size());
  end.in->received.append(bytes, 0, n);
}

void on_read(bufferevent* /*bev*/, void* argument) {
  auto& end = *static_cast<End*>(argument);
  // At least one byte, or a full buffer would be reported again and again.
  receive(end, end.reads_all ? SIZE_MAX : 1 + end.random->below(2000));
}
void on_write(bufferevent* /*bev*/, void* argument) {
  auto& end = *static_cast<End*>(argument);
  if (end.writes_left == 0) return;
  --end.writes_left;
  send(end, 1 + end.random->below(500));
}

class Test {
 public:
  explicit Test(std::uint64_t seed) : seed_(seed), random_(seed), base_(event_base_new()) {
    const timeval tick{0, 1000};
    limit_ = ev_token_bucket_cfg_new(20'000, 40'000, 20'000, 40'000, &tick);
    make_ends();
    for (int i = 0; i < end_count; ++i) {
      End& end = ends_[i];
      end.out = &streams_[i];
      end.in = &streams_[1 - i];
      end.random = &random_;
      bufferevent_setcb(end.bev, on_read, on_write, nullptr, &end);
    }
  }
  Test(const Test&) = delete;
  Test& operator=(const Test&) = delete;
  ~Test() {
    for (const End& end : ends_) bufferevent_free(end.bev);
    turn();
    ev_token_bucket_cfg_free(limit_);
    event_base_free(base_);
  }

  void run(int calls) {
    for (int i = 0; i < calls; ++i) call(ends_[random_.below(end_count)]);
    for (End& end : ends_) {
      end.reads_all = true;
      for (bufferevent* entry = end.bev; entry != nullptr;
           entry = bufferevent_get_underlying(entry)) {
        bufferevent_set_rate_limit(entry, nullptr);
        bufferevent_setwatermark(entry, EV_READ | EV_WRITE, 0, 0);
        bufferevent_enable(entry, EV_READ | EV_WRITE);
      }
    }
    // What had arrived before is not reported again.
    for (int i = 0; i < 400 && !complete(); ++i) {
      turn();
      for (End& end : ends_) receive(end, SIZE_MAX);
    }
    for (const Stream& stream : streams_) {
      if (stream.sent == stream.received) continue;
      std::fprintf(stderr, "seed %llu (%s): %zu of %zu bytes%s\n",
                   static_cast<unsigned long long>(seed_), kind_, stream.received.size(),
                   stream.sent.size(),
                   stream.sent.starts_with(stream.received) ? "" : ", not those sent");
      std::exit(1);
    }
  }

 private:
  [[nodiscard]] bool complete() const {
    return streams_[0].sent == streams_[0].received && streams_[1].sent == streams_[1].received;
  }
  void turn() {
    for (int i = 0; i < 4; ++i) event_base_loop(base_, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  }
  void make_ends();
  void call(End& end);

  std::uint64_t seed_;
  Random random_;
  event_base* base_;
  ev_token_bucket_cfg* limit_;
  const char* kind_ = "";
  Stream streams_[end_count];
  End ends_[end_count];
};

void Test::make_ends() {
  const bool deferred = random_.below(2) == 0;
  const int options = BEV_OPT_CLOSE_ON_FREE | (deferred ? BEV_OPT_DEFER_CALLBACKS : 0) |
                      (deferred && random_.below(2) == 0 ? BEV_OPT_UNLOCK_CALLBACKS : 0);
  bufferevent* created[end_count];
  const std::uint64_t kind = random_.below(3);
  if (kind == 0) {
    kind_ = "pair";
    if (bufferevent_pair_new(base_, options, created) != 0) std::abort();
  } else {
    int fds[end_count];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0) std::abort();
    for (int i = 0; i < end_count; ++i) created[i] = bufferevent_socket_new(base_, fds[i], options);
    kind_ = kind == 1 ? "sockets" : "filters";
  }
  for (int i = 0; i < end_count; ++i) {
    if (kind == 2)
      created[i] = bufferevent_filter_new(created[i], nullptr, nullptr, options, nullptr, nullptr);
    ends_[i].bev = created[i];
  }
}

void Test::call(End& end) {
  bufferevent* const bev = end.bev;
  switch (random_.below(11)) {
    case 0:
    case 1:
      return send(end, random_.below(random_.below(4) == 0 ? 60'000 : 600));
    case 2:
      bufferevent_enable(bev, static_cast<short>(random_.below(2) == 0 ? EV_READ : EV_WRITE));
      return;
    case 3:
      bufferevent_disable(bev, static_cast<short>(random_.below(2) == 0 ? EV_READ : EV_WRITE));
      return;
    case 4:
      bufferevent_setwatermark(bev, EV_READ, random_.below(3) == 0 ? random_.below(100) : 0,
                               random_.below(2) == 0 ? 200 + random_.below(5000) : 0);
      return;
    case 5:
      end.reads_all = !end.reads_all;
      return;
    case 6:
      end.writes_left = static_cast<int>(random_.below(10));
      return;
    case 7:
      return receive(end, random_.below(3000));
    case 8:
      if (kind_[0] == 's')
        bufferevent_set_rate_limit(bev, random_.below(2) == 0 ? limit_ : nullptr);
      return;
    case 9:
      bufferevent_flush(bev, EV_READ | EV_WRITE, random_.below(2) == 0 ? BEV_NORMAL : BEV_FLUSH);
      return;
    default:
      return turn();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long first = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  const unsigned long seeds = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 100;
  const int calls = argc > 3 ? std::atoi(argv[3]) : 300;
  ::alarm(300);
  for (unsigned long seed = first; seed != first + seeds; ++seed) Test(seed).run(calls);
  std::printf("%lu seeds of %d calls\n", seeds, calls);
}
