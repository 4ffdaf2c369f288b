// event2/util.h: sockets, text, time.

#include <event2/util.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/ascii.h"
#include "libevent/event/log.h"

/// Programs hold only pointers to it.
struct evutil_monotonic_timer {
  int clock;
};

namespace {

namespace base = tambour::detail::base;

int set_option(int fd, int level, int option) noexcept {
  const int one = 1;
  return ::setsockopt(fd, level, option, &one, sizeof one);
}

void* (*volatile set_memory)(void*, int, std::size_t) = &std::memset;

}  // namespace

int evutil_make_socket_nonblocking(evutil_socket_t fd) {
  const int flags = ::fcntl(fd, F_GETFL, nullptr);
  if (flags < 0) {
    event_warn("fcntl(%d, F_GETFL)", fd);
    return -1;
  }
  if ((flags & O_NONBLOCK) != 0) return 0;
  if (::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1) {
    event_warn("fcntl(%d, F_SETFL)", fd);
    return -1;
  }
  return 0;
}

int evutil_make_socket_closeonexec(evutil_socket_t fd) {
  const int flags = ::fcntl(fd, F_GETFD, nullptr);
  if (flags < 0) {
    event_warn("fcntl(%d, F_GETFD)", fd);
    return -1;
  }
  if ((flags & FD_CLOEXEC) != 0) return 0;
  if (::fcntl(fd, F_SETFD, flags | FD_CLOEXEC) == -1) {
    event_warn("fcntl(%d, F_SETFD)", fd);
    return -1;
  }
  return 0;
}

int evutil_make_listen_socket_reuseable(evutil_socket_t fd) {
  return set_option(fd, SOL_SOCKET, SO_REUSEADDR);
}
int evutil_make_listen_socket_reuseable_port(evutil_socket_t fd) {
  return set_option(fd, SOL_SOCKET, SO_REUSEPORT);
}
int evutil_make_listen_socket_ipv6only(evutil_socket_t fd) {
  return set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
}
int evutil_make_tcp_listen_socket_deferred(evutil_socket_t fd) {
  return set_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT);
}
int evutil_closesocket(evutil_socket_t fd) { return ::close(fd); }

int evutil_socketpair(int family, int type, int protocol, evutil_socket_t pair[2]) {
  return ::socketpair(family, type, protocol, pair);
}

ev_int64_t evutil_strtoll(const char* text, char** end, int base) {
  return std::strtoll(text, end, base);
}

int evutil_vsnprintf(char* buffer, std::size_t size, const char* format, std::va_list arguments) {
  if (size == 0) return 0;
  const int length = std::vsnprintf(buffer, size, format, arguments);
  buffer[size - 1] = '\0';
  return length;
}

int evutil_snprintf(char* buffer, std::size_t size, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int length = evutil_vsnprintf(buffer, size, format, arguments);
  va_end(arguments);
  return length;
}

int evutil_ascii_strcasecmp(const char* a, const char* b) {
  return evutil_ascii_strncasecmp(a, b, SIZE_MAX);
}

int evutil_ascii_strncasecmp(const char* a, const char* b, std::size_t limit) {
  for (; limit != 0; --limit, ++a, ++b) {
    const char left = base::to_lower(*a);
    const char right = base::to_lower(*b);
    if (left < right) return -1;
    if (left > right) return 1;
    if (left == '\0') return 0;
  }
  return 0;
}

int evutil_date_rfc1123(char* date, std::size_t size, const std::tm* time) {
  static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm now;
  if (time == nullptr) {
    const std::time_t seconds = std::time(nullptr);
    time = ::gmtime_r(&seconds, &now);
  }
  return evutil_snprintf(date, size, "%s, %02d %s %4d %02d:%02d:%02d GMT", days[time->tm_wday],
                         time->tm_mday, months[time->tm_mon], 1900 + time->tm_year, time->tm_hour,
                         time->tm_min, time->tm_sec);
}

