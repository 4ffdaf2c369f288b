// libuv: libmariadb with a handle for each connection.
#include <memory>
#include <vector>

#include "clients/libuv.h"
#include "clients/mariadb_query.h"

namespace bench::libuv {
namespace {

/// A connection, with one query at a time. Deletes itself when its handle is closed.
class MariadbClient {
 public:
  MariadbClient(uv_loop_t* loop, const std::string& socket) : loop_(loop), query_(socket) {
    uv_poll_init(loop_, &poll_, query_.fd());
    poll_.data = this;
    watch(UV_READABLE);
  }
  MariadbClient(const MariadbClient&) = delete;
  MariadbClient& operator=(const MariadbClient&) = delete;
  void run(Operations& all) {
    all_ = &all;
    query();
  }
  void close() {
    uv_close(reinterpret_cast<uv_handle_t*>(&poll_),
             [](uv_handle_t* handle) { delete static_cast<MariadbClient*>(handle->data); });
  }

 private:
  ~MariadbClient() = default;

  void watch(int interest) {
    if (interest == interest_) return;
    interest_ = interest;
    uv_poll_start(&poll_, interest, [](uv_poll_t* handle, int /*status*/, int events) {
      auto* const self = static_cast<MariadbClient*>(handle->data);
      self->act(self->query_.resume(((events & UV_READABLE) != 0 ? MYSQL_WAIT_READ : 0) |
                                    ((events & UV_WRITABLE) != 0 ? MYSQL_WAIT_WRITE : 0)));
    });
  }
  void query() {
    if (all_->begin()) act(query_.start());
  }
  void act(int status) {
    if (status == 0) {
      note_end(*all_, loop_);
      return query();
    }
    watch(((status & MYSQL_WAIT_READ) != 0 ? UV_READABLE : 0) |
          ((status & MYSQL_WAIT_WRITE) != 0 ? UV_WRITABLE : 0));
  }

  uv_loop_t* loop_;
  MariadbQuery query_;
  uv_poll_t poll_{};
  int interest_ = 0;
  Operations* all_ = nullptr;
};

class Mariadb final : public ClientSession {
 public:
  Mariadb(uv_loop_t* loop, const ClientSetup& setup) : loop_(loop) {
    for (int i = 0; i < setup.in_flight; ++i)
      clients_.push_back(new MariadbClient(loop, setup.server));
  }
  ~Mariadb() override {
    for (MariadbClient* const client : clients_) client->close();
    uv_run(loop_, UV_RUN_DEFAULT);
  }
  void run(Operations& all) override {
    for (MariadbClient* const client : clients_) client->run(all);
    uv_run(loop_, UV_RUN_DEFAULT);
  }

 private:
  uv_loop_t* loop_;
  std::vector<MariadbClient*> clients_;
};

}  // namespace

OpenClient mariadb_on(uv_loop_t* loop) { return on<Mariadb>(loop); }

}  // namespace bench::libuv
