// libevent: hiredis with its own adapter, libpq and libcurl as their documentation shows. Linked
// with the drop-in too.
#include <hiredis/adapters/libevent.h>

#include <curl/curl.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <event2/event.h>

#include "clients/clients.h"
#include "clients/libevent.h"

namespace {

using bench::ClientSession;
using bench::ClientSetup;
using bench::fail;
using bench::Operations;
using bench::libevent::Loop;
using bench::libevent::note_end;
using bench::libevent::on;

class Redis final : public ClientSession {
 public:
  Redis(Loop& loop, const ClientSetup& setup)
      : loop_(loop),
        in_flight_(setup.in_flight),
        context_(redisAsyncConnectUnix(setup.server.c_str())) {
    if (context_->err != 0) fail(std::string("Redis: ") + context_->errstr);
    context_->data = this;
    redisLibeventAttach(context_, loop_.base());
    const std::string value(bench::value_bytes, 'x');
    redisAsyncCommand(context_, nullptr, nullptr, "SET key %s", value.c_str());
  }
  ~Redis() override { redisAsyncFree(context_); }
  void run(Operations& all) override {
    all_ = &all;
    for (int i = 0; i < in_flight_; ++i) get();
    loop_.run();
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
    note_end(*self->all_, self->loop_.base());
    self->get();
  }

  Loop& loop_;
  int in_flight_;
  redisAsyncContext* context_;
  Operations* all_ = nullptr;
};

/// A connection, with one query at a time. `connecting`: how many of all have not connected.
class PgClient {
 public:
  PgClient(event_base* base, const std::string& settings, int& connecting)
      : base_(base), connecting_(connecting), connection_(PQconnectStart(settings.c_str())) {
    connect(PGRES_POLLING_WRITING);
  }
  PgClient(const PgClient&) = delete;
  PgClient& operator=(const PgClient&) = delete;
  ~PgClient() {
    if (event_ != nullptr) event_free(event_);
    PQfinish(connection_);
  }
  void run(Operations& all) {
    all_ = &all;
    query();
  }

 private:
  void watch(short interest) {
    if (event_ != nullptr) event_free(event_);
    const auto handle = [](evutil_socket_t, short, void* self) {
      static_cast<PgClient*>(self)->act();
    };
    event_ = event_new(base_, PQsocket(connection_), interest, handle, this);
    event_add(event_, nullptr);
  }
  void connect(PostgresPollingStatusType status) {
    if (status == PGRES_POLLING_FAILED) fail(PQerrorMessage(connection_));
    if (status == PGRES_POLLING_READING) return watch(EV_READ);
    if (status == PGRES_POLLING_WRITING) return watch(EV_WRITE);
    is_connected_ = true;
    PQsetnonblocking(connection_, 1);
    watch(EV_READ | EV_PERSIST);
    if (--connecting_ == 0) event_base_loopbreak(base_);
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
        note_end(*all_, base_);
        return query();
      }
      if (PQresultStatus(rows) != PGRES_TUPLES_OK || *PQgetvalue(rows, 0, 0) != '1')
        fail("PostgreSQL: no row");
      PQclear(rows);
    }
  }

  event_base* base_;
  int& connecting_;
  PGconn* connection_;
  event* event_ = nullptr;
  bool is_connected_ = false;
  Operations* all_ = nullptr;
};

class Postgresql final : public ClientSession {
 public:
  Postgresql(Loop& loop, const ClientSetup& setup) : loop_(loop), connecting_(setup.in_flight) {
    for (int i = 0; i < setup.in_flight; ++i)
      clients_.push_back(std::make_unique<PgClient>(loop.base(), setup.server, connecting_));
    loop_.run();
  }
  void run(Operations& all) override {
    for (const auto& client : clients_) client->run(all);
    loop_.run();
  }

 private:
  Loop& loop_;
  int connecting_;
  std::vector<std::unique_ptr<PgClient>> clients_;
};

/// As hiperfifo.c, an example of libcurl.
class Curl final : public ClientSession {
 public:
  Curl(Loop& loop, const ClientSetup& setup)
      : loop_(loop), base_(loop.base()), timer_(evtimer_new(base_, &expired, this)) {
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
    event_free(timer_);
  }
  void run(Operations& all) override {
    all_ = &all;
    for (Download& download : downloads_) start(download);
    loop_.run();
  }

 private:
  struct Download {
    CURL* easy = curl_easy_init();
    std::size_t received = 0;
  };

  void start(Download& download) {
    if (!all_->begin()) return;
    download.received = 0;
    curl_multi_add_handle(multi_, download.easy);
  }
  static int socket_changed(CURL* /*easy*/, curl_socket_t fd, int action, void* data,
                            void* socket_data) {
    auto* const self = static_cast<Curl*>(data);
    auto* watched = static_cast<event*>(socket_data);
    if (action == CURL_POLL_REMOVE) {
      event_free(watched);
      return 0;
    }
    const short interest = short(((action & CURL_POLL_IN) != 0 ? EV_READ : 0) |
                                 ((action & CURL_POLL_OUT) != 0 ? EV_WRITE : 0) | EV_PERSIST);
    if (watched == nullptr) {
      watched = event_new(self->base_, fd, interest, &ready, self);
      curl_multi_assign(self->multi_, fd, watched);
    } else {
      event_del(watched);
      event_assign(watched, self->base_, fd, interest, &ready, self);
    }
    event_add(watched, nullptr);
    return 0;
  }
  static int timeout_changed(CURLM* /*multi*/, long milliseconds, void* data) {
    auto* const self = static_cast<Curl*>(data);
    const timeval limit{milliseconds / 1000, milliseconds % 1000 * 1000};
    if (milliseconds < 0)
      evtimer_del(self->timer_);
    else
      evtimer_add(self->timer_, &limit);
    return 0;
  }
  static void ready(evutil_socket_t fd, short events, void* data) {
    static_cast<Curl*>(data)->act(fd, ((events & EV_READ) != 0 ? CURL_CSELECT_IN : 0) |
                                          ((events & EV_WRITE) != 0 ? CURL_CSELECT_OUT : 0));
  }
  static void expired(evutil_socket_t /*fd*/, short /*events*/, void* data) {
    static_cast<Curl*>(data)->act(CURL_SOCKET_TIMEOUT, 0);
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
      note_end(*all_, base_);
      start(*download);
    }
  }

  Loop& loop_;
  event_base* base_;
  CURLM* multi_ = curl_multi_init();
  event* timer_;
  std::vector<Download> downloads_;
  Operations* all_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  Loop loop;
  return bench::run_clients(argc, argv, {bench::libevent::name, event_get_version(), "epoll"},
                            {{bench::Client::redis, on<Redis>(loop)},
                             {bench::Client::postgresql, on<Postgresql>(loop)},
                             {bench::Client::mariadb, bench::libevent::mariadb_on(loop)},
                             {bench::Client::mosquitto, bench::libevent::mosquitto_on(loop)},
                             {bench::Client::curl, on<Curl>(loop)}});
}
