// The adapters of Tambour, in tasks.
#include <tambour/tambour.h>

#include <cstddef>
#include <memory>
#include <string>

#include <tambour/adapters/curl.h>
#include <tambour/adapters/hiredis.h>
#include <tambour/adapters/libpq.h>

#include "clients/clients.h"

namespace {

using namespace tambour;

Task<> get_values(adapters::RedisClient& redis, bench::Operations& all) {
  while (all.begin()) {
    const auto reply = co_await redis.command("GET", "key");
    if (!reply || reply->text.size() != bench::value_bytes) bench::fail("Redis: no value");
    all.end();
  }
}

Task<> run_redis(EventLoop& loop, bench::Operations& all) {
  adapters::RedisClient redis(loop);
  const auto connected = co_await redis.connect_unix(all.server().c_str());
  if (!connected) bench::fail("Redis: " + connected.error().message());
  const std::string value(bench::value_bytes, 'x');
  static_cast<void>(co_await redis.command("SET", "key", value));
  TaskScope scope(loop);
  for (int i = 0; i < all.in_flight(); ++i) scope.spawn(get_values(redis, all));
  static_cast<void>(co_await scope.join());
}

Task<> select_ones(bench::Operations& all) {
  auto connection = co_await adapters::PgConnection::connect(all.server());
  if (!connection) bench::fail("PostgreSQL: " + connection.error().message);
  while (all.begin()) {
    const auto rows = co_await connection->query("select 1");
    if (!rows || *PQgetvalue(rows->get(), 0, 0) != '1') bench::fail("PostgreSQL: no row");
    all.end();
  }
}

Task<> run_postgresql(EventLoop& loop, bench::Operations& all) {
  TaskScope scope(loop);
  for (int i = 0; i < all.in_flight(); ++i) scope.spawn(select_ones(all));
  static_cast<void>(co_await scope.join());
}

Task<> download(adapters::CurlTransfers& transfers, bench::Operations& all) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  std::size_t received = 0;
  curl_easy_setopt(easy.get(), CURLOPT_URL, all.server().c_str());
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &bench::count_bytes);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &received);
  while (all.begin()) {
    received = 0;
    const CURLcode result = co_await transfers.perform(easy.get());
    if (result != CURLE_OK || received != bench::value_bytes)
      bench::fail(std::string("libcurl: ") + curl_easy_strerror(result));
    all.end();
  }
}

Task<> run_curl(EventLoop& loop, bench::Operations& all) {
  adapters::CurlTransfers transfers(loop);
  TaskScope scope(loop);
  for (int i = 0; i < all.in_flight(); ++i) scope.spawn(download(transfers, all));
  static_cast<void>(co_await scope.join());
}

template <Task<> (*run)(EventLoop&, bench::Operations&)>
bench::RunClient in_loop(EventLoop& loop) {
  return [&loop](bench::Operations& all) {
    spawn(loop, run(loop, all));
    loop.run();
  };
}

}  // namespace

int main(int argc, char** argv) {
  EventLoop loop;
  return bench::run_clients(argc, argv,
                            {"tambour", std::string(version), std::string(loop.backend().name)},
                            {{bench::Client::redis, in_loop<run_redis>(loop)},
                             {bench::Client::postgresql, in_loop<run_postgresql>(loop)},
                             {bench::Client::curl, in_loop<run_curl>(loop)}});
}
