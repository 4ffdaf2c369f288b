// A log file that never blocks a loop: a thread writes and rotates it. Records that do not fit into
// the buffer, because the disk is slow, are dropped and counted.
//
//   file_log [FILE]             without an argument, the file is removed at the end
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <tambour/tambour.h>

using namespace std::chrono_literals;
using namespace tambour;

namespace {

class FileLog final : public LogSink {
 public:
  FileLog(std::filesystem::path path, std::uintmax_t bytes_max, int files_max)
      : path_(std::move(path)), bytes_max_(bytes_max), files_max_(files_max) {
    buffer_.reserve(buffer_bytes_max);
  }
  ~FileLog() {
    writer_.request_stop();
    more_.notify_one();
  }

  void write(const LogRecord& record) noexcept override {
    try {
      std::string line = time_stamp();
      append_log_line(line, record);
      line += '\n';
      const std::lock_guard lock(mutex_);  // The writer holds it only to swap the buffers.
      if (buffer_.size() + line.size() <= buffer_bytes_max) {
        buffer_ += line;
      } else {
        ++lost_;
      }
    } catch (const std::exception&) {  // No memory: this record is lost.
      return;
    }
    more_.notify_one();
  }

 private:
  static constexpr std::size_t buffer_bytes_max = 1 << 20;

  static std::string time_stamp() {
    const std::int64_t now =
        std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())
            .time_since_epoch()
            .count();
    return std::to_string(now) + ' ';
  }

  void run(const std::stop_token& stop) {
    std::string lines;
    for (bool stops = false; !stops;) {
      std::unique_lock lock(mutex_);
      more_.wait_for(lock, 1s, [&] { return !buffer_.empty() || stop.stop_requested(); });
      stops = stop.stop_requested();
      lines.clear();
      lines.swap(buffer_);
      if (lost_ > 0) lines += "lost=" + std::to_string(std::exchange(lost_, 0)) + '\n';
      lock.unlock();
      rotate(lines.size());
      std::ofstream(path_, std::ios::app) << lines;
    }
  }

  /// log becomes log.1, log.1 becomes log.2, and so on.
  void rotate(std::size_t bytes) {
    std::error_code ignored;
    const std::uintmax_t size = std::filesystem::file_size(path_, ignored);
    if (ignored || size + bytes <= bytes_max_) return;
    const auto name = [&](int i) { return path_.string() + '.' + std::to_string(i); };
    for (int i = files_max_ - 1; i > 1; --i) std::filesystem::rename(name(i - 1), name(i), ignored);
    std::filesystem::rename(path_, name(1), ignored);
  }

  std::filesystem::path path_;
  std::uintmax_t bytes_max_;
  int files_max_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::string buffer_;
  std::uint64_t lost_ = 0;
  std::jthread writer_{[this](const std::stop_token& stop) { run(stop); }};
};

}  // namespace

Task<> fail(TcpStream /*peer*/) {
  throw std::runtime_error("a bug");
  co_return;
}

Task<> use(TcpServer& server) {
  auto stream = co_await TcpStream::connect(server.endpoint());
  Buffer answer;
  if (stream) static_cast<void>(co_await stream->read(answer));
  co_await server.shut_down(1s);
}

int main(int argc, char** argv) {
  const std::filesystem::path path = argc > 1 ? argv[1] : "file_log.log";
  {
    FileLog log(path, 10'000'000, 5);
    set_log_sink(&log);
    EventLoop loop;
    TcpServer server = or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0)));
    server.serve(fail);
    block_on(loop, use(server));
    set_log_sink(nullptr);
  }
  std::cout << std::ifstream(path).rdbuf();
  if (argc < 2) std::filesystem::remove(path);
}
