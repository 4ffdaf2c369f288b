// Random calls of the functions of evbuffers, compared with strings. The program runs on either
// library.
//
// buffer_model [first seed [number of seeds [calls per seed [original]]]]
//
// With `original`, it makes no calls that libevent 2.1.12 fails on: buffers that refer to each
// other are never freed, and reserving or reading no bytes may fail an assertion.

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <event2/buffer.h>
#include <event2/event.h>

namespace {

constexpr int buffer_count = 3;
constexpr std::size_t length_max = 300'000;

bool original = false;

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2654435761U + 88172645463325252U) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ >> 11;
  }
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : next() % limit; }
  /// Mostly small, sometimes large, often near a power of two.
  std::size_t size() {
    switch (below(8)) {
      case 0:
        return 0;
      case 1:
        return 1 + below(8);
      case 2:
        return (std::size_t{128} << below(9)) - 80 + below(160) * (below(4) == 0 ? 1 : 0);
      case 3:
        return below(20'000);
      default:
        return below(300);
    }
  }

 private:
  std::uint64_t state_;
};

struct Tracked {
  evbuffer* buffer = nullptr;
  std::string bytes;
  bool front_frozen = false;
  bool back_frozen = false;
  bool has_callback = false;
  evbuffer_cb_entry* callback = nullptr;
  std::size_t seen = 0;  // The length that the callback was told.
  bool told_wrong = false;
};

class Test {
 public:
  explicit Test(std::uint64_t seed) : random_(seed), seed_(seed) {
    for (Tracked& tracked : tracked_) tracked.buffer = evbuffer_new();
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_) != 0) std::abort();
  }
  Test(const Test&) = delete;
  Test& operator=(const Test&) = delete;
  ~Test() {
    for (Tracked& tracked : tracked_) evbuffer_free(tracked.buffer);
    for (const int fd : ends_) ::close(fd);
    if (references_ != 0) fail("%d references were not released", references_);
  }

  void run(int calls) {
    for (int i = 0; i < calls; ++i) {
      call_ = i;
      one_call();
      for (Tracked& tracked : tracked_) verify(tracked);
    }
  }

 private:
  __attribute__((format(printf, 2, 3), noreturn)) void fail(const char* format, ...) {
    std::fprintf(stderr, "seed %llu, call %d (%s): ", static_cast<unsigned long long>(seed_), call_,
                 operation_);
    std::va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputc('\n', stderr);
    std::exit(1);
  }
  void equal(long long got, long long expected, const char* text) {
    if (got != expected) fail("%s: %lld, expected %lld", text, got, expected);
  }

  static void told(evbuffer* /*buffer*/, const evbuffer_cb_info* info, void* argument) {
    auto& tracked = *static_cast<Tracked*>(argument);
    if (info->orig_size != tracked.seen) tracked.told_wrong = true;
    tracked.seen = info->orig_size + info->n_added - info->n_deleted;
  }
  static void released(const void* data, std::size_t /*size*/, void* argument) {
    --static_cast<Test*>(argument)->references_;
    std::free(const_cast<void*>(data));
  }

  void verify(Tracked& tracked) {
    equal(static_cast<long long>(evbuffer_get_length(tracked.buffer)),
          static_cast<long long>(tracked.bytes.size()), "length");
    std::vector<evbuffer_iovec> extents(
        static_cast<std::size_t>(evbuffer_peek(tracked.buffer, -1, nullptr, nullptr, 0)));
    const int count = evbuffer_peek(tracked.buffer, -1, nullptr, extents.data(),
                                    static_cast<int>(extents.size()));
    std::size_t at = 0;
    for (int i = 0; i < count; ++i) {
      const evbuffer_iovec& extent = extents[static_cast<std::size_t>(i)];
      if (at + extent.iov_len > tracked.bytes.size()) fail("too many bytes");
      if (extent.iov_len != 0 &&
          std::memcmp(extent.iov_base, tracked.bytes.data() + at, extent.iov_len) != 0)
        fail("other bytes after %zu", at);
      at += extent.iov_len;
    }
    equal(static_cast<long long>(at), static_cast<long long>(tracked.bytes.size()), "extents");
    if (!tracked.has_callback) return;
    if (tracked.told_wrong) fail("the callback was told a wrong size");
    equal(static_cast<long long>(tracked.seen), static_cast<long long>(tracked.bytes.size()),
          "told");
  }

  std::string some_bytes(std::size_t size) {
    // Few values, so that searches find partial matches, and line ends.
    static constexpr char values[] = "aaaaaaaaabbbc\r\n\r\n\0x";
    std::string text(size, '\0');
    for (char& byte : text) byte = values[random_.below(sizeof values - 1)];
    return text;
  }
  evbuffer_ptr position(Tracked& tracked, std::size_t at) {
    evbuffer_ptr ptr{};
    const int result = evbuffer_ptr_set(tracked.buffer, &ptr, at, EVBUFFER_PTR_SET);
    equal(result, at <= tracked.bytes.size() ? 0 : -1, "ptr_set");
    equal(ptr.pos, at <= tracked.bytes.size() ? static_cast<long long>(at) : -1, "ptr");
    return ptr;
  }

  void one_call();
  void add(Tracked& to);
  void move(Tracked& from, Tracked& to);
  void take(Tracked& from);
  void search(Tracked& in);
  void lines(Tracked& in);
  void space(Tracked& in);
  void transfer(Tracked& with);
  void settings(Tracked& tracked);
  void files(Tracked& to);

  Random random_;
  std::uint64_t seed_;
  int call_ = 0;
  const char* operation_ = "";
  Tracked tracked_[buffer_count];
  int references_ = 0;
  int ends_[2] = {-1, -1};
  std::string in_flight_;
};

