// Random calls of the functions of evbuffers that reserve space, read and write descriptors, refer
// to files, and change settings.
#include <fcntl.h>

#include <algorithm>

#include "buffer_model.h"

namespace buffer_model {

void Test::space(Tracked& in) {
  const std::size_t size = random_.size() + (is_original_ ? 1 : 0);
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
  const int size = all ? -1 : static_cast<int>(random_.size() + (is_original_ ? 1 : 0));
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

}  // namespace buffer_model