evutil_monotonic_timer* evutil_monotonic_timer_new() {
  return static_cast<evutil_monotonic_timer*>(event_mm_calloc_(1, sizeof(evutil_monotonic_timer)));
}
void evutil_monotonic_timer_free(evutil_monotonic_timer* timer) {
  if (timer != nullptr) event_mm_free_(timer);
}
int evutil_configure_monotonic_time(evutil_monotonic_timer* timer, int flags) {
  timer->clock = (flags & EV_MONOT_FALLBACK) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  return 0;
}
int evutil_gettime_monotonic(evutil_monotonic_timer* timer, timeval* time) {
  timespec now;
  if (::clock_gettime(timer->clock, &now) != 0) return -1;
  *time = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

// What the original exports besides for its other libraries and its tests.
extern "C" {

int evutil_configure_monotonic_time_(evutil_monotonic_timer* timer, int flags) {
  return evutil_configure_monotonic_time(timer, flags);
}
int evutil_gettime_monotonic_(evutil_monotonic_timer* timer, timeval* time) {
  return evutil_gettime_monotonic(timer, time);
}

int EVUTIL_ISALPHA_(char c) { return base::is_letter(c) ? 1 : 0; }
int EVUTIL_ISALNUM_(char c) { return base::is_letter(c) || base::is_digit(c) ? 1 : 0; }
int EVUTIL_ISSPACE_(char c) { return c == ' ' || (c >= '\t' && c <= '\r') ? 1 : 0; }
int EVUTIL_ISDIGIT_(char c) { return base::is_digit(c) ? 1 : 0; }
int EVUTIL_ISXDIGIT_(char c) { return base::hex_value(c) >= 0 ? 1 : 0; }
int EVUTIL_ISPRINT_(char c) { return c >= ' ' && c <= '~' ? 1 : 0; }
int EVUTIL_ISLOWER_(char c) { return c >= 'a' && c <= 'z' ? 1 : 0; }
int EVUTIL_ISUPPER_(char c) { return c >= 'A' && c <= 'Z' ? 1 : 0; }
char EVUTIL_TOUPPER_(char c) { return base::to_upper(c); }
char EVUTIL_TOLOWER_(char c) { return base::to_lower(c); }

void evutil_rtrim_lws_(char* text) {
  if (text == nullptr) return;
  std::size_t length = std::strlen(text);
  while (length != 0 && (text[length - 1] == ' ' || text[length - 1] == '\t')) --length;
  text[length] = '\0';
}

int evutil_hex_char_to_int_(char c) { return base::hex_value(c); }

std::size_t event_strlcpy_(char* to, const char* from, std::size_t size) {
  const std::size_t length = std::strlen(from);
  if (size == 0) return length;
  const std::size_t kept = length < size ? length : size - 1;
  std::memcpy(to, from, kept);
  to[kept] = '\0';
  return length;
}

/// Null in a program that runs with the privileges of another user.
const char* evutil_getenv_(const char* name) { return ::secure_getenv(name); }

int evutil_open_closeonexec_(const char* path, int flags, unsigned mode) {
  return ::open(path, flags | O_CLOEXEC, static_cast<mode_t>(mode));
}

/// Returns -1 if the file cannot be opened, -2 if it cannot be read.
int evutil_read_file_(const char* path, char** content, std::size_t* length, int) {
  *content = nullptr;
  *length = 0;
  const int fd = evutil_open_closeonexec_(path, O_RDONLY, 0);
  if (fd < 0) return -1;
  struct stat status;
  if (::fstat(fd, &status) != 0 || status.st_size < 0) {
    ::close(fd);
    return -2;
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  auto* const bytes = static_cast<char*>(event_mm_malloc_(size + 1));
  std::size_t got = 0;
  ssize_t count = bytes == nullptr ? -1 : 1;
  while (count > 0 && got < size) {
    count = ::read(fd, bytes + got, size - got);
    if (count > 0) got += static_cast<std::size_t>(count);
  }
  ::close(fd);
  if (count < 0) {
    if (bytes != nullptr) event_mm_free_(bytes);
    return -2;
  }
  bytes[got] = '\0';
  *content = bytes;
  *length = got;
  return 0;
}

evutil_socket_t evutil_socket_(int family, int type, int protocol) {
  return ::socket(family, type, protocol);
}
evutil_socket_t evutil_accept4_(evutil_socket_t fd, sockaddr* address, socklen_t* size, int flags) {
  return ::accept4(fd, address, size, flags);
}
int evutil_make_internal_pipe_(evutil_socket_t pair[2]) {
  return ::pipe2(pair, O_NONBLOCK | O_CLOEXEC);
}
evutil_socket_t evutil_eventfd_(unsigned initial, int flags) { return ::eventfd(initial, flags); }

/// Returns 0 if connecting continues, 1 if connected, 2 if refused, -1 on another failure.
int evutil_socket_connect_(evutil_socket_t* fd, const sockaddr* address, int size) {
  const bool is_new = *fd < 0;
  if (is_new) {
    *fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (*fd < 0) return -1;
  }
  if (::connect(*fd, address, static_cast<socklen_t>(size)) == 0) return 1;
  if (errno == EINTR || errno == EINPROGRESS) return 0;
  if (errno == ECONNREFUSED) return 2;
  if (is_new) {
    ::close(*fd);
    *fd = -1;
  }
  return -1;
}

int evutil_socket_finished_connecting_(evutil_socket_t fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) return -1;
  if (error == 0) return 1;
  if (error == EINTR || error == EINPROGRESS) return 0;
  errno = error;
  return -1;
}

int evutil_ersatz_socketpair_(int family, int type, int protocol, evutil_socket_t pair[2]) {
  if (protocol != 0 || (family != AF_INET && family != AF_UNIX)) {
    errno = EAFNOSUPPORT;
    return -1;
  }
  if (pair == nullptr) {
    errno = EINVAL;
    return -1;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  const int listener = ::socket(AF_INET, type, 0);
  const int first = ::socket(AF_INET, type, 0);
  int second = -1;
  if (listener >= 0 && first >= 0 && ::bind(listener, any, size) == 0 &&
      ::listen(listener, 1) == 0 && ::getsockname(listener, any, &size) == 0 &&
      ::connect(first, any, size) == 0)
    second = ::accept(listener, nullptr, nullptr);
  const int error = errno;
  if (listener >= 0) ::close(listener);
  if (second < 0) {
    if (first >= 0) ::close(first);
    errno = error;
    return -1;
  }
  pair[0] = first;
  pair[1] = second;
  return 0;
}

long evutil_tv_to_msec_(const timeval* time) {
  constexpr long most_s = (INT64_MAX - 999) / 1000;
  if (time->tv_usec > 1000000 || time->tv_sec > most_s) return -1;
  return time->tv_sec * 1000 + (time->tv_usec + 999) / 1000;
}

void evutil_usleep_(const timeval* time) {
  if (time == nullptr) return;
  const timespec duration{.tv_sec = time->tv_sec, .tv_nsec = time->tv_usec * 1000};
  ::nanosleep(&duration, nullptr);
}

void evutil_memclear_(void* memory, std::size_t size) { set_memory(memory, 0, size); }

void evutil_free_globals_() {}
int evutil_global_setup_locks_(int) { return 0; }

}  // extern "C"
