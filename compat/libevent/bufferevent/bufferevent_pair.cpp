// Pairs of bufferevents: what is written to one is read from the other.

#include <algorithm>

#include <event2/buffer.h>

#include "libevent/bufferevent/bufferevent.h"

using tambour::libevent::BufferEvent;
using tambour::libevent::Held;
using tambour::libevent::of;

extern "C" const bufferevent_ops bufferevent_ops_pair = {"pair_elt"};

namespace {

class Pair final : public BufferEvent {
 public:
  Pair() noexcept : BufferEvent(bufferevent_ops_pair) {}

  static Pair* make_end(event_base* base, int options) noexcept;

  int start(short events) noexcept override;
  int stop(short events) noexcept override;
  int adjust_timeouts() noexcept override { return adjust_timeout_events(); }
  void unlink() noexcept override;
  void destruct() noexcept override;
  int flush(short events, bufferevent_flush_mode mode) noexcept override;

  Pair* partner = nullptr;

 private:
  /// Whether there are bytes that the partner reads.
  [[nodiscard]] bool has_bytes_for(const Pair& reader) const noexcept {
    return (enabled & EV_WRITE) != 0 && (reader.enabled & EV_READ) != 0 &&
           reader.read_suspended == 0 && evbuffer_get_length(output) != 0;
  }
  void transfer(Pair& into, bool ignore_watermark) noexcept;
  static void on_output(evbuffer* output, const evbuffer_cb_info* info, void* argument);

  Pair* unlinked_ = nullptr;  ///< The former partner, as long as both exist.
};

/// Holds both ends, if there are two. They have the same lock.
class BothHeld {
 public:
  explicit BothHeld(Pair& one) noexcept : one_(one), partner_(one.partner) {
    one_.acquire();
    if (partner_ != nullptr) partner_->acquire();
  }
  BothHeld(const BothHeld&) = delete;
  BothHeld& operator=(const BothHeld&) = delete;
  ~BothHeld() {
    if (partner_ != nullptr) partner_->release();
    one_.release();
  }

 private:
  Pair& one_;
  Pair* partner_;
};

Pair* Pair::make_end(event_base* base, int options) noexcept {
  Pair* const pair = make<Pair>(base, options);
  if (pair == nullptr) return nullptr;
  pair->use_timeout_events();
  if (evbuffer_add_cb(pair->output, &on_output, static_cast<bufferevent*>(pair)) == nullptr) {
    bufferevent_free(pair);
    return nullptr;
  }
  return pair;
}

void Pair::transfer(Pair& into, bool ignore_watermark) noexcept {
  evbuffer_unfreeze(output, 1);
  evbuffer_unfreeze(into.input, 0);
  std::size_t size = evbuffer_get_length(output);
  bool allowed = true;
  if (into.wm_read.high != 0) {
    const std::size_t there = evbuffer_get_length(into.input);
    if (there < into.wm_read.high) {
      size = into.wm_read.high - there;
    } else {
      allowed = ignore_watermark;
    }
  }
  if (allowed) {
    evbuffer_remove_buffer(output, into.input, size);
    if (size != 0) {
      into.restart_read_timeout();
      if (evbuffer_get_length(into.output) != 0) {
        into.restart_write_timeout();
      } else {
        event_del(&into.ev_write);
      }
    }
    into.trigger(EV_READ, 0);
    trigger(EV_WRITE, 0);
  }
  evbuffer_freeze(output, 1);
  evbuffer_freeze(into.input, 0);
}

void Pair::on_output(evbuffer* /*output*/, const evbuffer_cb_info* info, void* argument) {
  auto& pair = static_cast<Pair&>(of(static_cast<bufferevent*>(argument)));
  const BothHeld held(pair);
  Pair* const partner = pair.partner;
  if (info->n_added > info->n_deleted && partner != nullptr && pair.has_bytes_for(*partner))
    pair.transfer(*partner, false);
}

int Pair::start(short events) noexcept {
  const BothHeld held(*this);
  if ((events & EV_READ) != 0) restart_read_timeout();
  if ((events & EV_WRITE) != 0 && evbuffer_get_length(output) != 0) restart_write_timeout();
  if ((events & EV_READ) != 0 && partner != nullptr && partner->has_bytes_for(*this))
    partner->transfer(*this, false);
  if ((events & EV_WRITE) != 0 && partner != nullptr && has_bytes_for(*partner))
    transfer(*partner, false);
  return 0;
}

int Pair::stop(short events) noexcept {
  if ((events & EV_READ) != 0) event_del(&ev_read);
  if ((events & EV_WRITE) != 0) event_del(&ev_write);
  return 0;
}

void Pair::unlink() noexcept {
  if (partner == nullptr) return;
  unlinked_ = partner;
  partner->unlinked_ = this;
  partner->partner = nullptr;
  partner = nullptr;
}

void Pair::destruct() noexcept {
  if (unlinked_ == nullptr) return;
  // The lock belongs to one end and protects both.
  if (owns_lock) unlinked_->owns_lock = true;
  owns_lock = false;
  unlinked_->unlinked_ = nullptr;
}

int Pair::flush(short events, bufferevent_flush_mode mode) noexcept {
  if (partner == nullptr) return -1;
  if (mode == BEV_NORMAL) return 0;
  const BothHeld held(*this);
  Pair& other = *partner;
  if ((events & EV_READ) != 0) other.transfer(*this, true);
  if ((events & EV_WRITE) != 0) transfer(other, true);
  if (mode == BEV_FINISHED) {
    int kind = BEV_EVENT_EOF;
    if ((events & EV_READ) != 0) kind |= BEV_EVENT_WRITING;
    if ((events & EV_WRITE) != 0) kind |= BEV_EVENT_READING;
    other.run_event_callback(static_cast<short>(kind), 0);
  }
  return 0;
}

}  // namespace

int bufferevent_pair_new(event_base* base, int options, bufferevent* pair[2]) {
  // Without deferring, two callbacks that write would call each other without end.
  options |= BEV_OPT_DEFER_CALLBACKS;
  Pair* const one = Pair::make_end(base, options);
  if (one == nullptr) return -1;
  Pair* const other = Pair::make_end(base, options & ~BEV_OPT_THREADSAFE);
  if (other == nullptr) {
    bufferevent_free(one);
    return -1;
  }
  if ((options & BEV_OPT_THREADSAFE) != 0) other->enable_locking(one->lock);
  one->partner = other;
  other->partner = one;
  for (Pair* const end : {one, other}) {
    evbuffer_freeze(end->input, 0);
    evbuffer_freeze(end->output, 1);
  }
  pair[0] = one;
  pair[1] = other;
  return 0;
}

bufferevent* bufferevent_pair_get_partner(bufferevent* bev) {
  if (bev->be_ops != &bufferevent_ops_pair) return nullptr;
  const Held held(of(bev));
  return static_cast<Pair&>(of(bev)).partner;
}
