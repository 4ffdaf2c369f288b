// ConnectionGroup: each loop has a shard with its members, and a message visits every shard once.
#include <tambour/net/connection_group.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include <tambour/loop/event_loop.h>
#include <tambour/threads/loop_group.h>

#include "base/check.h"
#include "loop/core.h"
#include "net/connection/owner.h"
#include "server/fan_out_queue.h"

namespace tambour {

namespace detail::server {

/// The members of a group on one loop, and the messages for them. Owned by the group, by the task
/// that takes the messages, and by the members, so that it lives until a loop has removed these.
class GroupShard : public std::enable_shared_from_this<GroupShard> {
 public:
  /// What all shards of a group share.
  struct Shared {
    ConnectionGroupOptions options;
    std::atomic<std::uint64_t> next_id{1};
  };

  GroupShard(EventLoop& loop, std::shared_ptr<Shared> shared) noexcept
      : loop_(loop), shared_(std::move(shared)) {}
  GroupShard(const GroupShard&) = delete;
  GroupShard& operator=(const GroupShard&) = delete;
  ~GroupShard() = default;

  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }

  // On any thread.

  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  void add_to(ConnectionGroupStats& stats) const noexcept {
    stats.sent += sent_.load(std::memory_order_relaxed);
    stats.skipped += skipped_.load(std::memory_order_relaxed);
    stats.closed += closed_.load(std::memory_order_relaxed);
  }
  /// Queues a message for the members except the one with the id `excepted`. Returns false if the
  /// queue is full.
  [[nodiscard]] bool push(Buffer&& message, std::uint64_t excepted);
  /// The group is destroyed: drops the members and the messages.
  void close() noexcept;

  // On the thread of the loop.

  void add(Connection& connection);
  void remove(Connection& connection) noexcept;
  /// 0 if the connection is not a member.
  [[nodiscard]] std::uint64_t id_of(const Connection& connection) const noexcept;

 private:
  struct Member;
  struct Entry {
    Connection* connection;  ///< Null if it has left during a delivery.
    Member* member;
  };
  struct Message {
    static constexpr std::size_t overhead = 128;  ///< About the memory that it allocates.

    Buffer bytes;
    std::uint64_t excepted = 0;
    Message* next = nullptr;
    std::size_t count = 1;  ///< How many messages the bytes are.

    [[nodiscard]] std::size_t memory_bytes() const noexcept { return overhead + bytes.size(); }
  };
  using Queue = FanOutQueue<Message>;

  void post_delivery();
  void run();
  /// Appends each message to the one before it, if both are for the same members: a member then
  /// gets them with one system call.
  static void combine(Message& first) noexcept;
  void deliver(Queue::Messages messages, std::exception_ptr& thrown);
  void send_to(Connection& connection, const Message& message, ConnectionGroupStats& counts);
  void leave(const Member& member) noexcept;
  void clear() noexcept;
  void compact() noexcept;

  EventLoop& loop_;
  std::shared_ptr<Shared> shared_;

  Queue queue_;
  std::atomic<bool> is_closed_{false};
  std::atomic<std::size_t> size_{0};
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> skipped_{0};
  std::atomic<std::uint64_t> closed_{0};

  // Used on the thread of the loop.
  std::vector<Entry> members_;
  bool delivers_ = false;
  bool must_deliver_again_ = false;
};

struct GroupShard::Member final : net::ConnectionObserver {
  Member(GroupShard& owner, Connection& connection, std::uint64_t number, std::size_t position)
      : ConnectionObserver(&owner), shard(owner.shared_from_this()), id(number), index(position) {
    observe(connection);
  }
  void connection_leaves() noexcept override {
    const std::shared_ptr<GroupShard> kept = shard;
    kept->leave(*this);
  }

