// The calls on descriptors and on the loop that an input can make, each with its report to the
// model.
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "fuzz/player_handles.h"

namespace tambour::fuzz {

void Player::act() {
  if (++calls_ > 4000) return;
  const std::uint8_t kind = input_.byte();
  if (kind >= 160 && kind % 16 == 14) return act_on_wall_timer();
  if (kind >= 208 && kind % 16 == 15) return reopen();
  switch (kind % 16) {
    case 0:
    case 1:
      return act_on_running();
    case 2:
    case 3:
    case 4:
    case 5:
      return act_on_watcher();
    case 6:
    case 7:
    case 8:
      return act_on_timer();
    case 9:
    case 10:
    case 11:
      return act_on_file();
    case 12:
      return act_on_hook();
    case 13:
      return act_on_async();
    case 14:
      return act_on_signal();
    default:
      return act_on_loop();
  }
}

// --- Descriptors.

void Player::open_files() {
  int fds[2];
  const Channel channel = input_.below(4) == 3 ? Channel::pipe : Channel::stream;
  File* free[2] = {};
  int found = 0;
  for (File& file : files_) {
    if (file.fd < 0 && found < 2) free[found++] = &file;
  }
  if (found < 2 || !descriptors_->open(channel, fds)) return;
  ++channels_;
  for (int side = 0; side < 2; ++side) {
    *free[side] = {.fd = fds[side], .channel = channels_, .side = side};
    announced_[fds[side]] = false;
  }
  note("open " + std::to_string(fds[0]) + " and " + std::to_string(fds[1]));
}

void Player::close_file(File& file) {
  for (auto& slot : watchers_) {
    if (slot.handle == nullptr || model_.at(slot.id).fd != file.fd) continue;
    if (!model_.at(slot.id).started) continue;
    note("stop " + std::to_string(slot.id) + ", whose descriptor is about to be closed");
    slot.handle->stop();
    model_.stop(slot.id);
  }
  note("close " + std::to_string(file.fd));
  announced_[file.fd] = false;
  descriptors_->close(std::exchange(file.fd, -1));
}

void Player::write(const File& file, std::size_t size) {
  for (const File& peer : files_) {
    if (peer.fd < 0 || peer.channel != file.channel || peer.side == file.side) continue;
    for (auto& [id, item] : model_.items()) {
      if (item.kind != Kind::watcher || !item.started || item.fd != peer.fd || !item.edge) continue;
      if ((descriptors_->ready(peer.fd) & unsigned(Events::read)) == 0) item.fresh_read = true;
    }
  }
  note("write " + std::to_string(size) + " bytes to " + std::to_string(file.fd));
  descriptors_->write(file.fd, size);
}

void Player::act_on_file() {
  File& file = files_[input_.below(files_.size())];
  const std::size_t kind = input_.below(12);
  if (file.fd < 0) return open_files();
  touched_.insert(file.channel);
  switch (kind) {
    case 0:
    case 1:
    case 2:
    case 3:
      return write(file, 1 + input_.below(4));
    case 4:
    case 5: {
      const std::size_t size = input_.flag() ? 4096 : 1;
      note("read " + std::to_string(size) + " bytes from " + std::to_string(file.fd));
      return descriptors_->read(file.fd, size);
    }
    case 6: {
      const int mode = int(input_.below(3));
      note("shutdown " + std::to_string(file.fd) + ", " + std::to_string(mode));
      return descriptors_->shutdown(file.fd, mode);
    }
    case 7:
      return close_file(file);
    case 8:
      close_file(file);
      return open_files();
    case 9:
      note("fill " + std::to_string(file.fd));
      write(file, 1);
      for (int i = 0; i < 64; ++i) descriptors_->write(file.fd, 4096);
      return;
    default:
      for (File& free : files_) {
        if (free.fd >= 0) continue;
        const int copy = descriptors_->dup(file.fd);
        if (copy < 0) return;
        free = {.fd = copy, .channel = file.channel, .side = file.side};
        announced_[copy] = false;
        note("dup " + std::to_string(file.fd) + " to " + std::to_string(copy));
        return;
      }
  }
}

// --- The loop.

/// All deadlines were shifted by the time since suspend_timers(), which was called between the two
/// given times.
void Player::check_resumed(std::int64_t suspended_from, std::int64_t suspended_to) {
  const std::int64_t now = loop_->now().time_since_epoch().count();
  for (auto& slot : timers_) {
    if (slot.handle == nullptr) continue;
    Item& item = model_.at(slot.id);
    if (!item.started || (item.due != Due::no && !item.repeating)) continue;
    const std::int64_t deadline = slot.handle->deadline().time_since_epoch().count();
    check(deadline >= after(item.deadline, Duration(now - suspended_to)) &&
              deadline <= after(item.deadline, Duration(now - suspended_from)),
          "a deadline after resume_timers()");
    item.deadline = deadline;
  }
}

/// Reopens the loop, as a child does after fork(2). Not allowed inside a callback.
void Player::reopen() {
  if (state_ != State::outside) return;
  note("reopen after a fork");
  check(loop_->after_fork().has_value(), "after_fork()");
  model_.reopened();
}

void Player::act_on_loop() {
  switch (input_.below(12)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      const std::uint32_t task = ++tasks_;
      note("post " + std::to_string(task));
      loop_->post([this, task] { task_called(task); });
      return model_.posted(task);
    }
    case 4:
    case 5: {
      const File& file = files_[input_.below(files_.size())];
      const Events fed = Events(std::uint16_t(events()) | (input_.below(4) == 3 ? 8 : 0));
      note("feed " + std::to_string(unsigned(fed)) + " to " + std::to_string(file.fd));
      feed_fd(*loop_, file.fd, fed);
      return file.fd < 0 ? void() : model_.feed(file.fd, fed);
    }
    case 6: {
      const Duration time = std::chrono::microseconds(input_.byte());
      note("suspend for " + text(time));
      const std::int64_t before = descriptors_->now_ns();
      suspend_timers(*loop_);
      const std::int64_t after = descriptors_->now_ns();
      descriptors_->spend(time);
      resume_timers(*loop_);
      return check_resumed(before, after);
    }
    case 7:
      if (references_ >= 2) return;
      ++references_;
      note("ref");
      return loop_->ref();
    case 8:
      if (references_ <= -2) return;
      --references_;
      note("unref");
      return loop_->unref();
    case 9: {
      const Duration time = std::chrono::microseconds(input_.byte());
      note("spend " + text(time));
      return descriptors_->spend(time);
    }
    case 10:
      switch (input_.below(4)) {
        case 0:
          note("update_now");
          return loop_->update_now();
        case 1:
          note("wake");
          loop_->wake();
          return model_.disturb();
        case 2:
          note("set_pending_runner");
          return set_pending_runner(*loop_, [this] { run_pending(*loop_); });
        default:
          note("set_pending_runner: none");
          return set_pending_runner(*loop_, {});
      }
    default:
      note("stop the loop");
      stopping_ = true;
      return loop_->stop();
  }
}

}  // namespace tambour::fuzz
