// The adapters of Tambour, in tasks.
#include <tambour/tambour.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tambour/adapters/curl.h>
#include <tambour/adapters/hiredis.h>
#include <tambour/adapters/libpq.h>
#include <tambour/adapters/mariadb.h>
#include <tambour/adapters/mosquitto.h>

#include "clients/clients.h"

namespace {

using namespace tambour;

/// Runs a loop until the task that `begin` returns has ended. Connections stay watched.
template <class Begin>
void run_task(EventLoop& loop, Begin begin) {
  auto run = [&]() -> Task<> {
    co_await begin();
    loop.stop();
  };
  spawn(loop, run());
  loop.run();
}

/// Runs a number of equal tasks to their ends.
template <class Begin>
void run_tasks(EventLoop& loop, std::size_t count, Begin begin) {
  run_task(loop, [&]() -> Task<> {
    TaskScope scope(loop);
    for (std::size_t i = 0; i < count; ++i) scope.spawn(begin(i));
    static_cast<void>(co_await scope.join());
  });
}

class Redis final : public bench::ClientSession {
 public:
  Redis(EventLoop& loop, const bench::ClientSetup& setup)
      : loop_(loop), in_flight_(std::size_t(setup.in_flight)), redis_(loop) {
    run_task(loop, [&] { return connect(setup.server); });
  }
  void run(bench::Operations& all) override {
    run_tasks(loop_, in_flight_, [&](std::size_t) { return get_values(all); });
  }

 private:
  Task<> connect(std::string path) {
    const auto connected = co_await redis_.connect_unix(path.c_str());
    if (!connected) bench::fail("Redis: " + connected.error().message());
    const std::string value(bench::value_bytes, 'x');
    static_cast<void>(co_await redis_.command("SET", "key", value));
  }
  Task<> get_values(bench::Operations& all) {
    while (all.begin()) {
      const auto reply = co_await redis_.command("GET", "key");
      if (!reply || reply->text.size() != bench::value_bytes) bench::fail("Redis: no value");
      all.end();
    }
  }

  EventLoop& loop_;
  std::size_t in_flight_;
  adapters::RedisClient redis_;
};

class Postgresql final : public bench::ClientSession {
 public:
  Postgresql(EventLoop& loop, const bench::ClientSetup& setup) : loop_(loop) {
    run_tasks(loop, std::size_t(setup.in_flight),
              [&](std::size_t) { return connect(setup.server); });
  }
  void run(bench::Operations& all) override {
    run_tasks(loop_, connections_.size(),
              [&](std::size_t i) { return select_ones(connections_[i], all); });
  }

 private:
  Task<> connect(std::string settings) {
    auto connection = co_await adapters::PgConnection::connect(std::move(settings));
    if (!connection) bench::fail("PostgreSQL: " + connection.error().message);
    connections_.push_back(std::move(*connection));
  }
  static Task<> select_ones(adapters::PgConnection& connection, bench::Operations& all) {
    while (all.begin()) {
      const auto rows = co_await connection.query("select 1");
      if (!rows || *PQgetvalue(rows->get(), 0, 0) != '1') bench::fail("PostgreSQL: no row");
      all.end();
    }
  }

  EventLoop& loop_;
  std::vector<adapters::PgConnection> connections_;
};

class Mariadb final : public bench::ClientSession {
 public:
  Mariadb(EventLoop& loop, const bench::ClientSetup& setup) : loop_(loop) {
    run_tasks(loop, std::size_t(setup.in_flight),
              [&](std::size_t) { return connect(setup.server); });
  }
  void run(bench::Operations& all) override {
    run_tasks(loop_, connections_.size(),
              [&](std::size_t i) { return select_ones(connections_[i], all); });
  }

