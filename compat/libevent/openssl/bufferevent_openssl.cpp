// bufferevent_openssl: handshakes, reading and writing, and the choice of events to wait for.
#include "libevent/openssl/bufferevent_openssl.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include <event2/buffer.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "libevent/openssl/bufferevent_bio.h"

namespace tambour::libevent {
namespace {

/// Holds the lock, and a reference.
class Referenced {
 public:
  explicit Referenced(bufferevent& bev) noexcept : bev_(bev) {
    bufferevent_incref_and_lock_(&bev_);
  }
  Referenced(const Referenced&) = delete;
  Referenced& operator=(const Referenced&) = delete;
  ~Referenced() { bufferevent_decref_and_unlock_(&bev_); }

 private:
  bufferevent& bev_;
};

// The contents of the largest record.
constexpr int record_max = 16384;

}  // namespace

bool Openssl::open(bufferevent* below, int fd, bufferevent_ssl_state state, int chosen) noexcept {
  // Freed events must have been assigned.
  bufferevent_init_generic_timeout_cbs_(this);
  // The output may move while OpenSSL waits to repeat a write.
  SSL_set_mode(ssl_, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_ENABLE_PARTIAL_WRITE);
  if (evbuffer_add_cb(output, &on_output, static_cast<bufferevent*>(this)) == nullptr) return false;
  if (below != nullptr) {
    bio_ = use_bufferevent(ssl_, below);
    if (bio_ == nullptr) return false;
    below_ = &of(below);
    bufferevent_incref(below);
  }
  if ((chosen & BEV_OPT_THREADSAFE) != 0) bufferevent_enable_locking_(this, nullptr);
  initial_state_ = state;
  if (!enter(state, fd)) return false;
  if (below_ != nullptr) {
    bufferevent_setwatermark(below_, EV_READ, 0, 0);
    bufferevent_enable(below_, EV_READ | EV_WRITE);
    if (is_open()) bufferevent_suspend_read_(below_, suspended::filter);
  }
  return true;
}

void Openssl::abandon() noexcept {
  options &= ~BEV_OPT_CLOSE_ON_FREE;
  bufferevent_free(this);
}

void Openssl::assign(int fd) noexcept {
  auto* const user = static_cast<bufferevent*>(this);
  if (event_initialized(&ev_read) != 0) {
    event_del(&ev_read);
    event_del(&ev_write);
  }
  event_assign(&ev_read, ev_base, fd, EV_READ | EV_PERSIST | EV_FINALIZE, &on_readable, user);
  event_assign(&ev_write, ev_base, fd, EV_WRITE | EV_PERSIST | EV_FINALIZE, &on_writable, user);
}

bool Openssl::enter(bufferevent_ssl_state state, int fd) noexcept {
  state_ = state;
  repeated_write_ = 0;
  read_blocked_on_write_ = false;
  write_blocked_on_read_ = false;
  BIO* const reads = SSL_get_rbio(ssl_);
  BIO* const writes = SSL_get_wbio(ssl_);
  bytes_read_ = reads != nullptr ? BIO_number_read(reads) : 0;
  bytes_written_ = writes != nullptr ? BIO_number_written(writes) : 0;
  if (state != BUFFEREVENT_SSL_OPEN) {
    if (SSL_clear(ssl_) == 0) return false;
    state == BUFFEREVENT_SSL_ACCEPTING ? SSL_set_accept_state(ssl_) : SSL_set_connect_state(ssl_);
  }
  if (below_ == nullptr) {
    assign(fd);
    if (fd >= 0 && state != BUFFEREVENT_SSL_OPEN) bufferevent_enable(this, enabled);
    return true;
  }
  bufferevent_setcb(below_, &on_read_below, &on_write_below, &on_event_below,
                    static_cast<bufferevent*>(this));
  if (state != BUFFEREVENT_SSL_OPEN && fd >= 0) {
    if (bufferevent_setfd(below_, fd) != 0) return false;
    handshake();
  }
  return true;
}

bool Openssl::set_fd(int fd) noexcept {
  if (below_ == nullptr) return use_socket(ssl_, fd) && enter(initial_state_, fd);
  BIO* const bio = use_bufferevent(ssl_, below_);
  if (bio == nullptr) return false;
  release_bufferevent(std::exchange(bio_, bio));
  return enter(initial_state_, fd);
}

int Openssl::fd() noexcept { return event_get_fd(below_ != nullptr ? &below_->ev_read : &ev_read); }

int Openssl::start_reading() noexcept {
  if (below_ != nullptr) {
    bufferevent_unsuspend_read_(below_, suspended::filter);
    return 0;
  }
  if (add_event(ev_read, timeout_read) != 0) return -1;
  return read_blocked_on_write_ ? add_event(ev_write, timeout_write) : 0;
}

int Openssl::start_writing() noexcept {
  if (below_ != nullptr) {
    if (write_blocked_on_read_) bufferevent_unsuspend_read_(below_, suspended::filter);
    return 0;
  }
  if (add_event(ev_write, timeout_write) != 0) return -1;
  return write_blocked_on_read_ ? add_event(ev_read, timeout_read) : 0;
}

void Openssl::stop_reading() noexcept {
  if (write_blocked_on_read_) return;
  if (below_ != nullptr) {
    bufferevent_suspend_read_(below_, suspended::filter);
  } else {
    event_del(&ev_read);
  }
}

void Openssl::stop_writing() noexcept {
  // The bufferevent below decides when to write.
  if (!read_blocked_on_write_ && below_ == nullptr) event_del(&ev_write);
}

int Openssl::block_read_on_write() noexcept {
  if (read_blocked_on_write_) return 0;
  if (below_ == nullptr) stop_reading();
  read_blocked_on_write_ = true;
  return start_writing();
}

int Openssl::block_write_on_read() noexcept {
  if (write_blocked_on_read_) return 0;
  if (below_ == nullptr) stop_writing();
  write_blocked_on_read_ = true;
  return start_reading();
}

int Openssl::unblock_read() noexcept {
  if (!read_blocked_on_write_) return 0;
  read_blocked_on_write_ = false;
  if ((enabled & EV_WRITE) == 0) stop_writing();
  return (enabled & EV_READ) != 0 ? start_reading() : 0;
}

int Openssl::unblock_write() noexcept {
  if (!write_blocked_on_read_) return 0;
  write_blocked_on_read_ = false;
  if ((enabled & EV_READ) == 0) stop_reading();
  return (enabled & EV_WRITE) != 0 ? start_writing() : 0;
}

void Openssl::put_error(unsigned long error) noexcept {
  if (errors_ < errors_max) error_[errors_++] = static_cast<std::uint32_t>(error);
}

void Openssl::close(int when, int code, int result) noexcept {
  int kind = BEV_EVENT_ERROR;
  bool dirty = false;
  if (code == SSL_ERROR_ZERO_RETURN) {
    dirty = (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) == 0;
    if (!dirty) kind = BEV_EVENT_EOF;
  } else {
    // OpenSSL 3 reports an end without close_notify as an error of the protocol.
    dirty = (code == SSL_ERROR_SYSCALL && result <= 0 && ERR_peek_error() == 0) ||
            (code == SSL_ERROR_SSL &&
             ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING);
    put_error(static_cast<unsigned long>(code));
  }
  while (const unsigned long error = ERR_get_error()) put_error(error);
  if (dirty && allow_dirty_shutdown) kind = BEV_EVENT_EOF;
  read_blocked_on_write_ = false;
  write_blocked_on_read_ = false;
  stop_reading();
  stop_writing();
  bufferevent_run_eventcb_(this, static_cast<short>(when | kind), 0);
}

void Openssl::count_bytes() noexcept {
  BIO* const reads = SSL_get_rbio(ssl_);
  BIO* const writes = SSL_get_wbio(ssl_);
  if (reads == nullptr || writes == nullptr) return;
  const std::uint64_t read = BIO_number_read(reads);
  const std::uint64_t written = BIO_number_written(writes);
  if (written != bytes_written_)
    bufferevent_decrement_write_buckets_(this, static_cast<ev_ssize_t>(written - bytes_written_));
  if (read != bytes_read_)
    bufferevent_decrement_read_buckets_(this, static_cast<ev_ssize_t>(read - bytes_read_));
  bytes_read_ = read;
  bytes_written_ = written;
}

void Openssl::handshake() noexcept {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  count_bytes();
  if (result == 1) {
    state_ = BUFFEREVENT_SSL_OPEN;
    connecting = false;
    bufferevent_enable(this, enabled);
    bufferevent_run_eventcb_(this, BEV_EVENT_CONNECTED, 0);
    return;
  }
  const int code = SSL_get_error(ssl_, result);
  if (code == SSL_ERROR_WANT_WRITE) {
    stop_reading();
    start_writing();
  } else if (code == SSL_ERROR_WANT_READ) {
    stop_writing();
    start_reading();
  } else {
    close(BEV_EVENT_READING, code, result);
  }
}

Progress Openssl::read_once(int size) noexcept {
  if (read_suspended != 0) return Progress::blocked;
  size = static_cast<int>(std::min<ev_ssize_t>(size, bufferevent_get_read_max_(this)));
  if (size <= 0) return Progress::blocked;
  evbuffer_iovec space{};
  if (evbuffer_reserve_space(input, size, &space, 1) < 1) return Progress::failed;
  ERR_clear_error();
  const int n = SSL_read(ssl_, space.iov_base, size);
  if (n > 0) {
    space.iov_len = static_cast<std::size_t>(n);
    evbuffer_commit_space(input, &space, 1);
    count_bytes();
    if (below_ != nullptr) restart_read_timeout();
    return unblock_read() < 0 ? Progress::failed : Progress::progressed;
  }
  const int code = SSL_get_error(ssl_, n);
  if (code == SSL_ERROR_WANT_READ) {
    if (unblock_read() < 0) return Progress::failed;
  } else if (code == SSL_ERROR_WANT_WRITE) {
    if (block_read_on_write() < 0) return Progress::failed;
  } else {
    close(BEV_EVENT_READING, code, n);
  }
  return Progress::blocked;
}

Progress Openssl::write_once() noexcept {
  if (write_suspended != 0) return Progress::blocked;
  ev_ssize_t size = repeated_write_;
  if (size == 0)
    size = std::min<ev_ssize_t>(
        {record_max, bufferevent_get_write_max_(this),
         static_cast<ev_ssize_t>(std::min<std::size_t>(evbuffer_get_length(output), record_max))});
  if (size <= 0) return Progress::blocked;
  // Small chains are sent in one record.
  const unsigned char* const bytes = evbuffer_pullup(output, size);
  if (bytes == nullptr) return Progress::failed;
  ERR_clear_error();
  const int n = SSL_write(ssl_, bytes, static_cast<int>(size));
  if (n > 0) {
    repeated_write_ = 0;
    evbuffer_drain(output, static_cast<std::size_t>(n));
    count_bytes();
    if (below_ != nullptr) restart_write_timeout();
    const bool failed = unblock_write() < 0;
    bufferevent_trigger(this, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
    return failed ? Progress::failed : Progress::progressed;
  }
  const int code = SSL_get_error(ssl_, n);
  repeated_write_ = 0;
  if (code == SSL_ERROR_WANT_WRITE) {
    repeated_write_ = static_cast<int>(size);
    if (unblock_write() < 0) return Progress::failed;
  } else if (code == SSL_ERROR_WANT_READ) {
    repeated_write_ = static_cast<int>(size);
    if (block_write_on_read() < 0) return Progress::failed;
  } else {
    close(BEV_EVENT_WRITING, code, n);
  }
  return Progress::blocked;
}

/// Returns zero if nothing should be read now.
int Openssl::bytes_to_read() noexcept {
  if (write_blocked_on_read_ || (enabled & EV_READ) == 0 || read_suspended != 0) return 0;
  std::size_t size = record_max;
  if (wm_read.high != 0) {
    const std::size_t there = evbuffer_get_length(input);
    if (there >= wm_read.high) return 0;
    size = std::min(size, wm_read.high - there);
  }
  return static_cast<int>(size);
}

void Openssl::read() noexcept {
  while (write_blocked_on_read_)
    if (write_once() != Progress::progressed) break;
  if (write_blocked_on_read_) return;
  bool count = false;
  int size = bytes_to_read();
  while (size > 0 && read_once(size) == Progress::progressed) {
    count = true;
    if (read_suspended != 0) break;
    // Below a socket, the rest of a record causes no further event, and is read even if the
    // high-water mark is exceeded. From a bufferevent below, all is read.
    size = SSL_pending(ssl_);
    if (size == 0 && below_ != nullptr) size = bytes_to_read();
  }
  if (count) bufferevent_trigger(this, EV_READ, 0);
  if (below_ == nullptr && (read_suspended != 0 || (enabled & EV_READ) == 0)) event_del(&ev_read);
}

void Openssl::write() noexcept {
  bool count = false;
  while (read_blocked_on_write_) {
    if (read_once(record_max) != Progress::progressed) break;
    count = true;
  }
  if (count) bufferevent_trigger(this, EV_READ, 0);
  if (read_blocked_on_write_) return;
  const auto full_below = [this] {
    return below_ != nullptr && below_->wm_write.high != 0 &&
           evbuffer_get_length(below_->output) >= below_->wm_write.high;
  };
  while ((enabled & EV_WRITE) != 0 && write_suspended == 0 && evbuffer_get_length(output) != 0 &&
         !full_below())
    if (write_once() != Progress::progressed) break;
  const bool idle =
      evbuffer_get_length(output) == 0 || write_suspended != 0 || (enabled & EV_WRITE) == 0;
  if (below_ == nullptr && idle) event_del(&ev_write);
}

void Openssl::read_pending_bytes() noexcept {
  if (below_ == nullptr && is_open() && SSL_pending(ssl_) > 0 && bytes_to_read() > 0)
    event_active(&ev_read, EV_READ, 1);
}

int Openssl::start(short events) noexcept {
  int reading = 0;
  int writing = 0;
  if ((events & EV_READ) != 0) reading = start_reading();
  if ((events & EV_WRITE) != 0) writing = start_writing();
  if (below_ != nullptr) {
    if ((events & EV_READ) != 0) restart_read_timeout();
    if ((events & EV_WRITE) != 0) restart_write_timeout();
    if (is_open()) {
      if ((events & EV_READ) != 0) read();
      if ((events & EV_WRITE) != 0) write();
    }
  } else if ((events & EV_READ) != 0) {
    read_pending_bytes();
  }
  return reading < 0 || writing < 0 ? -1 : 0;
}

int Openssl::stop(short events) noexcept {
  if ((events & EV_READ) != 0) stop_reading();
  if ((events & EV_WRITE) != 0) stop_writing();
  if (below_ != nullptr) {
    if ((events & EV_READ) != 0) event_del(&ev_read);
    if ((events & EV_WRITE) != 0) event_del(&ev_write);
  }
  return 0;
}

int Openssl::adjust_timeouts() noexcept {
  return below_ != nullptr ? bufferevent_generic_adj_timeouts_(this)
                           : bufferevent_generic_adj_existing_timeouts_(this);
}

void Openssl::unlink() noexcept {
  if (below_ != nullptr) unlink_from(*below_, *this, &on_event_below);
}

void Openssl::destruct() noexcept {
  // Without BEV_OPT_CLOSE_ON_FREE, the SSL object may have been freed by now.
  if (bio_ != nullptr) release_bufferevent(bio_);
  if ((options & BEV_OPT_CLOSE_ON_FREE) == 0) return;
  const int closed = below_ == nullptr ? socket_of(ssl_) : -1;
  if (closed >= 0) ::close(closed);
  SSL_free(ssl_);
}

int Openssl::renegotiate() noexcept {
  const Referenced referenced(*this);
  if (SSL_renegotiate(ssl_) <= 0) return -1;
  state_ = BUFFEREVENT_SSL_CONNECTING;
  handshake();
  return 0;
}

void Openssl::on_output(evbuffer* /*output*/, const evbuffer_cb_info* info, void* argument) {
  Openssl& self = openssl(argument);
  if (info->n_added == 0 || !self.is_open()) return;
  const Referenced referenced(self);
  if (self.below_ != nullptr) return self.write();
  // If the event cannot be added, the bytes remain, and the next addition tries again.
  if (info->orig_size == 0) add_event(self.ev_write, self.timeout_write);
}

void Openssl::on_readable(evutil_socket_t /*fd*/, short events, void* argument) {
  Openssl& self = openssl(argument);
  const Referenced referenced(self);
  if (!self.is_open()) {
    if ((events & EV_TIMEOUT) == 0) return self.handshake();
    return bufferevent_run_eventcb_(&self, BEV_EVENT_TIMEOUT, 0);
  }
  if (events != EV_TIMEOUT) return self.read();
  bufferevent_run_eventcb_(&self, BEV_EVENT_TIMEOUT | BEV_EVENT_READING, 0);
}

void Openssl::on_writable(evutil_socket_t /*fd*/, short events, void* argument) {
  Openssl& self = openssl(argument);
  const Referenced referenced(self);
  if (!self.is_open()) {
    if ((events & EV_TIMEOUT) == 0) return self.handshake();
    return bufferevent_run_eventcb_(&self, BEV_EVENT_TIMEOUT, 0);
  }
  if (events != EV_TIMEOUT) return self.write();
  bufferevent_run_eventcb_(&self, BEV_EVENT_TIMEOUT | BEV_EVENT_WRITING, 0);
}

void Openssl::on_read_below(bufferevent* /*below*/, void* argument) {
  Openssl& self = openssl(argument);
  const BevLocked locked(self);
  // Without references, the memory is about to be freed.
  if (self.references == 0) return;
  const Referenced referenced(self);
  self.is_open() ? self.read() : self.handshake();
}

void Openssl::on_write_below(bufferevent* /*below*/, void* argument) {
  Openssl& self = openssl(argument);
  const BevLocked locked(self);
  if (self.references == 0) return;
  const Referenced referenced(self);
  self.is_open() ? self.write() : self.handshake();
}

void Openssl::on_event_below(bufferevent* /*below*/, short kind, void* argument) {
  Openssl& self = openssl(argument);
  const BevLocked locked(self);
  if (self.references == 0) return;
  const Referenced referenced(self);
  if ((kind & BEV_EVENT_EOF) != 0) {
    const bool clean = self.allow_dirty_shutdown;
    bufferevent_run_eventcb_(&self, clean ? BEV_EVENT_EOF : BEV_EVENT_ERROR, 0);
  } else if ((kind & (BEV_EVENT_TIMEOUT | BEV_EVENT_ERROR)) != 0) {
    bufferevent_run_eventcb_(&self, kind, 0);
  } else if ((kind & BEV_EVENT_CONNECTED) != 0 && !self.is_open()) {
    // The bufferevent below reports nothing else before a client has sent its first message.
    self.handshake();
  }
}

}  // namespace tambour::libevent
