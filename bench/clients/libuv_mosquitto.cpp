// libuv: libmosquitto with a handle for its socket, and a timer for its keep-alive messages.
#include <memory>

#include "clients/libuv.h"
#include "clients/mosquitto_client.h"

namespace bench::libuv {
namespace {

class Mosquitto final : public ClientSession {
 public:
  Mosquitto(uv_loop_t* loop, const ClientSetup& setup) : loop_(loop), client_(setup) {
    uv_poll_init(loop_, &poll_, client_.fd());
    poll_.data = this;
    uv_timer_init(loop_, &tick_);
    tick_.data = &client_;
    uv_timer_start(
        &tick_, [](uv_timer_t* timer) { static_cast<MosquittoClient*>(timer->data)->tick(); }, 1000,
        1000);
    watch();
  }
  ~Mosquitto() override {
    uv_close(reinterpret_cast<uv_handle_t*>(&poll_), nullptr);
    uv_close(reinterpret_cast<uv_handle_t*>(&tick_), nullptr);
    uv_run(loop_, UV_RUN_DEFAULT);
  }
  void run(Operations& all) override {
    client_.run(all);
    watch();
    uv_run(loop_, UV_RUN_DEFAULT);
  }

 private:
  void watch() {
    const int interest = client_.wants_to_write() ? UV_READABLE | UV_WRITABLE : UV_READABLE;
    if (interest == interest_) return;
    interest_ = interest;
    uv_poll_start(&poll_, interest, [](uv_poll_t* handle, int /*status*/, int events) {
      auto* const self = static_cast<Mosquitto*>(handle->data);
      if (self->client_.act((events & UV_READABLE) != 0, (events & UV_WRITABLE) != 0))
        uv_stop(self->loop_);
      self->watch();
    });
  }

  uv_loop_t* loop_;
  MosquittoClient client_;
  uv_poll_t poll_{};
  uv_timer_t tick_{};
  int interest_ = 0;
};

}  // namespace

OpenClient mosquitto_on(uv_loop_t* loop) { return on<Mosquitto>(loop); }

}  // namespace bench::libuv
