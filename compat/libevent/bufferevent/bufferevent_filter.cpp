// Filters: bufferevents whose bytes come from another one, and go to it, through functions of the
// user.

#include <event2/buffer.h>

#include "libevent/bufferevent/bufferevent.h"

using tambour::libevent::BevLocked;
using tambour::libevent::BufferEvent;
using tambour::libevent::Held;
using tambour::libevent::of;
namespace suspended = tambour::libevent::suspended;

extern "C" const bufferevent_ops bufferevent_ops_filter = {"filter"};

namespace {

bufferevent_filter_result pass(evbuffer* from, evbuffer* into, ev_ssize_t bytes_max,
                               bufferevent_flush_mode /*mode*/, void* /*context*/) {
  const int moved = evbuffer_remove_buffer(from, into, static_cast<std::size_t>(bytes_max));
  return moved >= 0 ? BEV_OK : BEV_ERROR;
}

class Filter final : public BufferEvent {
 public:
  Filter() noexcept : BufferEvent(bufferevent_ops_filter) {}

  /// Returns false if there is no memory.
  bool attach(bufferevent* to, int options) noexcept;

  int start(short events) noexcept override;
  int stop(short events) noexcept override;
  int adjust_timeouts() noexcept override { return adjust_timeout_events(); }
  void unlink() noexcept override;
  void destruct() noexcept override;
  int flush(short events, bufferevent_flush_mode mode) noexcept override;
  bool set_fd(int fd) noexcept override { return below_->set_fd(fd); }
  int fd() noexcept override { return below_->fd(); }
  BufferEvent* underlying_one() noexcept override { return below_; }

  bufferevent_filter_cb process_in = &pass;
  bufferevent_filter_cb process_out = &pass;
  void (*free_context)(void*) = nullptr;
  void* context = nullptr;

 private:
  [[nodiscard]] bool input_full(bufferevent_flush_mode mode) const noexcept {
    return mode == BEV_NORMAL && wm_read.high != 0 && evbuffer_get_length(input) >= wm_read.high;
  }
  [[nodiscard]] bool output_full(bufferevent_flush_mode mode) const noexcept {
    return mode == BEV_NORMAL && below_->wm_write.high != 0 &&
           evbuffer_get_length(below_->output) >= below_->wm_write.high;
  }
  /// Return whether the user's function has processed bytes.
  bool filter_input(bufferevent_flush_mode mode) noexcept;
  bool filter_output(bufferevent_flush_mode mode) noexcept;
  bool filter_output_once(bufferevent_flush_mode mode, bufferevent_filter_result& result) noexcept;
  void read_below() noexcept;

  static Filter& filter(void* argument) noexcept {
    return static_cast<Filter&>(of(static_cast<bufferevent*>(argument)));
  }
  static void on_input(evbuffer* buffer, const evbuffer_cb_info* info, void* argument);
  static void on_output(evbuffer* buffer, const evbuffer_cb_info* info, void* argument);
  static void on_read(bufferevent* below, void* argument);
  static void on_write(bufferevent* below, void* argument);
  static void on_event(bufferevent* below, short kind, void* argument);

