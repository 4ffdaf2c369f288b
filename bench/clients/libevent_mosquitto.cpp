// libevent: libmosquitto with an event for its socket, and one for its keep-alive messages.
#include <memory>

#include "clients/libevent.h"
#include "clients/mosquitto_client.h"

namespace bench::libevent {
namespace {

class Mosquitto final : public ClientSession {
 public:
  Mosquitto(Loop& loop, const ClientSetup& setup) : loop_(loop), client_(setup) {
    const auto tick = [](evutil_socket_t, short, void* client) {
      static_cast<MosquittoClient*>(client)->tick();
    };
    const timeval second{1, 0};
    tick_ = event_new(loop_.base(), -1, EV_PERSIST, tick, &client_);
    event_add(tick_, &second);
    watch();
  }
  ~Mosquitto() override {
    event_free(event_);
    event_free(tick_);
  }
  void run(Operations& all) override {
    client_.run(all);
    watch();
    loop_.run();
  }

 private:
  void watch() {
    const short interest = client_.wants_to_write() ? EV_READ | EV_WRITE : EV_READ;
    if (interest == interest_) return;
    interest_ = interest;
    if (event_ != nullptr) event_free(event_);
    const auto handle = [](evutil_socket_t, short events, void* data) {
      auto* const self = static_cast<Mosquitto*>(data);
      if (self->client_.act((events & EV_READ) != 0, (events & EV_WRITE) != 0))
        event_base_loopbreak(self->loop_.base());
      self->watch();
    };
    event_ = event_new(loop_.base(), client_.fd(), short(interest | EV_PERSIST), handle, this);
    event_add(event_, nullptr);
  }

  Loop& loop_;
  MosquittoClient client_;
  event* event_ = nullptr;
  event* tick_ = nullptr;
  short interest_ = 0;
};

}  // namespace

OpenClient mosquitto_on(Loop& loop) { return on<Mosquitto>(loop); }

}  // namespace bench::libevent
