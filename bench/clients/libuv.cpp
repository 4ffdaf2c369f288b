// libuv: hiredis with its own adapter, libpq and libcurl as their documentation shows.
#include <hiredis/adapters/libuv.h>

#include <curl/curl.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <uv.h>

#include "clients/clients.h"
#include "clients/libuv.h"

namespace {

using bench::ClientSession;
using bench::ClientSetup;
using bench::fail;
using bench::Operations;
using bench::libuv::note_end;
using bench::libuv::on;

class Redis final : public ClientSession {
 public:
  Redis(uv_loop_t* loop, const ClientSetup& setup)
      : loop_(loop),
        in_flight_(setup.in_flight),
        context_(redisAsyncConnectUnix(setup.server.c_str())) {
    if (context_->err != 0) fail(std::string("Redis: ") + context_->errstr);
    context_->data = this;
    redisLibuvAttach(context_, loop_);
    const std::string value(bench::value_bytes, 'x');
    redisAsyncCommand(context_, nullptr, nullptr, "SET key %s", value.c_str());
  }
  ~Redis() override {
    redisAsyncFree(context_);
    uv_run(loop_, UV_RUN_DEFAULT);
  }
  void run(Operations& all) override {
    all_ = &all;
    for (int i = 0; i < in_flight_; ++i) get();
    uv_run(loop_, UV_RUN_DEFAULT);
  }

 private:
  void get() {
    if (!all_->begin()) return;
    std::array<const char*, 2> words{"GET", "key"};
    const std::array<std::size_t, 2> sizes{3, 3};
    redisAsyncCommandArgv(context_, &replied, nullptr, 2, words.data(), sizes.data());
  }
  static void replied(redisAsyncContext* context, void* reply, void* /*data*/) {
    auto* const self = static_cast<Redis*>(context->data);
    const auto* const value = static_cast<redisReply*>(reply);
    if (value == nullptr) {
      if (!self->all_->is_finished()) fail("Redis: the connection was lost");
      return;
    }
    if (value->len != bench::value_bytes) fail("Redis: no value");
    note_end(*self->all_, self->loop_);
    self->get();
  }

  uv_loop_t* loop_;
  int in_flight_;
  redisAsyncContext* context_;
  Operations* all_ = nullptr;
};

/// A connection, with one query at a time. `connecting`: how many of all have not connected.
/// Deletes itself when its handle is closed.
class PgClient {
 public:
  PgClient(uv_loop_t* loop, const std::string& settings, int& connecting)
      : loop_(loop), connecting_(connecting), connection_(PQconnectStart(settings.c_str())) {
    uv_poll_init(loop_, &poll_, PQsocket(connection_));
    poll_.data = this;
    connect(PGRES_POLLING_WRITING);
  }
  PgClient(const PgClient&) = delete;
  PgClient& operator=(const PgClient&) = delete;
  void run(Operations& all) {
    all_ = &all;
    query();
  }
  void close() {
    uv_close(reinterpret_cast<uv_handle_t*>(&poll_),
             [](uv_handle_t* handle) { delete static_cast<PgClient*>(handle->data); });
  }

 private:
  ~PgClient() { PQfinish(connection_); }

  void watch(int interest) {
    uv_poll_start(&poll_, interest, [](uv_poll_t* handle, int /*status*/, int /*events*/) {
      static_cast<PgClient*>(handle->data)->act();
    });
  }
  /// The socket stays the same: the server is named by a path.
  void connect(PostgresPollingStatusType status) {
    if (status == PGRES_POLLING_FAILED) fail(PQerrorMessage(connection_));
    if (status == PGRES_POLLING_READING) return watch(UV_READABLE);
    if (status == PGRES_POLLING_WRITING) return watch(UV_WRITABLE);
    is_connected_ = true;
    PQsetnonblocking(connection_, 1);
    watch(UV_READABLE);
    if (--connecting_ == 0) uv_stop(loop_);
  }
  void query() {
    if (!all_->begin()) return;
    // A text of a few bytes is sent at once.
    if (PQsendQuery(connection_, "select 1") == 0 || PQflush(connection_) != 0)
      fail(PQerrorMessage(connection_));
  }
  void act() {
    if (!is_connected_) return connect(PQconnectPoll(connection_));
    if (PQconsumeInput(connection_) == 0) fail(PQerrorMessage(connection_));
    while (PQisBusy(connection_) == 0) {
      PGresult* const rows = PQgetResult(connection_);
      if (rows == nullptr) {
        note_end(*all_, loop_);
        return query();
      }
      if (PQresultStatus(rows) != PGRES_TUPLES_OK || *PQgetvalue(rows, 0, 0) != '1')
        fail("PostgreSQL: no row");
      PQclear(rows);
    }
  }

  uv_loop_t* loop_;
  int& connecting_;
  PGconn* connection_;
  uv_poll_t poll_{};
  bool is_connected_ = false;
  Operations* all_ = nullptr;
};

class Postgresql final : public ClientSession {
 public:
  Postgresql(uv_loop_t* loop, const ClientSetup& setup)
      : loop_(loop), connecting_(setup.in_flight) {
    for (int i = 0; i < setup.in_flight; ++i)
      clients_.push_back(new PgClient(loop, setup.server, connecting_));
    uv_run(loop_, UV_RUN_DEFAULT);
  }
  ~Postgresql() override {
    for (PgClient* const client : clients_) client->close();
    uv_run(loop_, UV_RUN_DEFAULT);
  }
  void run(Operations& all) override {
    for (PgClient* const client : clients_) client->run(all);
    uv_run(loop_, UV_RUN_DEFAULT);
  }

