// libcurl's multi interface on a loop: fetches URLs at the same time.
//
//   build/examples/curl http://127.0.0.1/a http://127.0.0.1/b
//
// libcurl says which sockets it waits for and when its next timeout is; FdWatchers and a Timer tell
// it what has happened. See curl_multi_socket_action(3).
#include <curl/curl.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

/// Transfers on one loop. Thread: the loop's.
class Transfers {
 public:
  explicit Transfers(EventLoop& loop)
      : loop_(loop), timer_(loop, [this] { act(CURL_SOCKET_TIMEOUT, 0); }) {
    curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, &watch_socket);
    curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, &set_timeout);
    curl_multi_setopt(multi_.get(), CURLMOPT_TIMERDATA, this);
  }
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// Returns when the transfer has ended. A stop request ends it: CURLE_ABORTED_BY_CALLBACK.
  Task<CURLcode> perform(CURL* easy) {
    Transfer transfer(loop_, multi_.get(), easy);
    static_cast<void>(co_await transfer.done.wait());
    co_return transfer.result;
  }

 private:
  /// In the frame of a task: it is removed also if the task is destroyed.
  struct Transfer {
    Transfer(EventLoop& loop, CURLM* all, CURL* one) : done(loop), multi(all), easy(one) {
      curl_easy_setopt(easy, CURLOPT_PRIVATE, this);
      curl_multi_add_handle(multi, easy);
    }
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;
    ~Transfer() { curl_multi_remove_handle(multi, easy); }

    TaskEvent done;
    CURLM* multi;
    CURL* easy;
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
  };

  static int watch_socket(CURL* /*easy*/, curl_socket_t fd, int action, void* self,
                          void* /*data*/) {
    static_cast<Transfers*>(self)->watch(fd, action);
    return 0;
  }
  static int set_timeout(CURLM* /*multi*/, long milliseconds, void* self) {
    Timer& timer = static_cast<Transfers*>(self)->timer_;
    if (milliseconds < 0)
      timer.stop();
    else
      timer.start(std::chrono::milliseconds(milliseconds));
    return 0;
  }

  void watch(curl_socket_t fd, int action) {
    // A new watcher each time: the number of a closed socket may be used again. This may be inside
    // the callback of the watcher that it destroys.
    watchers_.erase(fd);
    if (action == CURL_POLL_REMOVE) return;
    Events interest = (action & CURL_POLL_IN) != 0 ? Events::read : Events::write;
    if (action == CURL_POLL_INOUT) interest = Events::read | Events::write;
    FdWatcher watcher(loop_, fd, interest, [this, fd](Events events) {
      act(fd, (has(events, Events::read) ? CURL_CSELECT_IN : 0) |
                  (has(events, Events::write) ? CURL_CSELECT_OUT : 0) |
                  (has(events, Events::error) ? CURL_CSELECT_ERR : 0));
    });
    static_cast<void>(watcher.start());
    watchers_.emplace(fd, std::move(watcher));
  }

  void act(curl_socket_t fd, int events) {
    int running = 0;
    curl_multi_socket_action(multi_.get(), fd, events, &running);
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
      Transfer* transfer = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
      transfer->result = message->data.result;
      transfer->done.set();
    }
  }

  EventLoop& loop_;
  Timer timer_;
  std::map<curl_socket_t, FdWatcher> watchers_;
  // The last member: its destructor still calls watch_socket().
  std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi_{curl_multi_init(),
                                                               &curl_multi_cleanup};
};

std::size_t append(const char* bytes, std::size_t size, std::size_t count, std::string* body) {
  body->append(bytes, size * count);
  return size * count;
}

Task<> fetch(Transfers& transfers, const char* url) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  std::string body;
  curl_easy_setopt(easy.get(), CURLOPT_URL, url);
  curl_easy_setopt(easy.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &append);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &body);
  const CURLcode result = co_await transfers.perform(easy.get());
  if (result == CURLE_OK)
    std::printf("%s: %s", url, body.c_str());
  else
    std::printf("%s: %s\n", url, curl_easy_strerror(result));
}

int main(int argc, char** argv) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  EventLoop loop;
  Transfers transfers(loop);
  TaskScope scope(loop);
  for (int i = 1; i < argc; ++i) scope.spawn(fetch(transfers, argv[i]));
  loop.run();
}