void Test::one_call() {
  Tracked& one = tracked_[random_.below(buffer_count)];
  Tracked& other = tracked_[random_.below(buffer_count)];
  if (one.bytes.size() > length_max && !one.front_frozen) {
    evbuffer_drain(one.buffer, one.bytes.size() - 100);
    one.bytes.erase(0, one.bytes.size() - 100);
  }
  switch (random_.below(9)) {
    case 0:
    case 1:
      return add(one);
    case 2:
      return move(one, other);
    case 3:
      return take(one);
    case 4:
      return search(one);
    case 5:
      return lines(one);
    case 6:
      return space(one);
    case 7:
      return random_.below(3) == 0 ? settings(one) : transfer(one);
    default:
      return random_.below(4) == 0 ? files(one) : add(one);
  }
}

void Test::add(Tracked& to) {
  const std::string more = some_bytes(random_.size());
  const bool appended = !to.back_frozen;
  switch (random_.below(6)) {
    case 0: {
      operation_ = "prepend";
      const bool done = !to.front_frozen || more.empty();
      equal(evbuffer_prepend(to.buffer, more.data(), more.size()), done ? 0 : -1, "result");
      if (done) to.bytes.insert(0, more);
      return;
    }
    case 1: {
      operation_ = "add_reference";
      auto* const memory = static_cast<char*>(std::malloc(more.size() + 1));
      std::copy(more.begin(), more.end(), memory);
      ++references_;
      equal(evbuffer_add_reference(to.buffer, memory, more.size(), &released, this),
            appended ? 0 : -1, "result");
      if (!appended) released(memory, 0, this);
      break;
    }
    case 2: {
      operation_ = "add_printf";
      const int number = static_cast<int>(random_.below(1000));
      std::string text = more;
      std::replace(text.begin(), text.end(), '\0', 'z');
      const int result = evbuffer_add_printf(to.buffer, "%d %s|", number, text.c_str());
      const std::string created = std::to_string(number) + " " + text + "|";
      equal(result, appended ? static_cast<long long>(created.size()) : -1, "result");
      if (appended) to.bytes += created;
      return;
    }
    case 3: {
      operation_ = "add_iovec";
      const std::size_t half = more.size() / 2;
      evbuffer_iovec extents[2] = {{const_cast<char*>(more.data()), half},
                                   {const_cast<char*>(more.data()) + half, more.size() - half}};
      equal(static_cast<long long>(evbuffer_add_iovec(to.buffer, extents, 2)),
            appended ? static_cast<long long>(more.size()) : 0, "result");
      break;
    }
    default:
      operation_ = "add";
      equal(evbuffer_add(to.buffer, more.data(), more.size()), appended ? 0 : -1, "result");
  }
  if (appended) to.bytes += more;
}

