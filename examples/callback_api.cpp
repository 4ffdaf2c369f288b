// A callback API as an awaitable: from_callback() passes a Completion to the callback, which may
// complete it on any thread, and the task can be given a time limit. docs/awaitables.md quotes this
// program.
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// A library with callbacks, which it invokes on a thread of its own. A query takes as many
/// milliseconds as its text says.
class Database {
 public:
  using Answer = std::function<void(int error, std::string row)>;

  ~Database() {
    for (auto& [id, query] : queries_) cancel(id);
    for (auto& [id, query] : queries_) query.thread.join();
  }

  int query(const std::string& text, Answer answer) {
    const int id = ++last_id_;
    Query& query = queries_[id];
    query.thread = std::thread([this, &query, text, answer = std::move(answer)] {
      std::unique_lock lock(mutex_);
      const auto time = std::chrono::milliseconds(std::stoi(text));
      const bool stopped = cancelled_.wait_for(lock, time, [&] { return query.is_cancelled; });
      lock.unlock();
      answer(stopped ? ECANCELED : 0, "row of " + text);
    });
    return id;
  }

  /// The callback is invoked with ECANCELED soon, unless it was invoked already.
  void cancel(int id) {
    const std::lock_guard lock(mutex_);
    queries_.at(id).is_cancelled = true;
    cancelled_.notify_all();
  }

 private:
  struct Query {
    std::thread thread;
    bool is_cancelled = false;
  };
  std::mutex mutex_;
  std::condition_variable cancelled_;
  std::map<int, Query> queries_;
  int last_id_ = 0;
};

Task<Result<std::string>> query(Database& database, std::string text) {
  auto start = [&](Completion<std::string> done) {
    auto id = std::make_shared<int>(0);
    done.on_stop([&database, id](const Completion<std::string>&) { database.cancel(*id); });
    *id = database.query(text, [done](int error, std::string row) {
      if (error != 0) {
        done.fail(system_error(error));
      } else {
        done.complete(std::move(row));
      }
    });
  };
  co_return co_await from_callback<std::string>(start);
}

Task<int> run() {
  Database database;
  const auto [first, second] = co_await when_all(query(database, "1"), query(database, "2"));
  std::printf("%s, %s\n", first->c_str(), second->c_str());
  const auto limited = co_await timeout(10ms, query(database, "60000"));
  std::printf("%s\n", limited.error().message().c_str());
  co_return first == "row of 1" && limited.error() == system_error(ETIMEDOUT) ? 0 : 1;
}

int main() { return block_on(run()); }