  BufferEvent* below_ = nullptr;
  evbuffer_cb_entry* input_callback_ = nullptr;
  evbuffer_cb_entry* output_callback_ = nullptr;
  /// Bytes wait because reading or writing is disabled or a buffer is full, not for more bytes.
  bool input_held_back_ = false;
  bool output_held_back_ = false;
};

bool Filter::attach(bufferevent* to, int chosen) noexcept {
  void* const self = static_cast<bufferevent*>(this);
  use_timeout_events();
  input_callback_ = evbuffer_add_cb(input, &on_input, self);
  output_callback_ = evbuffer_add_cb(output, &on_output, self);
  if (input_callback_ == nullptr || output_callback_ == nullptr) return false;
  // Invoked only while the input was full and bytes are left below.
  evbuffer_cb_clear_flags(input, input_callback_, EVBUFFER_CB_ENABLED);
  below_ = &of(to);
  if ((chosen & BEV_OPT_THREADSAFE) != 0) enable_locking(nullptr);
  bufferevent_setcb(to, &on_read, &on_write, &on_event, self);
  bufferevent_incref(to);
  bufferevent_enable(to, EV_READ | EV_WRITE);
  below_->suspend_reading(suspended::filter);
  return true;
}

int Filter::start(short events) noexcept {
  // Bytes that were held back cause no other event. The callbacks below process them, from the
  // loop.
  if ((events & EV_WRITE) != 0) {
    restart_write_timeout();
    if (output_held_back_) below_->trigger(EV_WRITE, BEV_OPT_DEFER_CALLBACKS);
  }
  if ((events & EV_READ) != 0) {
    restart_read_timeout();
    below_->resume_reading(suspended::filter);
    if (input_held_back_) below_->trigger(EV_READ, BEV_OPT_DEFER_CALLBACKS);
  }
  return 0;
}

int Filter::stop(short events) noexcept {
  if ((events & EV_WRITE) != 0) event_del(&ev_write);
  if ((events & EV_READ) != 0) {
    event_del(&ev_read);
    below_->suspend_reading(suspended::filter);
  }
  return 0;
}

void Filter::unlink() noexcept {
  if (below_ != nullptr) tambour::libevent::unlink_from(*below_, *this, &on_event);
}

void Filter::destruct() noexcept {
  if (free_context != nullptr) free_context(context);
  if (input_callback_ != nullptr) evbuffer_remove_cb_entry(input, input_callback_);
  if (output_callback_ != nullptr) evbuffer_remove_cb_entry(output, output_callback_);
}

bool Filter::filter_input(bufferevent_flush_mode mode) noexcept {
  if (mode == BEV_NORMAL && ((enabled & EV_READ) == 0 || input_full(mode))) {
    input_held_back_ = evbuffer_get_length(below_->input) != 0;
    return false;
  }
  bool processed = false;
  bufferevent_filter_result result = BEV_OK;
  do {
    ev_ssize_t bytes_max = -1;
    if (mode == BEV_NORMAL && wm_read.high != 0)
      bytes_max = static_cast<ev_ssize_t>(wm_read.high - evbuffer_get_length(input));
    result = process_in(below_->input, input, bytes_max, mode, context);
    processed = processed || result == BEV_OK;
  } while (result == BEV_OK && (enabled & EV_READ) != 0 &&
           evbuffer_get_length(below_->input) != 0 && !input_full(mode));
  input_held_back_ = result == BEV_OK && evbuffer_get_length(below_->input) != 0;
  if (processed) restart_read_timeout();
  return processed;
}

bool Filter::filter_output_once(bufferevent_flush_mode mode,
                                bufferevent_filter_result& result) noexcept {
  bool processed = false;
  do {
    ev_ssize_t bytes_max = -1;
    if (mode == BEV_NORMAL && below_->wm_write.high != 0)
      bytes_max =
          static_cast<ev_ssize_t>(below_->wm_write.high - evbuffer_get_length(below_->output));
    result = process_out(output, below_->output, bytes_max, mode, context);
    processed = processed || result == BEV_OK;
  } while (result == BEV_OK && (enabled & EV_WRITE) != 0 && evbuffer_get_length(output) != 0 &&
           !output_full(mode));
  return processed;
}

bool Filter::filter_output(bufferevent_flush_mode mode) noexcept {
  if (mode == BEV_NORMAL &&
      ((enabled & EV_WRITE) == 0 || output_full(mode) || evbuffer_get_length(output) == 0))
    return false;
  // The user's write callback may add bytes, which the loop below processes.
  evbuffer_cb_clear_flags(output, output_callback_, EVBUFFER_CB_ENABLED);
  bool processed = false;
  for (bool again = true; again;) {
    bufferevent_filter_result result = BEV_OK;
    const bool now = filter_output_once(mode, result);
    if (now) trigger(EV_WRITE, 0);
    again = now && result == BEV_OK && (enabled & EV_WRITE) != 0 &&
            evbuffer_get_length(output) != 0 && !output_full(mode);
    processed = processed || now;
    output_held_back_ = result == BEV_OK && evbuffer_get_length(output) != 0;
  }
  evbuffer_cb_set_flags(output, output_callback_, EVBUFFER_CB_ENABLED);
  if (processed) restart_write_timeout();
  return processed;
}

void Filter::read_below() noexcept {
  // The read callback may free this.
  const Held held(*this);
  if (filter_input(BEV_NORMAL)) trigger(EV_READ, 0);
  if (input_held_back_ && input_full(BEV_NORMAL))
    evbuffer_cb_set_flags(input, input_callback_, EVBUFFER_CB_ENABLED);
}

void Filter::on_input(evbuffer* /*buffer*/, const evbuffer_cb_info* /*info*/, void* argument) {
  Filter& self = filter(argument);
  const BevLocked locked(self);
  if (self.references == 0 || self.input_full(BEV_NORMAL)) return;
  evbuffer_cb_clear_flags(self.input, self.input_callback_, EVBUFFER_CB_ENABLED);
  if (evbuffer_get_length(self.below_->input) != 0) self.read_below();
}

void Filter::on_output(evbuffer* /*buffer*/, const evbuffer_cb_info* info, void* argument) {
  if (info->n_added == 0) return;
  Filter& self = filter(argument);
  const Held held(self);
  self.filter_output(BEV_NORMAL);
}

void Filter::on_read(bufferevent* /*below*/, void* argument) {
  Filter& self = filter(argument);
  const BevLocked locked(self);
  // Without references, the memory is about to be freed.
  if (self.references != 0) self.read_below();
}

void Filter::on_write(bufferevent* /*below*/, void* argument) {
  Filter& self = filter(argument);
  const BevLocked locked(self);
  if (self.references == 0) return;
  const Held held(self);
  self.filter_output(BEV_NORMAL);
}

void Filter::on_event(bufferevent* /*below*/, short kind, void* argument) {
  Filter& self = filter(argument);
  const BevLocked locked(self);
  if (self.references == 0) return;
  const Held held(self);
  self.run_event_callback(kind, 0);
}

int Filter::flush(short events, bufferevent_flush_mode mode) noexcept {
  bool processed = false;
  if ((events & EV_READ) != 0) processed = filter_input(mode);
  if ((events & EV_WRITE) != 0) processed = filter_output(mode) || processed;
  // The user's functions decide when to write what is left below.
  bufferevent_flush(below_, events, mode);
  return processed ? 1 : 0;
}

}  // namespace

bufferevent* bufferevent_filter_new(bufferevent* underlying, bufferevent_filter_cb input_filter,
                                    bufferevent_filter_cb output_filter, int options,
                                    void (*free_context)(void*), void* ctx) {
  if (underlying == nullptr) return nullptr;
  auto* const buffer_event =
      BufferEvent::make<Filter>(underlying->ev_base, options & ~BEV_OPT_THREADSAFE);
  if (buffer_event == nullptr) return nullptr;
  if (input_filter != nullptr) buffer_event->process_in = input_filter;
  if (output_filter != nullptr) buffer_event->process_out = output_filter;
  if (!buffer_event->attach(underlying, options)) {
    bufferevent_free(buffer_event);
    return nullptr;
  }
  buffer_event->free_context = free_context;
  buffer_event->context = ctx;
  return buffer_event;
}