void Test::move(Tracked& from, Tracked& to) {
  const bool same = &from == &to;
  switch (random_.below(4)) {
    case 0: {
      operation_ = "add_buffer";
      const bool allowed = !from.front_frozen && !to.back_frozen;
      const bool nothing = from.bytes.empty() || same;
      equal(evbuffer_add_buffer(to.buffer, from.buffer), nothing || allowed ? 0 : -1, "result");
      if (nothing || !allowed) return;
      to.bytes += from.bytes;
      from.bytes.clear();
      return;
    }
    case 1: {
      operation_ = "prepend_buffer";
      const bool allowed = !from.front_frozen && !to.front_frozen;
      const bool nothing = from.bytes.empty() || same;
      equal(evbuffer_prepend_buffer(to.buffer, from.buffer), nothing || allowed ? 0 : -1, "result");
      if (nothing || !allowed) return;
      to.bytes.insert(0, from.bytes);
      from.bytes.clear();
      return;
    }
    case 2: {
      operation_ = "remove_buffer";
      const std::size_t size = random_.size();
      const bool allowed = !from.front_frozen && !to.back_frozen;
      const std::size_t moved = std::min(size, from.bytes.size());
      const int result = evbuffer_remove_buffer(from.buffer, to.buffer, size);
      if (size == 0 || same) return equal(result, 0, "result");
      equal(result, allowed ? static_cast<long long>(moved) : -1, "result");
      if (!allowed) return;
      to.bytes.append(from.bytes, 0, moved);
      from.bytes.erase(0, moved);
      return;
    }
    default: {
      operation_ = "add_buffer_reference";
      if (original) return;
      const int result = evbuffer_add_buffer_reference(to.buffer, from.buffer);
      if (from.bytes.empty()) return equal(result, 0, "result");
      if (to.back_frozen || same) equal(result, -1, "result");
      // A buffer that has references itself is refused.
      if (result == 0) to.bytes += from.bytes;
    }
  }
}

void Test::take(Tracked& from) {
  const std::size_t size = random_.size();
  const std::size_t taken = std::min(size, from.bytes.size());
  std::string into(size, '?');
  const bool refused = from.front_frozen && taken != 0;
  switch (random_.below(5)) {
    case 0:
      operation_ = "drain";
      equal(evbuffer_drain(from.buffer, size), from.front_frozen && !from.bytes.empty() ? -1 : 0,
            "result");
      if (!from.front_frozen) from.bytes.erase(0, taken);
      return;
    case 1:
      operation_ = "remove";
      equal(evbuffer_remove(from.buffer, into.data(), size),
            refused ? -1 : static_cast<long long>(taken), "result");
      if (refused) return;
      if (into.compare(0, taken, from.bytes, 0, taken) != 0) fail("other bytes");
      from.bytes.erase(0, taken);
      return;
    case 2:
      operation_ = "copyout";
      equal(evbuffer_copyout(from.buffer, into.data(), size),
            refused ? -1 : static_cast<long long>(taken), "result");
      if (!refused && into.compare(0, taken, from.bytes, 0, taken) != 0) fail("other bytes");
      return;
    case 3: {
      operation_ = "copyout_from";
      const std::size_t at = random_.below(from.bytes.size() + 1);
      const evbuffer_ptr ptr = position(from, at);
      const std::size_t rest = std::min(size, from.bytes.size() - at);
      const bool no = from.front_frozen && rest != 0;
      equal(evbuffer_copyout_from(from.buffer, &ptr, into.data(), size),
            no ? -1 : static_cast<long long>(rest), "result");
      if (!no && into.compare(0, rest, from.bytes, at, rest) != 0) fail("other bytes");
      return;
    }
    default: {
      operation_ = "pullup";
      const bool all = random_.below(4) == 0;
      const std::size_t wanted = all ? from.bytes.size() : size;
      const unsigned char* const bytes =
          evbuffer_pullup(from.buffer, all ? -1 : static_cast<ev_ssize_t>(size));
      if (wanted == 0 || wanted > from.bytes.size()) return equal(bytes != nullptr, 0, "result");
      if (bytes == nullptr) fail("null");
      if (std::memcmp(bytes, from.bytes.data(), wanted) != 0) fail("other bytes");
      if (evbuffer_get_contiguous_space(from.buffer) < wanted) fail("not contiguous");
    }
  }
}

