// The types of watchers that are more than a handle of the library, and the invocation of Perl's
// callbacks.
#include "watcher.h"

#include "state.h"

namespace tambour::perl {
namespace {

const char* name_of(Kind kind) noexcept {
  constexpr const char* names[kinds] = {"a watcher", "an io",   "a timer",  "a wall", "a signal",
                                        "a child",   "a stat",  "an idle",  "a fork", "an async",
                                        "a prepare", "a check", "a cleanup"};
  return names[std::size_t(kind)];
}

template <class Handle>
void destroy(void* handle) noexcept {
  delete static_cast<Handle*>(handle);
}

}  // namespace

int wait_status(const ChildStatus& status) noexcept {
  switch (status.event) {
    case ChildStatus::Event::exited:
      return W_EXITCODE(status.code, 0);
    case ChildStatus::Event::signaled:
      return W_EXITCODE(0, status.code) | (status.dumped_core ? WCOREFLAG : 0);
    case ChildStatus::Event::stopped:
      return W_STOPCODE(status.code);
    case ChildStatus::Event::continued:
      return 0xffff;
    default:
      return -1;
  }
}

void RunHook::start() {
  if (started_) return;
  // By descending priority, FIFO within a priority.
  std::vector<SV*>& hooks = state_.hooks(kind_);
  const auto position = std::ranges::find_if(
      hooks, [&](SV* other) { return handle_as<RunHook>(other).priority() < priority_; });
  hooks.insert(position, self_);
  started_ = true;
  if (kind_ != Kind::cleanup) state_.loop().ref();
}

void RunHook::stop() noexcept {
  if (!started_) return;
  started_ = false;
  std::erase(state_.hooks(kind_), self_);
  if (kind_ != Kind::cleanup) state_.loop().unref();
}

void RunHook::set_priority(int priority) noexcept {
  priority_ = std::clamp(priority, priority_min, priority_max);
  if (!started_) return;
  stop();
  start();
}

ChildWatch::ChildWatch(State& owner, SV* watcher, pid_t pid, bool trace)
    : state(owner),
      self(watcher),
      any(pid == 0),
      child(
          owner.loop(), pid,
          [this](const ChildStatus& status) {
            note(status.pid, wait_status(status));
            if (status.has_ended() && status.event != ChildStatus::Event::lost)
              state.report_to_any_child(*this, wait_status(status));
          },
          trace ? ChildChanges::all : ChildChanges::end) {
  if (!any) state.named_children().push_back(this);
}

ChildWatch::~ChildWatch() {
  stop();
  if (!any) std::erase(state.named_children(), this);
}

Result<> ChildWatch::start() {
  if (any) return state.watch_any_child(*this);
  if (!child.is_started()) any_reported = false;
  return child.start();
}

void ChildWatch::stop() noexcept {
  if (any) {
    state.unwatch_any_child(*this);
  } else {
    child.stop();
  }
}

void ChildWatch::note(pid_t pid, int status) {
  // AnyEvent's watchers are called only for the exit of a child with a known status.
  if (tag_of(self).plain && status == -1) return;
  unreported.push_back({pid, status});
  state.note(self);
}

StatWatch::StatWatch(State& state, SV* self, std::string path, const FileStatusOptions& options)
    : status(
          state.loop(), std::move(path),
          [this, &state, self](const FileState& was, const FileState&) {
            // With several changes before the callback runs, `before` is the last reported status.
            if (tag_of(self).due_index == 0) before = was;
            state.note(self);
          },
          options) {}

WallWatch::WallWatch(State& state, SV* self)
    : timer(state.loop(), [&state, self] { state.note(self); }) {}

Result<> WallWatch::start() noexcept {
  return interval.count() > 0 ? timer.start_every(interval, at) : timer.start_at(WallTime(at));
}

namespace {

/// Returns the code of a callback with an additional reference.
CV* code_of(pTHX_ SV* callback) {
  HV* stash;
  GV* glob;
  SvGETMAGIC(callback);
  CV* const code = sv_2cv(callback, &stash, &glob, 0);
  if (code == nullptr) croak("Tambour: a callback must be a code reference");
  SvREFCNT_inc_simple_void_NN(reinterpret_cast<SV*>(code));
  return code;
}

}  // namespace

SV* new_watcher(pTHX_ SV* callback, bool plain) {
  CV* const code = code_of(aTHX_ callback);
  SV* const self = newSV_type(SVt_PVMG);
  set_callback(self, code);
  new (&tag_of(self)) Tag{.plain = plain};
  return self;
}

void change_callback(pTHX_ SV* self, SV* callback) {
  CV* const code = code_of(aTHX_ callback);
  CV* const former = callback_of(self);
  set_callback(self, code);
  SvREFCNT_dec_NN(reinterpret_cast<SV*>(former));
}

void set_handle(SV* self, void* handle, Kind kind) noexcept {
  SvPV_set(self, static_cast<char*>(handle));
  tag_of(self).kind = kind;
}

SV* bless_watcher(pTHX_ SV* self, HV* stash) noexcept {
  // Like sv_bless, without its checks, whose results are known here.
  SvSTASH_set(self, reinterpret_cast<HV*>(SvREFCNT_inc_simple_NN(reinterpret_cast<SV*>(stash))));
  SvOBJECT_on(self);
  SvREADONLY_on(self);
  return sv_2mortal(newRV_noinc(self));
}

void end(pTHX_ State& state, SV* self) noexcept {
  const Kind kind = tag_of(self).kind;
  if (kind == Kind::none) return;
  state.clear_due(self);
  switch (kind) {
    case Kind::io:
      std::destroy_at(&handle_as<FdWatcher>(self));
      state.cells().deallocate(handle_of(self));
      break;
    case Kind::timer:
      std::destroy_at(&handle_as<Timer>(self));
      state.cells().deallocate(handle_of(self));
      break;
    default:
      visit(self,
            [](auto& handle) { destroy<std::remove_reference_t<decltype(handle)>>(&handle); });
  }
  tag_of(self).kind = Kind::none;
  SvPV_set(self, nullptr);
  CV* const callback = callback_of(self);
  set_callback(self, nullptr);
  watcher_ended(aTHX_ state);
  // Last, because it may free the closure and the objects it refers to.
  SvREFCNT_dec_NN(reinterpret_cast<SV*>(callback));
}

SV* watcher_of(pTHX_ SV* reference, Kind kind) {
  SV* const self = SvROK(reference) ? SvRV(reference) : nullptr;
  if (self == nullptr || !SvOBJECT(self) || !sv_derived_from(reference, "Tambour::Watcher") ||
      SvTYPE(self) != SVt_PVMG || tag_of(self).kind == Kind::none ||
      (kind != Kind::none && tag_of(self).kind != kind)) {
    croak("not %s watcher of Tambour", name_of(kind));
  }
  return self;
}

namespace {

/// If SIGCHLD is ignored, the kernel discards the status of children. EV installs a handler
/// instead.
void stop_ignoring_sigchld(pTHX) {
  struct sigaction current{};
  if (::sigaction(SIGCHLD, nullptr, &current) != 0 || current.sa_handler != SIG_IGN) return;
  sv_setpvs_mg(*hv_fetchs(get_hv("SIG", GV_ADD), "CHLD", 1), "DEFAULT");
}

}  // namespace

void start(pTHX_ State& state, SV* self) {
  state.notice_fork(aTHX);
  if (tag_of(self).kind == Kind::child) stop_ignoring_sigchld(aTHX);
  Error failed;
  visit(self, [&failed](auto& handle) {
    if constexpr (requires { handle.reset(); }) {
      if (!handle.is_started()) handle.reset();
    } else if constexpr (requires { handle.start().error(); }) {
      if (auto started = handle.start(); !started) failed = started.error();
    } else {
      handle.start();
    }
  });
  if (!failed) return;
  // A child that no longer exists is reported with a lost status instead of an exception.
  if (tag_of(self).kind == Kind::child && failed.value() == ECHILD) {
    auto& watch = handle_as<ChildWatch>(self);
    watch.note(watch.child.pid(), -1);
    return;
  }
  croak("Tambour: cannot start %s watcher: %s", name_of(tag_of(self).kind),
        std::strerror(failed.value()));
}

void stop(State& state, SV* self) noexcept {
  state.clear_due(self);
  tag_of(self).events = 0;
  visit(self, [](auto& handle) { handle.stop(); });
  if (tag_of(self).kind == Kind::child) handle_as<ChildWatch>(self).unreported.clear();
}

namespace {

void push_arguments(pTHX_ State& state, SV* self, std::uint16_t events) {
  dSP;
  PUSHMARK(SP);
  Tag& tag = tag_of(self);
  EXTEND(SP, 3);
  if (!tag.plain) PUSHs(sv_2mortal(newRV_inc(self)));
  switch (tag.kind) {
    case Kind::io:
      mPUSHi(events);
      break;
    case Kind::signal:
      mPUSHi(handle_as<Signal>(self).number());
      break;
    case Kind::child: {
      auto& watch = handle_as<ChildWatch>(self);
      watch.last = watch.unreported.front();
      watch.unreported.erase(watch.unreported.begin());
      // One call per change: several children may have exited.
      if (!watch.unreported.empty()) state.note(self);
      mPUSHi(watch.last.pid);
      mPUSHi(watch.last.status);
      break;
    }
    default:
      break;
  }
  PUTBACK;
}

}  // namespace

void invoke(pTHX_ State& state, SV* self) {
  Tag& tag = tag_of(self);
  const std::uint16_t events = std::exchange(tag.events, std::uint16_t{0});
  // Perl keeps the code alive while it runs. The callback may destroy the watcher, so the watcher
  // is not accessed afterwards.
  SV* const callback = reinterpret_cast<SV*>(callback_of(self));
  if (tag.plain && tag.kind != Kind::child) [[likely]] {
    dSP;
    PUSHMARK(SP);
    call_sv(callback, G_DISCARD | G_VOID);
    return;
  }
  ENTER;
  SAVETMPS;
  push_arguments(aTHX_ state, self, events);
  call_sv(callback, G_DISCARD | G_VOID);
  FREETMPS;
  LEAVE;
}

}  // namespace tambour::perl
