// TopicShard: the delivery of a topic's messages to the subscribers of one loop.
#include "http/websocket/topic_shard.h"

#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include "base/clock.h"
#include "loop/core.h"

namespace tambour::http::detail::websocket {

struct TopicShard::Member final : Subscriber, tambour::detail::ListHook<TopicShard::Member> {
  Member(TopicShard& owner, Connection& subscribed, const void* topic, std::size_t position)
      : Subscriber(topic),
        shard(owner.shared_from_this()),
        connection(subscribed),
        id(owner.shared_->next_id.fetch_add(1, std::memory_order_relaxed)),
        number(owner.last_number_),
        index(position) {
    const auto& compression = owner.shared_->options.compression;
    gets_compressed = compression && subscribed.accepts_window(compression->window_bits);
  }
  void connection_has_room() noexcept override {
    if (next == nullptr) return;
    const std::shared_ptr<TopicShard> kept = shard;
    kept->advance(*this, next);
    kept->end_progress();
  }
  void connection_ends() noexcept override {
    const std::shared_ptr<TopicShard> kept = shard;
    kept->leave(*this);
  }

  std::shared_ptr<TopicShard> shard;
  Connection& connection;
  std::uint64_t id;
  std::uint64_t number;          ///< Of the last message that it has got, or lost.
  std::size_t index;             ///< In members_.
  TopicMessage* next = nullptr;  ///< Not null: it is in behind_.
  bool gets_compressed = false;
};

TopicShard::~TopicShard() { tambour::detail::server::DeleteMessages<TopicMessage>()(first_); }

void TopicShard::add(Connection& connection, const void* topic) {
  if (!connection.is_open() || connection.has_begun_close()) return;
  if (connection.find_subscriber(topic) != nullptr) return;
  const WebSocketTopicOptions& options = shared_->options;
  if (!deadline_ && options.when_slow == WhenSubscriberSlow::delay_publisher)
    deadline_.emplace(loop_, [this] { check_deadline(); });
  // reserve() alone would make a copy for each member.
  if (members_.size() == members_.capacity()) members_.reserve(2 * members_.size() + 1);
  auto* const member = new Member(*this, connection, topic, members_.size());
  members_.push_back(member);
  connection.add_subscriber(*member);
  size_.fetch_add(1, std::memory_order_relaxed);
  shared_->subscribers.fetch_add(1, std::memory_order_relaxed);
  if (member->gets_compressed) shared_->compressing.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t TopicShard::id_of(const Connection& connection, const void* topic) noexcept {
  const Subscriber* const subscriber = connection.find_subscriber(topic);
  return subscriber != nullptr ? static_cast<const Member*>(subscriber)->id : 0;
}

void TopicShard::remove(Connection& connection, const void* topic) noexcept {
  if (Subscriber* const subscriber = connection.find_subscriber(topic))
    subscriber->connection_ends();
}

/// Destroys the subscriber, which is not in members_ any more.
void TopicShard::take_out(Member& member) noexcept {
  set_next(member, nullptr);
  size_.fetch_sub(1, std::memory_order_relaxed);
  if (member.gets_compressed) shared_->compressing.fetch_sub(1, std::memory_order_relaxed);
  delete &member;
}

void TopicShard::leave(Member& member) noexcept {
  const std::size_t index = member.index;
  members_[index] = nullptr;
  take_out(member);
  if (!is_delivering_) {
    members_[index] = members_.back();
    members_.pop_back();
    if (index < members_.size()) members_[index]->index = index;
    end_progress();
    if (members_.empty()) deadline_.reset();
  }
  if (shared_->subscribers.fetch_sub(1, std::memory_order_acq_rel) == 1 && shared_->on_empty)
    shared_->on_empty();
}

void TopicShard::clear() noexcept {
  const std::shared_ptr<TopicShard> kept = shared_from_this();
  for (Member*& member : members_) {
    if (member != nullptr) take_out(*std::exchange(member, nullptr));
  }
  if (is_delivering_) return;
  members_.clear();
  trim();
  deadline_.reset();
}

void TopicShard::compact() noexcept {
  std::size_t kept = 0;
  for (Member* const member : members_) {
    if (member == nullptr) continue;
    member->index = kept;
    members_[kept++] = member;
  }
  members_.resize(kept);
  if (kept == 0) deadline_.reset();
}

bool TopicShard::push(const TopicFrames& frames, std::uint64_t excepted) {
  const WebSocketTopicOptions& options = shared_->options;
  if (options.when_slow != WhenSubscriberSlow::delay_publisher &&
      queue_.bytes() >= options.backlog_bytes_max) {
    shared_->dropped.fetch_add(size(), std::memory_order_relaxed);
    return false;
  }
  std::unique_ptr<TopicMessage> message(
      new TopicMessage{.frames = {.plain = frames.plain.slice(),
                                  .compressed = frames.compressed.slice(),
                                  .bytes = frames.bytes},
                       .excepted = excepted});
  held_bytes_.fetch_add(message->memory_bytes(), std::memory_order_seq_cst);
  queue_.push(std::move(message));
  post_delivery();
  return true;
}

void TopicShard::post_delivery() {
  queue_.post(loop_, [this] { return [self = shared_from_this()] { self->run(); }; });
}

void TopicShard::close() noexcept {
  is_closed_.store(true, std::memory_order_release);
  if (size() == 0) return;
  if (tambour::detail::loop::core_of(loop_).in_group_thread()) return clear();
  try {
    post_delivery();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // The subscribers stay until they end. They receive nothing.
  }
}

void TopicShard::run() noexcept {
  queue_.begin_delivery();
  // What was queued when the topic was destroyed is lost.
  if (is_closed_.load(std::memory_order_acquire)) return clear();
  if (Queue::Messages messages = queue_.take()) deliver(std::move(messages));
  if (is_closed_.load(std::memory_order_acquire)) clear();
}

void TopicShard::deliver(Queue::Messages messages) noexcept {
  TopicMessage* const first = messages.release();
  (last_ != nullptr ? last_->next : first_) = first;
  for (TopicMessage* message = first; message != nullptr; message = message->next) {
    message->number = ++last_number_;
    message->taken_at = loop_.now();
    backlog_bytes_ += message->memory_bytes();
    last_ = message;
  }
  is_delivering_ = true;
  // A write that fails may resume a task, which may add and remove subscribers.
  const std::size_t size = members_.size();
  const std::uint64_t number = first->number;
  const auto member_at = [&](std::size_t at) { return at < size ? members_[at] : nullptr; };
  for (std::size_t i = 0; i < size; ++i) {
    Member* const member = members_[i];
    if (const Member* const later = member_at(i + 2)) __builtin_prefetch(&later->number);
    if (const Member* const next = member_at(i + 1)) next->connection.prefetch_for_message();
    if (member != nullptr && member->next == nullptr && member->number < number)
      advance(*member, first);
  }
  is_delivering_ = false;
  compact();
  end_progress();
}

/// Sends the messages from `from` on, until the connection has no room. May destroy the member.
void TopicShard::advance(Member& member, TopicMessage* from) noexcept {
  Connection& connection = member.connection;
  const std::size_t unsent_bytes_max = shared_->options.unsent_bytes_max;
  TopicMessage* message = from;
  std::uint64_t sent = 0;
  bool has_failed = false;
  for (; message != nullptr; message = message->next) {
    if (message->excepted != member.id) {
      if (!connection.can_queue_message() || connection.unsent_bytes() >= unsent_bytes_max) break;
      const TopicFrames& frames = message->frames;
      const bool is_compressed = member.gets_compressed && !frames.compressed.empty();
      const Connection::SharedMessage shared{
          .frame = is_compressed ? frames.compressed : frames.plain,
          .bytes = frames.bytes,
          .is_compressed = is_compressed};
      try {
        // Several messages are written together.
        const bool is_single = message->next == nullptr && sent == 0;
        if (!is_single || !connection.write_message(shared)) connection.queue_message(shared);
      } catch (const std::bad_alloc&) {
        has_failed = true;
        break;
      }
      ++sent;
    }
    member.number = message->number;
  }
  set_next(member, message);
  shared_->sent.fetch_add(sent, std::memory_order_relaxed);
  if (has_failed) return connection.fail_sending(system_error(ENOMEM));
  if (sent > 0) connection.start_writing();
}

void TopicShard::set_next(Member& member, TopicMessage* next) noexcept {
  if (member.next == next) return;
  if (next != nullptr) ++next->waiting;
  if (member.next != nullptr) --member.next->waiting;
  auto& hook = static_cast<tambour::detail::ListHook<Member>&>(member);
  if (next == nullptr) hook.unlink();
  if (next != nullptr && !hook.linked()) behind_.push_back(member);
  member.next = next;
}

/// After messages were sent, or subscribers have left.
void TopicShard::end_progress() noexcept {
  if (is_delivering_) return;
  trim();
  if (shared_->options.when_slow != WhenSubscriberSlow::delay_publisher) return limit_backlog();
  if (first_ == nullptr || !deadline_ || deadline_->is_started()) return;
  const Duration timeout = shared_->options.delivery_timeout;
  if (timeout > Duration::zero())
    deadline_->start_at(tambour::detail::base::saturating_add(first_->taken_at, timeout));
}

/// Removes the messages that no subscriber waits for.
void TopicShard::trim() noexcept {
  std::size_t freed = 0;
  while (first_ != nullptr && first_->waiting == 0) {
    freed += first_->memory_bytes();
    delete std::exchange(first_, first_->next);
  }
  if (freed == 0) return;
  if (first_ == nullptr) last_ = nullptr;
  backlog_bytes_ -= freed;
  held_bytes_.fetch_sub(freed, std::memory_order_seq_cst);
  shared_->notify_publishers();
}

void TopicShard::limit_backlog() noexcept {
  const WebSocketTopicOptions& options = shared_->options;
  while (first_ != nullptr && backlog_bytes_ > options.backlog_bytes_max) {
    if (options.when_slow == WhenSubscriberSlow::close) {
      close_front();
      trim();
      continue;
    }
    TopicMessage& lost = *first_;
    std::uint64_t dropped = 0;
    Member* next = behind_.front();
    while (Member* const member = next) {
      next = behind_.after(*member);
      if (member->next != &lost) continue;
      if (lost.excepted != member->id) {
        ++dropped;
        member->connection.count_dropped(1);
      }
      member->number = lost.number;
      set_next(*member, lost.next);
    }
    shared_->dropped.fetch_add(dropped, std::memory_order_relaxed);
    trim();
  }
}

/// Closes the subscribers that wait for the first message.
void TopicShard::close_front() noexcept {
  Behind slow;
  Member* next = behind_.front();
  while (Member* const member = next) {
    next = behind_.after(*member);
    if (member->next != first_) continue;
    static_cast<tambour::detail::ListHook<Member>&>(*member).unlink();
    slow.push_back(*member);
  }
  // Closing one may resume tasks that close others.
  is_delivering_ = true;
  while (Member* const member = slow.front()) {
    shared_->closed.fetch_add(1, std::memory_order_relaxed);
    member->connection.close_slow();  // Destroys it.
  }
  is_delivering_ = false;
  compact();
}

void TopicShard::check_deadline() noexcept {
  const std::shared_ptr<TopicShard> kept = shared_from_this();
  const auto is_overdue = [this] {
    return first_ != nullptr &&
           tambour::detail::base::saturating_add(first_->taken_at,
                                                 shared_->options.delivery_timeout) <= loop_.now();
  };
  while (is_overdue()) {
    close_front();
    trim();
  }
  end_progress();
}

}  // namespace tambour::http::detail::websocket