void Test::search(Tracked& in) {
  const std::size_t start = random_.below(in.bytes.size() + 1);
  std::string text = some_bytes(1 + random_.below(6));
  if (random_.below(2) == 0 && in.bytes.size() > start) {
    const std::size_t from = start + random_.below(in.bytes.size() - start);
    text = in.bytes.substr(from, 1 + random_.below(random_.below(4) == 0 ? 3000 : 12));
  }
  const evbuffer_ptr begin = position(in, start);
  const std::size_t found = in.bytes.find(text, start);
  switch (random_.below(3)) {
    case 0: {
      operation_ = "search";
      const evbuffer_ptr at = evbuffer_search(in.buffer, text.data(), text.size(), &begin);
      equal(at.pos, found == std::string::npos ? -1 : static_cast<long long>(found), "position");
      return;
    }
    case 1: {
      operation_ = "search_range";
      const std::size_t end = start + random_.below(in.bytes.size() - start + 1);
      const evbuffer_ptr limit = position(in, end);
      const evbuffer_ptr at =
          evbuffer_search_range(in.buffer, text.data(), text.size(), &begin, &limit);
      const bool inside = found != std::string::npos && found + text.size() <= end;
      equal(at.pos, inside ? static_cast<long long>(found) : -1, "position");
      return;
    }
    default: {
      operation_ = "ptr_set";
      const std::size_t more = random_.size();
      evbuffer_ptr at = begin;
      const bool valid = start + more <= in.bytes.size();
      equal(evbuffer_ptr_set(in.buffer, &at, more, EVBUFFER_PTR_ADD), valid ? 0 : -1, "result");
      equal(at.pos, valid ? static_cast<long long>(start + more) : -1, "position");
      if (!valid || at.pos == static_cast<ev_ssize_t>(in.bytes.size())) return;
      evbuffer_iovec extent{};
      if (evbuffer_peek(in.buffer, 1, &at, &extent, 1) < 1) fail("nothing at %zd", at.pos);
      equal(*static_cast<const char*>(extent.iov_base), in.bytes[static_cast<std::size_t>(at.pos)],
            "byte");
    }
  }
}

/// The position and length of the next end of line, or npos.
std::pair<std::size_t, std::size_t> line_end(std::string_view text, std::size_t start,
                                             evbuffer_eol_style style) {
  constexpr auto none = std::string_view::npos;
  std::size_t at = none;
  switch (style) {
    case EVBUFFER_EOL_ANY: {
      at = text.find_first_of("\r\n", start);
      if (at == none) break;
      const std::size_t end = text.find_first_not_of("\r\n", at);
      return {at, (end == none ? text.size() : end) - at};
    }
    case EVBUFFER_EOL_CRLF:
      at = text.find('\n', start);
      if (at != none && at > start && text[at - 1] == '\r') return {at - 1, 2};
      break;
    case EVBUFFER_EOL_CRLF_STRICT:
      return {text.find("\r\n", start), 2};
    case EVBUFFER_EOL_LF:
      at = text.find('\n', start);
      break;
    case EVBUFFER_EOL_NUL:
      at = text.find('\0', start);
      break;
  }
  return {at, 1};
}

void Test::lines(Tracked& in) {
  const auto style = static_cast<evbuffer_eol_style>(random_.below(5));
  if (random_.below(2) == 0) {
    operation_ = "search_eol";
    const std::size_t start = random_.below(in.bytes.size() + 1);
    evbuffer_ptr begin = position(in, start);
    std::size_t size = 99;
    const evbuffer_ptr at = evbuffer_search_eol(in.buffer, &begin, &size, style);
    const auto [expected, expected_size] = line_end(in.bytes, start, style);
    equal(at.pos, static_cast<long long>(expected), "position");
    if (at.pos >= 0)
      equal(static_cast<long long>(size), static_cast<long long>(expected_size), "size");
    return;
  }
  operation_ = "readln";
  std::size_t size = 99;
  char* const line = evbuffer_readln(in.buffer, &size, style);
  const auto [expected, expected_size] = line_end(in.bytes, 0, style);
  if (in.front_frozen || expected == std::string::npos) {
    if (line != nullptr) fail("a line");
    return;
  }
  if (line == nullptr) fail("no line");
  equal(static_cast<long long>(size), static_cast<long long>(expected), "size");
  if (in.bytes.compare(0, size, line, size) != 0) fail("another line");
  std::free(line);
  in.bytes.erase(0, expected + expected_size);
}

void Test::space(Tracked& in) {
  const std::size_t size = random_.size() + (original ? 1 : 0);
  if (random_.below(3) == 0) {
    operation_ = "expand";
    equal(evbuffer_expand(in.buffer, size), 0, "result");
    return;
  }
  operation_ = "reserve_space";
  constexpr int extents_max = 4;
  evbuffer_iovec extents[extents_max];
  const int wanted = 1 + static_cast<int>(random_.below(extents_max));
  const int count =
      evbuffer_reserve_space(in.buffer, static_cast<ev_ssize_t>(size), extents, wanted);
  if (in.back_frozen) return equal(count, -1, "result");
  if (count < 0 || count > wanted) fail("%d extents", count);
  std::size_t provided = 0;
  for (int i = 0; i < count; ++i) provided += extents[i].iov_len;
  if (provided < size) fail("%zu bytes of %zu", provided, size);
  if (random_.below(4) == 0) return;  // Never committed.

  operation_ = "commit_space";
  const std::string more = some_bytes(random_.below(size + 1));
  std::size_t filled = 0;
  int used = 0;
  for (; used < count && filled < more.size(); ++used) {
    const std::size_t part = std::min(extents[used].iov_len, more.size() - filled);
    std::memcpy(extents[used].iov_base, more.data() + filled, part);
    extents[used].iov_len = part;
    filled += part;
  }
  equal(evbuffer_commit_space(in.buffer, extents, used), 0, "result");
  in.bytes += more;
}