 private:
  Task<> connect(std::string socket) {
    adapters::MariadbSettings settings;
    settings.unix_path = std::move(socket);
    settings.user = "test";
    auto connection = co_await adapters::MariadbConnection::connect(std::move(settings));
    if (!connection) bench::fail("MariaDB: " + connection.error().message);
    connections_.push_back(std::move(*connection));
  }
  static Task<> select_ones(adapters::MariadbConnection& connection, bench::Operations& all) {
    while (all.begin()) {
      const auto rows = co_await connection.query("select 1");
      const MYSQL_ROW row = rows ? mysql_fetch_row(rows->get()) : nullptr;
      if (row == nullptr || *row[0] != '1') bench::fail("MariaDB: no row");
      all.end();
    }
  }

  EventLoop& loop_;
  std::vector<adapters::MariadbConnection> connections_;
};

class Mosquitto final : public bench::ClientSession {
 public:
  Mosquitto(EventLoop& loop, const bench::ClientSetup& setup)
      : loop_(loop), in_flight_(std::size_t(setup.in_flight)), mqtt_(loop, "client") {
    mosquitto_int_option(mqtt_.get(), MOSQ_OPT_SEND_MAXIMUM, 100);
    run_task(loop, [&] { return connect(setup.server); });
  }
  void run(bench::Operations& all) override {
    run_tasks(loop_, in_flight_, [&](std::size_t) { return publish(all); });
  }

 private:
  Task<> connect(std::string path) {
    const auto connected = co_await mqtt_.connect(path.c_str(), 0);
    if (!connected) bench::fail("MQTT: " + connected.error().message());
  }
  Task<> publish(bench::Operations& all) {
    static const std::string value(bench::value_bytes, 'x');
    while (all.begin()) {
      const auto published = co_await mqtt_.publish("topic", value, 1);
      if (!published) bench::fail("MQTT: not published");
      all.end();
    }
  }

  EventLoop& loop_;
  std::size_t in_flight_;
  adapters::MqttClient mqtt_;
};

class Curl final : public bench::ClientSession {
 public:
  Curl(EventLoop& loop, const bench::ClientSetup& setup)
      : loop_(loop), transfers_(loop), downloads_(std::size_t(setup.in_flight)) {
    for (Download& download : downloads_) {
      curl_easy_setopt(download.easy.get(), CURLOPT_URL, setup.server.c_str());
      curl_easy_setopt(download.easy.get(), CURLOPT_WRITEFUNCTION, &bench::count_bytes);
      curl_easy_setopt(download.easy.get(), CURLOPT_WRITEDATA, &download.received);
    }
  }
  void run(bench::Operations& all) override {
    run_tasks(loop_, downloads_.size(), [&](std::size_t i) { return perform(downloads_[i], all); });
  }

 private:
  struct Download {
    std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy{curl_easy_init(), &curl_easy_cleanup};
    std::size_t received = 0;
  };
  Task<> perform(Download& download, bench::Operations& all) {
    while (all.begin()) {
      download.received = 0;
      const CURLcode result = co_await transfers_.perform(download.easy.get());
      if (result != CURLE_OK || download.received != bench::value_bytes)
        bench::fail(std::string("libcurl: ") + curl_easy_strerror(result));
      all.end();
    }
  }

  EventLoop& loop_;
  adapters::CurlTransfers transfers_;
  std::vector<Download> downloads_;
};

template <class Session>
bench::OpenClient on(EventLoop& loop) {
  return
      [&loop](const bench::ClientSetup& setup) { return std::make_unique<Session>(loop, setup); };
}

}  // namespace

int main(int argc, char** argv) {
  mosquitto_lib_init();
  EventLoop loop;
  return bench::run_clients(argc, argv,
                            {"tambour", std::string(version), std::string(loop.backend().name)},
                            {{bench::Client::redis, on<Redis>(loop)},
                             {bench::Client::postgresql, on<Postgresql>(loop)},
                             {bench::Client::mariadb, on<Mariadb>(loop)},
                             {bench::Client::mosquitto, on<Mosquitto>(loop)},
                             {bench::Client::curl, on<Curl>(loop)}});
}
