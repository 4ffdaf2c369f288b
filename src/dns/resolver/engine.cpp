// Engine: joins lookups of the same question, asks the cache, starts queries, and ends when its
// last reference goes.
#include "dns/resolver/engine.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "base/clock.h"
#include "dns/resolver/service.h"

namespace tambour::dns::detail {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
/// One connection may carry all queries, each with another id of 16 bits. Half of the ids are
/// enough to find a free one by chance.
constexpr std::size_t queries_max_of_ids = std::size_t{1} << 15;

}  // namespace

EngineReference::EngineReference(Engine& engine) noexcept : engine_(&engine) {
  engine.references_.push_back(*this);
}

Engine::Engine(EventLoop& loop, dns::ResolverOptions options)
    : loop_(loop),
      core_(loop::core_of(loop)),
      options_(std::move(options)),
      entropy_(core_.backend()),
      order_(system()),
      configuration_(loop, system(), core_.backend().has_virtual_time(), options_),
      hash_({.key = {.first = entropy_.next(), .second = entropy_.next()}}),
      cache_(options_.cache_bytes_max, hash_),
      idle_check_ns_(base::end_of_time_ns) {
  options_.queries_max = std::clamp(options_.queries_max, std::size_t{1}, queries_max_of_ids);
  auto service = core_.open_service<Service>();
  if (!service) throw std::bad_alloc();
  core_.attach();
  (*service)->add(*this);
}

Engine::~Engine() {
  ends_ = true;
  unlink();
  while (EngineReference* const engine_reference = references_.front()) {
    engine_reference->unlink();
    engine_reference->engine_ = nullptr;
  }
  // The waiters get null: the resolver is gone.
  for (auto& [key, query] : queries_) query->finish_waiters(nullptr);
  queries_.clear();
  servers_.reset();
  while (retired_ != nullptr) {
    const std::shared_ptr<ServerSet> set = std::exchange(retired_, retired_->next_retired);
    set->next_retired.reset();
  }
  core_.detach();
}

Engine::Buffers& Engine::buffers() {
  if (buffers_ != nullptr) return *buffers_;
  buffers_ = std::make_unique<Buffers>();
  for (std::size_t i = 0; i < Buffers::count; ++i) {
    buffers_->vectors[i] = {.iov_base = buffers_->bytes[i].data(), .iov_len = Buffers::bytes_each};
    buffers_->messages[i] = {};
    buffers_->messages[i].msg_hdr.msg_iov = &buffers_->vectors[i];
    buffers_->messages[i].msg_hdr.msg_iovlen = 1;
  }
  return *buffers_;
}

void Engine::use_configuration() {
  auto set = std::make_shared<ServerSet>();
  set->conf = std::make_shared<const ResolvConf>(configuration_.resolv_conf());
  const bool is_tcp_only = set->conf->use_vc || options_.transport != nullptr;
  for (const Endpoint& server : set->conf->servers)
    set->servers.push_back(
        std::make_unique<Server>(*this, server, set->servers.size(), is_tcp_only));
  // Other servers may answer differently.
  cache_.clear();
  retire(std::exchange(servers_, std::move(set)));
}

Cache::Hit Engine::look_up(const QuestionKey& key, Waiter& waiter) {
  ++stats_.lookups;
  if (Cache::Hit hit = cache_.find(key.view(), core_.now_ns()); hit.answer != nullptr) {
    ++stats_.cache_hits;
    return hit;
  }
  if (waiting_ >= options_.lookups_max) {
    static const AnswerPointer refusal =
        std::make_shared<const Answer>(Answer{.error = dns::ErrorCode::too_many_lookups});
    return {.answer = refusal};
  }
  const auto [found, is_new] = queries_.try_emplace(std::string(key.view()));
  if (!is_new) {
    ++stats_.coalesced;
    ++waiting_;
    found->second->add(waiter);
    return {};
  }
  try {
    found->second = std::make_unique<Query>(*this, found->first);
  } catch (...) {
    queries_.erase(found);
    throw;
  }
  Query& query = *found->second;
  ++waiting_;
  query.add(waiter);
  if (started_ >= options_.queries_max) {
    queued_.push_back(query);
    return {};
  }
  ++started_;
  try {
    query.start();
  } catch (...) {
    waiter.leave();  // Drops the query.
    throw;
  }
  return {};
}