 private:
  uv_loop_t* loop_;
  int connecting_;
  std::vector<PgClient*> clients_;
};

/// As multi-uv.c, an example of libcurl.
class Curl final : public ClientSession {
 public:
  Curl(uv_loop_t* loop, const ClientSetup& setup) : loop_(loop) {
    uv_timer_init(loop_, &timer_);
    timer_.data = this;
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &socket_changed);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &timeout_changed);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    downloads_.resize(std::size_t(setup.in_flight));
    for (Download& download : downloads_) {
      curl_easy_setopt(download.easy, CURLOPT_URL, setup.server.c_str());
      curl_easy_setopt(download.easy, CURLOPT_WRITEFUNCTION, &bench::count_bytes);
      curl_easy_setopt(download.easy, CURLOPT_WRITEDATA, &download.received);
      curl_easy_setopt(download.easy, CURLOPT_PRIVATE, &download);
    }
  }
  ~Curl() override {
    for (Download& download : downloads_) {
      curl_multi_remove_handle(multi_, download.easy);
      curl_easy_cleanup(download.easy);
    }
    curl_multi_cleanup(multi_);
    uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
    uv_run(loop_, UV_RUN_DEFAULT);
  }
  void run(Operations& all) override {
    all_ = &all;
    for (Download& download : downloads_) start(download);
    uv_run(loop_, UV_RUN_DEFAULT);
  }

 private:
  struct Download {
    CURL* easy = curl_easy_init();
    std::size_t received = 0;
  };
  struct Socket {
    uv_poll_t poll{};
    Curl* curl = nullptr;
    curl_socket_t fd = 0;
  };

  void start(Download& download) {
    if (!all_->begin()) return;
    download.received = 0;
    curl_multi_add_handle(multi_, download.easy);
  }
  static int socket_changed(CURL* /*easy*/, curl_socket_t fd, int action, void* data,
                            void* socket_data) {
    auto* const self = static_cast<Curl*>(data);
    auto* watched = static_cast<Socket*>(socket_data);
    if (action == CURL_POLL_REMOVE) {
      uv_poll_stop(&watched->poll);
      uv_close(reinterpret_cast<uv_handle_t*>(&watched->poll),
               [](uv_handle_t* handle) { delete static_cast<Socket*>(handle->data); });
      curl_multi_assign(self->multi_, fd, nullptr);
      return 0;
    }
    if (watched == nullptr) {
      watched = new Socket;
      watched->curl = self;
      watched->fd = fd;
      uv_poll_init_socket(self->loop_, &watched->poll, fd);
      watched->poll.data = watched;
      curl_multi_assign(self->multi_, fd, watched);
    }
    const int interest = ((action & CURL_POLL_IN) != 0 ? UV_READABLE : 0) |
                         ((action & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0);
    uv_poll_start(&watched->poll, interest, &ready);
    return 0;
  }
  static int timeout_changed(CURLM* /*multi*/, long milliseconds, void* data) {
    auto* const self = static_cast<Curl*>(data);
    if (milliseconds < 0)
      uv_timer_stop(&self->timer_);
    else
      uv_timer_start(&self->timer_, &expired, std::uint64_t(milliseconds), 0);
    return 0;
  }
  static void ready(uv_poll_t* handle, int /*status*/, int events) {
    auto* const watched = static_cast<Socket*>(handle->data);
    watched->curl->act(watched->fd, ((events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0) |
                                        ((events & UV_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0));
  }
  static void expired(uv_timer_t* timer) {
    static_cast<Curl*>(timer->data)->act(CURL_SOCKET_TIMEOUT, 0);
  }
  void act(curl_socket_t fd, int events) {
    int count = 0;
    curl_multi_socket_action(multi_, fd, events, &count);
    while (const CURLMsg* const message = curl_multi_info_read(multi_, &count)) {
      Download* download = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &download);
      if (message->data.result != CURLE_OK || download->received != bench::value_bytes)
        fail(std::string("libcurl: ") + curl_easy_strerror(message->data.result));
      curl_multi_remove_handle(multi_, download->easy);
      note_end(*all_, loop_);
      start(*download);
    }
  }

  uv_loop_t* loop_;
  CURLM* multi_ = curl_multi_init();
  uv_timer_t timer_{};
  std::vector<Download> downloads_;
  Operations* all_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  uv_loop_t* const loop = uv_default_loop();
  return bench::run_clients(argc, argv, {"libuv", uv_version_string(), "epoll"},
                            {{bench::Client::redis, on<Redis>(loop)},
                             {bench::Client::postgresql, on<Postgresql>(loop)},
                             {bench::Client::mariadb, bench::libuv::mariadb_on(loop)},
                             {bench::Client::mosquitto, bench::libuv::mosquitto_on(loop)},
                             {bench::Client::curl, on<Curl>(loop)}});
}