  std::shared_ptr<GroupShard> shard;
  std::uint64_t id;
  std::size_t index;  ///< In members_.
};

void GroupShard::add(Connection& connection) {
  if (!connection.is_open() || id_of(connection) != 0) return;
  members_.push_back({&connection, nullptr});
  try {
    const std::uint64_t id = shared_->next_id.fetch_add(1, std::memory_order_relaxed);
    members_.back().member = new Member(*this, connection, id, members_.size() - 1);
  } catch (...) {
    members_.pop_back();
    throw;
  }
  size_.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t GroupShard::id_of(const Connection& connection) const noexcept {
  const auto* const observer = net::ConnectionObserver::find(connection, this);
  return observer != nullptr ? static_cast<const Member*>(observer)->id : 0;
}

void GroupShard::remove(Connection& connection) noexcept {
  if (auto* const observer = net::ConnectionObserver::find(connection, this))
    leave(static_cast<Member&>(*observer));
}

void GroupShard::leave(const Member& member) noexcept {
  const std::size_t index = member.index;
  members_[index].connection = nullptr;
  delete std::exchange(members_[index].member, nullptr);
  size_.fetch_sub(1, std::memory_order_relaxed);
  if (delivers_) return;
  members_[index] = members_.back();
  members_.pop_back();
  if (index < members_.size()) members_[index].member->index = index;
}

void GroupShard::clear() noexcept {
  const std::shared_ptr<GroupShard> kept = shared_from_this();
  for (Entry& entry : members_) {
    entry.connection = nullptr;
    delete std::exchange(entry.member, nullptr);
  }
  size_.store(0, std::memory_order_relaxed);
  if (!delivers_) members_.clear();
}

void GroupShard::compact() noexcept {
  std::size_t kept = 0;
  for (const Entry& entry : members_) {
    if (entry.connection == nullptr) continue;
    entry.member->index = kept;
    members_[kept++] = entry;
  }
  members_.resize(kept);
}

bool GroupShard::push(Buffer&& message, std::uint64_t excepted) {
  if (queue_.bytes() >= shared_->options.queued_bytes_max) {
    skipped_.fetch_add(size(), std::memory_order_relaxed);
    return false;
  }
  auto queued = std::make_unique<Message>();
  queued->bytes = std::move(message);
  queued->excepted = excepted;
  queue_.push(std::move(queued));
  post_delivery();
  return true;
}

void GroupShard::post_delivery() {
  queue_.post(loop_, [this] { return [self = shared_from_this()] { self->run(); }; });
}

void GroupShard::close() noexcept {
  is_closed_.store(true, std::memory_order_release);
  if (size() == 0) return;
  if (loop::core_of(loop_).in_group_thread()) return clear();
  try {
    post_delivery();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // The members stay until they end. They receive nothing.
  }
}

void GroupShard::run() {
  queue_.begin_delivery();
  if (delivers_) {  // A callback runs the loop.
    must_deliver_again_ = true;
    return;
  }
  // What was queued when the group was destroyed is lost.
  if (is_closed_.load(std::memory_order_acquire)) return clear();
  std::exception_ptr thrown;
  // Once, although messages may have arrived meanwhile: they must not keep the loop from the rest.
  if (Queue::Messages messages = queue_.take()) deliver(std::move(messages), thrown);
  if (is_closed_.load(std::memory_order_acquire)) clear();
  if (std::exchange(must_deliver_again_, false)) post_delivery();
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void GroupShard::combine(Message& first) noexcept {
  for (Message* message = &first; message != nullptr; message = message->next) {
    Message* next = message->next;
    try {
      for (; next != nullptr && next->excepted == message->excepted; next = message->next) {
        message->bytes.append(std::move(next->bytes));
        message->count += next->count;
        message->next = std::exchange(next->next, nullptr);
        delete next;
      }
    } catch (const std::exception&) {
      return;  // The rest is sent message by message.
    }
  }
}

void GroupShard::deliver(Queue::Messages messages, std::exception_ptr& thrown) {
  combine(*messages);
  ConnectionGroupStats counts;
  delivers_ = true;
  // Callbacks may remove members, and add some, which get later messages only.
  const std::size_t size = members_.size();
  for (std::size_t i = 0; i < size; ++i) {
    for (const Message* message = messages.get(); message != nullptr; message = message->next) {
      const Entry entry = members_[i];
      if (entry.connection == nullptr) break;
      if (message->excepted == entry.member->id) continue;
      try {
        send_to(*entry.connection, *message, counts);
      } catch (...) {
        if (thrown == nullptr) thrown = std::current_exception();
      }
    }
  }
  delivers_ = false;
  compact();
  sent_.fetch_add(counts.sent, std::memory_order_relaxed);
  skipped_.fetch_add(counts.skipped, std::memory_order_relaxed);
  closed_.fetch_add(counts.closed, std::memory_order_relaxed);
}

void GroupShard::send_to(Connection& connection, const Message& message,
                         ConnectionGroupStats& counts) {
  const ConnectionGroupOptions& options = shared_->options;
  if (connection.unsent() >= options.unsent_bytes_max) {
    if (options.when_slow == WhenSlow::close) {
      ++counts.closed;
      return net::ConnectionObserver::close(connection, ENOBUFS);
    }
    counts.skipped += message.count;
    if (options.on_skip) options.on_skip(connection, message.count);
    return;
  }
  Buffer bytes;
  try {
    bytes = message.bytes.slice();
  } catch (const std::bad_alloc&) {
    return net::ConnectionObserver::close(connection, ENOMEM);
  }
  counts.sent += message.count;
  connection.send(std::move(bytes));
}

}  // namespace detail::server

ConnectionGroup::ConnectionGroup(EventLoop& loop, ConnectionGroupOptions options) {
  auto shared = std::make_shared<detail::server::GroupShard::Shared>(std::move(options));
  shards_.push_back(std::make_shared<detail::server::GroupShard>(loop, std::move(shared)));
}

ConnectionGroup::ConnectionGroup(LoopGroup& loops, ConnectionGroupOptions options) {
  const auto shared = std::make_shared<detail::server::GroupShard::Shared>(std::move(options));
  shards_.reserve(loops.size());
  for (std::size_t i = 0; i < loops.size(); ++i)
    shards_.push_back(std::make_shared<detail::server::GroupShard>(loops[i], shared));
}

ConnectionGroup::~ConnectionGroup() {
  for (const auto& shard : shards_) shard->close();
}

detail::server::GroupShard* ConnectionGroup::shard_of(const Connection& connection) const noexcept {
  for (const auto& shard : shards_) {
    if (&shard->loop() == &connection.loop()) return shard.get();
  }
  return nullptr;
}

void ConnectionGroup::add(Connection& connection) {
  detail::server::GroupShard* const shard = shard_of(connection);
  if (shard == nullptr) [[unlikely]]
    detail::base::fail_check(
        "ConnectionGroup::add(): the loop of connection fd %d is not one of the group's; make the "
        "group with the LoopGroup or the EventLoop that the server uses",
        connection.fd());
  shard->add(connection);
}

void ConnectionGroup::remove(Connection& connection) noexcept {
  if (detail::server::GroupShard* const shard = shard_of(connection)) shard->remove(connection);
}

bool ConnectionGroup::contains(const Connection& connection) const noexcept {
  const detail::server::GroupShard* const shard = shard_of(connection);
  return shard != nullptr && shard->id_of(connection) != 0;
}

bool ConnectionGroup::queue(const Buffer& message, std::uint64_t excepted) {
  if (message.empty()) return true;
  // A copy if it is short: a queue of short messages must not hold a block of 4 KiB for each.
  const Buffer compact = message.slice(0, message.size());
  bool all = true;
  for (const auto& shard : shards_) {
    if (shard->size() > 0 && !shard->push(compact.slice(), excepted)) all = false;
  }
  return all;
}

bool ConnectionGroup::send(Buffer message) { return queue(message, 0); }

bool ConnectionGroup::send_except(const Connection& excepted, Buffer message) {
  const detail::server::GroupShard* const shard = shard_of(excepted);
  return queue(message, shard != nullptr ? shard->id_of(excepted) : 0);
}

std::size_t ConnectionGroup::size() const noexcept {
  std::size_t size = 0;
  for (const auto& shard : shards_) size += shard->size();
  return size;
}

ConnectionGroupStats ConnectionGroup::stats() const noexcept {
  ConnectionGroupStats stats;
  for (const auto& shard : shards_) shard->add_to(stats);
  return stats;
}

}  // namespace tambour