void Engine::keep(std::string&& key, const AnswerPointer& answer) noexcept {
  Duration lifetime = std::chrono::seconds(answer->ttl_s);
  const dns::ErrorCode error = answer->error;
  if (error == no_error) {
    lifetime = std::min(lifetime, options_.ttl_max);
  } else if (error == dns::ErrorCode::no_data || error == dns::ErrorCode::no_such_name) {
    lifetime = std::min(lifetime, options_.negative_ttl_max);
  } else {
    lifetime = options_.failure_ttl;
  }
  try {
    cache_.put(std::move(key), answer, core_.now_ns(), lifetime.count());
  } catch (const std::bad_alloc&) {
    // The answer is not kept.
    return;
  }
}

void Engine::end(Query& query, const AnswerPointer& answer) noexcept {
  auto ended = queries_.extract(queries_.find(query.key()));
  --started_;
  query.finish_waiters(answer);
  // The query refers to its key.
  ended.mapped().reset();
  keep(std::move(ended.key()), answer);
  start_queued();
}

void Engine::drop(Query& query) noexcept {
  if (ends_) return;
  const auto dropped = queries_.extract(queries_.find(query.key()));
  if (query.linked())
    query.unlink();
  else
    --started_;
  start_queued();
}

void Engine::start_queued() noexcept {
  while (!queued_.empty() && started_ < options_.queries_max) {
    Query& next = *queued_.front();
    next.unlink();
    ++started_;
    next.start_or_retry();
  }
}

void Engine::retire(std::shared_ptr<ServerSet> set) noexcept {
  // That of the current configuration stays anyway.
  if (set == nullptr || set == servers_ || ends_ || set->is_retired) return;
  ServerSet& added = *set;
  added.is_retired = true;
  added.next_retired = std::exchange(retired_, std::move(set));
}

dns::ResolverStats Engine::stats() const noexcept {
  dns::ResolverStats stats = stats_;
  stats.reloads = configuration_.reloads();
  stats.cache_bytes = cache_.bytes();
  stats.in_flight = queries_.size();
  return stats;
}

std::int64_t Engine::before_wait() noexcept {
  // A port may be added while another one fails.
  while (!to_flush_.empty()) {
    UdpPort* const port = to_flush_.back();
    to_flush_.pop_back();
    port->flush();
  }
  while (retired_ != nullptr) {
    const std::shared_ptr<ServerSet> set = std::exchange(retired_, retired_->next_retired);
    set->next_retired.reset();
    set->is_retired = false;
  }
  return idle_check_ns_;
}

void Engine::expire(std::int64_t now_ns) {
  if (now_ns < idle_check_ns_) return;
  idle_check_ns_ = base::end_of_time_ns;
  std::int64_t used_ns = std::numeric_limits<std::int64_t>::max();
  for (const auto& server : servers_->servers)
    used_ns = std::min(used_ns, server->close_idle(now_ns - idle_ns));
  order_.close();
  if (used_ns != std::numeric_limits<std::int64_t>::max())
    // A socket that was not used for so long, and yet is open, waits for an answer.
    idle_check_ns_ = std::max(used_ns + idle_ns + 1, now_ns + second_ns);
}

void Engine::disown() noexcept {
  order_.disown();
  if (servers_ != nullptr) servers_->disown();
  // Those of earlier configurations.
  for (const auto& [key, query] : queries_) query->servers().disown();
  for (const ServerSet* server_set = retired_.get(); server_set != nullptr;
       server_set = server_set->next_retired.get())
    server_set->disown();
}

void Engine::reopen() {
  entropy_.reopen();
  // Shared with the parent, as all sockets are.
  order_.close();
  if (servers_ == nullptr) return;
  for (const auto& [key, query] : queries_) query->restart();
  for (const auto& server : servers_->servers) server->close_all();
}

}  // namespace tambour::dns::detail
