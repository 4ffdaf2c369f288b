// Profiles: looks for the functions of gperftools at run time, so that neither the library nor its
// programs depend on it. gperftools/profiler.h and gperftools/heap-profiler.h declare them.
#include "inspector/profiles.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <tambour/http/status.h>
#include <tambour/task/sleep.h>
#include <tambour/threads/worker_pool.h>

#include "inspector/json.h"
#include "inspector/responses.h"

namespace tambour::inspector {
namespace {

using http::Request;
using http::Response;

constexpr std::uint32_t seconds_max = 300;
constexpr std::string_view cpu_hint =
    "the process has no CPU profiler: install libprofiler.so.0 of gperftools (Debian: "
    "libgoogle-perftools4), or link the program to it";
constexpr std::string_view heap_hint =
    "the allocator of the process records no profiles: start it with "
    "LD_PRELOAD=libtcmalloc.so.4 (Debian: libgoogle-perftools4), or link it to -ltcmalloc";

template <class Function>
Function* find(void* library, const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

struct CpuProfiler {
  int (*start)(const char* file) = nullptr;
  void (*stop)() = nullptr;
};

/// Empty if there is none. Loading it starts nothing.
std::optional<CpuProfiler> find_cpu_profiler() noexcept {
  const auto find_in = [](void* library) -> std::optional<CpuProfiler> {
    const CpuProfiler found{.start = find<int(const char*)>(library, "ProfilerStart"),
                            .stop = find<void()>(library, "ProfilerStop")};
    if (found.start == nullptr || found.stop == nullptr) return std::nullopt;
    return found;
  };
  if (auto found = find_in(RTLD_DEFAULT)) return found;
  // It stays loaded: signals of its timer may be on their way.
  static void* const library = ::dlopen("libprofiler.so.0", RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? find_in(library) : std::nullopt;
}

struct HeapProfiler {
  void (*start)(const char* prefix) = nullptr;
  int (*is_running)() = nullptr;
  char* (*get)() = nullptr;
  void (*stop)() = nullptr;
};

/// Empty unless the allocator of the process is tcmalloc.
std::optional<HeapProfiler> find_heap_profiler() noexcept {
  const HeapProfiler found{.start = find<void(const char*)>(RTLD_DEFAULT, "HeapProfilerStart"),
                           .is_running = find<int()>(RTLD_DEFAULT, "IsHeapProfilerRunning"),
                           .get = find<char*()>(RTLD_DEFAULT, "GetHeapProfile"),
                           .stop = find<void()>(RTLD_DEFAULT, "HeapProfilerStop")};
  if (found.start == nullptr || found.is_running == nullptr || found.get == nullptr ||
      found.stop == nullptr)
    return std::nullopt;
  return found;
}

/// A directory that is removed with what is in it.
class Folder {
 public:
  /// Throws std::system_error.
  Folder() : path_((std::filesystem::temp_directory_path() / "tambour-profile-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), "mkdtemp");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string file(std::string_view name) const {
    return path_ + '/' + std::string(name);
  }

 private:
  std::string path_;
};

/// The right to make a profile: gperftools makes one at a time.
class Turn {
 public:
  explicit Turn(std::atomic<bool>& is_taken) noexcept
      : is_taken_(is_taken), is_ours_(!is_taken.exchange(true)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (is_ours_) is_taken_ = false;
  }

  explicit operator bool() const noexcept { return is_ours_; }

 private:
  std::atomic<bool>& is_taken_;
  bool is_ours_;
};

/// Calls a function at the end, also if the task is destroyed while it waits.
class Stop {
 public:
  explicit Stop(void (*function)()) noexcept : function_(function) {}
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;
  ~Stop() { run(); }

  void run() noexcept {
    if (function_ != nullptr) std::exchange(function_, nullptr)();
  }

 private:
  void (*function_)();
};

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void send_profile(Response& response, std::string_view profile, std::string_view name) {
  set_fields(response, "application/octet-stream");
  response.headers().set("Content-Disposition",
                         "attachment; filename=\"" + std::string(name) + '"');
  response.send(profile);
}

void send_taken(Response& response) {
  response.send_error(http::Status::conflict, "another profile is being made");
}

/// Returns false if it has sent a response: there is no profiler, or it makes another profile.
bool may_profile(Response& response, bool has_profiler, std::string_view hint, const Turn& turn) {
  if (!has_profiler) {
    response.send_error(http::Status::not_implemented, hint);
    return false;
  }
  if (!turn) send_taken(response);
  return static_cast<bool>(turn);
}

/// A page of another origin cannot read a profile, but its requests would start one. Browsers send
/// the field (Fetch Metadata), other clients do not.
bool is_of_other_site(const Request& request) {
  const auto site = request.headers().get("Sec-Fetch-Site");
  return site && *site != "same-origin" && *site != "none";
}

/// Empty if the request was rejected.
std::optional<std::chrono::seconds> length_of(Request& request, Response& response) {
  constexpr std::uint32_t seconds_default = 10;
  if (is_of_other_site(request)) {
    response.send_error(http::Status::forbidden, "the request is of a page of another site");
    return std::nullopt;
  }
  const auto seconds = request.query_parameter_as<std::uint32_t>("seconds");
  if (!seconds) return std::nullopt;
  return std::chrono::seconds(std::min(seconds->value_or(seconds_default), seconds_max));
}

}  // namespace

void send_profiles(Response& response) {
  const bool has_cpu = find_cpu_profiler().has_value();
  const bool has_heap = find_heap_profiler().has_value();
  Json json;
  json.begin_object()
      .member("has_cpu", has_cpu)
      .member("cpu_hint", has_cpu ? std::string_view() : cpu_hint)
      .member("has_heap", has_heap)
      .member("heap_hint", has_heap ? std::string_view() : heap_hint)
      .end_object();
  send_json(response, json);
}

Task<> send_cpu_profile(Request& request, Response& response) {
  const std::optional<std::chrono::seconds> length = length_of(request, response);
  if (!length) co_return;
  const std::optional<CpuProfiler> profiler = find_cpu_profiler();
  static std::atomic<bool> is_taken = false;
  const Turn turn(is_taken);
  if (!may_profile(response, profiler.has_value(), cpu_hint, turn)) co_return;
  const Folder folder;
  const std::string path = folder.file("cpu");
  // Zero: the program makes a profile itself, with CPUPROFILE for example.
  if (profiler->start(path.c_str()) == 0) {
    send_taken(response);
    co_return;
  }
  Stop stop(profiler->stop);
  const Result<> slept = co_await sleep_for(*length);
  stop.run();
  if (!slept) co_return;
  // A profile may have megabytes.
  auto profile = co_await WorkerPool::shared().run(&contents_of, path);
  if (!profile) {
    response.send_error(http::Status::service_unavailable, "all workers are busy");
    co_return;
  }
  send_profile(response, *profile, "cpu.prof");
}

Task<> send_heap_profile(Request& request, Response& response) {
  const std::optional<std::chrono::seconds> length = length_of(request, response);
  if (!length) co_return;
  const std::optional<HeapProfiler> profiler = find_heap_profiler();
  static std::atomic<bool> is_taken = false;
  const Turn turn(is_taken);
  if (!may_profile(response, profiler.has_value(), heap_hint, turn)) co_return;
  // Nothing is written there unless a gigabyte is allocated meanwhile.
  std::optional<Folder> folder;
  if (profiler->is_running() == 0) {
    folder.emplace();
    profiler->start(folder->file("heap").c_str());
  }
  Stop stop(folder ? profiler->stop : nullptr);
  if (folder) {
    const Result<> slept = co_await sleep_for(*length);
    if (!slept) co_return;
  }
  const std::unique_ptr<char, decltype(&std::free)> text(profiler->get(), &std::free);
  stop.run();
  send_profile(response, text != nullptr ? std::string_view(text.get()) : std::string_view(),
               "heap.prof");
}

}  // namespace tambour::inspector