void Test::transfer(Tracked& with) {
  if (random_.below(2) == 0) {
    operation_ = "write";
    const std::size_t size = random_.size();
    const bool all = random_.below(3) == 0;
    const int n =
        evbuffer_write_atmost(with.buffer, ends_[0], all ? -1 : static_cast<ev_ssize_t>(size));
    if (with.front_frozen || with.bytes.empty() || (!all && size == 0))
      return equal(n, -1, "result");
    if (n < 0) return;  // The socket is full.
    if (!all && static_cast<std::size_t>(n) > size) fail("%d bytes of %zu", n, size);
    in_flight_.append(with.bytes, 0, static_cast<std::size_t>(n));
    with.bytes.erase(0, static_cast<std::size_t>(n));
    return;
  }
  operation_ = "read";
  const bool all = random_.below(3) == 0;
  const int size = all ? -1 : static_cast<int>(random_.size() + (original ? 1 : 0));
  const int n = evbuffer_read(with.buffer, ends_[1], size);
  if (with.back_frozen) return equal(n, -1, "result");
  if (size == 0) return equal(n, 0, "result");
  if (in_flight_.empty()) return equal(n, -1, "result");
  if (n <= 0 || static_cast<std::size_t>(n) > in_flight_.size() || (!all && n > size))
    fail("%d bytes of %d, %zu in flight", n, size, in_flight_.size());
  with.bytes.append(in_flight_, 0, static_cast<std::size_t>(n));
  in_flight_.erase(0, static_cast<std::size_t>(n));
}

void Test::settings(Tracked& tracked) {
  switch (random_.below(3)) {
    case 0:
      operation_ = "freeze";
      tracked.front_frozen = random_.below(4) == 0;
      tracked.back_frozen = random_.below(4) == 0;
      (tracked.front_frozen ? evbuffer_freeze : evbuffer_unfreeze)(tracked.buffer, 1);
      (tracked.back_frozen ? evbuffer_freeze : evbuffer_unfreeze)(tracked.buffer, 0);
      return;
    case 1:
      operation_ = "callback";
      if (tracked.has_callback) {
        evbuffer_remove_cb_entry(tracked.buffer, tracked.callback);
      } else {
        tracked.seen = tracked.bytes.size();
        tracked.callback = evbuffer_add_cb(tracked.buffer, &told, &tracked);
      }
      tracked.has_callback = !tracked.has_callback;
      return;
    default:
      operation_ = "new";
      evbuffer_free(tracked.buffer);
      tracked = Tracked{};
      tracked.buffer = evbuffer_new();
  }
}

void Test::files(Tracked& to) {
  operation_ = "add_file";
  const std::string content = some_bytes(1 + random_.size());
  char name[] = "/tmp/buffer_model.XXXXXX";
  const int fd = ::mkstemp(name);
  if (fd < 0) std::abort();
  ::unlink(name);
  if (::write(fd, content.data(), content.size()) != static_cast<ssize_t>(content.size()))
    std::abort();
  const std::size_t offset = random_.below(content.size());
  const std::size_t size = content.size() - offset;
  const unsigned flags = EVBUF_FS_CLOSE_ON_FREE | EVBUF_FS_DISABLE_SENDFILE |
                         (random_.below(2) == 0 ? EVBUF_FS_DISABLE_MMAP : 0);
  evbuffer_file_segment* const segment = evbuffer_file_segment_new(
      fd, static_cast<ev_off_t>(offset), static_cast<ev_off_t>(size), flags);
  if (segment == nullptr) fail("no segment");
  const std::size_t part = random_.below(size);
  if (to.back_frozen) return evbuffer_file_segment_free(segment);
  equal(evbuffer_add_file_segment(to.buffer, segment, static_cast<ev_off_t>(part), -1), 0,
        "result");
  to.bytes.append(content, offset + part);
  evbuffer_file_segment_free(segment);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long first = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  const unsigned long seeds = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 100;
  const int calls = argc > 3 ? std::atoi(argv[3]) : 400;
  original = argc > 4;
  for (unsigned long seed = first; seed != first + seeds; ++seed) Test(seed).run(calls);
  std::printf("%lu seeds of %d calls\n", seeds, calls);
}
