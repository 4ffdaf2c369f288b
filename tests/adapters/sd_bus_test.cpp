// SdBus with dbus-daemon.
#include <tambour/adapters/sd_bus.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "adapters/adapter_test.h"
#include "adapters/server_process.h"
#include "support/temporary_folder.h"

namespace tambour::sd_bus_test {
namespace {

using namespace std::chrono_literals;
using adapters::SdBus;

class SdBuses : public test::AdapterTest {
 protected:
  void SetUp() override {
    if (test::find_program("dbus-daemon").empty()) GTEST_SKIP() << "dbus-daemon is not installed";
    std::ofstream(folder.path() + "/conf")
        << "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" "
           "\"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
        << "<busconfig><listen>" << address() << "</listen><auth>EXTERNAL</auth>"
        << "<policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>"
        << "<allow eavesdrop=\"true\"/><allow own=\"*\"/></policy>"
        << "<limit name=\"max_replies_per_connection\">50000</limit></busconfig>\n";
    start_server();
  }

  void start_server() {
    server.emplace(std::vector<std::string>{"dbus-daemon", "--nofork", "--nopidfile",
                                            "--config-file=" + folder.path() + "/conf"},
                   folder.path() + "/log");
  }
  [[nodiscard]] std::string address() const { return "unix:path=" + folder.path() + "/bus"; }

  std::unique_ptr<SdBus> open() {
    sd_bus* opened = nullptr;
    EXPECT_GE(sd_bus_new(&opened), 0);
    EXPECT_GE(sd_bus_set_address(opened, address().c_str()), 0);
    EXPECT_GE(sd_bus_set_bus_client(opened, 1), 0);
    std::unique_ptr<SdBus> bus;
    if (sd_bus_start(opened) >= 0) bus = std::make_unique<SdBus>(loop, opened);
    sd_bus_unref(opened);
    if (bus != nullptr && !bus->start()) bus.reset();
    return bus;
  }
  static SdBus::Reply call(SdBus& bus, const char* member) {
    return bus.call_method("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                           member);
  }
  /// Connects as soon as the daemon listens.
  Task<std::unique_ptr<SdBus>> connected() {
    std::unique_ptr<SdBus> bus;
    auto attempt = [&]() -> Task<bool> {
      bus = open();
      if (bus == nullptr) co_return false;
      const auto id = co_await call(*bus, "GetId");
      co_return id.has_value();
    };
    static_cast<void>(co_await test::retry(std::move(attempt)));
    co_return bus;
  }

  test::TemporaryFolder folder;
  std::optional<test::ServerProcess> server;
};

TEST_F(SdBuses, method_calls_have_arguments_replies_and_errors) {
  run([this]() -> Task<> {
    const auto bus = co_await connected();
    const auto owner = co_await bus->call_method("org.freedesktop.DBus", "/org/freedesktop/DBus",
                                                 "org.freedesktop.DBus", "GetNameOwner", "s",
                                                 "org.freedesktop.DBus");
    if (!owner) co_return ADD_FAILURE() << owner.error().message, void();
    const char* name = nullptr;
    EXPECT_GE(sd_bus_message_read(owner->get(), "s", &name), 0);
    EXPECT_STREQ(name, "org.freedesktop.DBus");
    const auto unknown = co_await call(*bus, "NoSuchMethod");
    EXPECT_EQ(unknown.error().name, "org.freedesktop.DBus.Error.UnknownMethod");
    EXPECT_FALSE(unknown.error().message.empty());
    EXPECT_EQ(unknown.error().error, system_error(EBADR));
  }());
}

TEST_F(SdBuses, signals_and_objects_of_the_bus_library_work) {
  run([this]() -> Task<> {
    const auto receiver = co_await connected();
    const auto sender = co_await connected();
    struct State {
      TaskEvent arrived;
      int signals = 0;
    } state{TaskEvent(loop)};
    const auto count = [](sd_bus_message*, void* data, sd_bus_error*) {
      auto& self = *static_cast<State*>(data);
      if (++self.signals == 500) self.arrived.set();
      return 0;
    };
    sd_bus_slot* slot = nullptr;
    EXPECT_GE(sd_bus_match_signal_async(receiver->get(), &slot, nullptr, "/test", "test.Counter",
                                        "Counted", count, nullptr, &state),
              0);
    const auto answered = co_await call(*receiver, "GetId");  // After the match was added.
    EXPECT_TRUE(answered);
    for (int i = 0; i < 500; ++i)
      EXPECT_GE(sd_bus_emit_signal(sender->get(), "/test", "test.Counter", "Counted", "i", i), 0);
    static_cast<void>(co_await state.arrived.wait());
    sd_bus_slot_unref(slot);
    // An object that a peer on the same loop calls.
    const auto echo = [](sd_bus_message* request, void*, sd_bus_error*) {
      return sd_bus_reply_method_return(request, "s", "hello");
    };
    EXPECT_GE(sd_bus_add_object(receiver->get(), &slot, "/echo", echo, nullptr), 0);
    const char* unique = nullptr;
    EXPECT_GE(sd_bus_get_unique_name(receiver->get(), &unique), 0);
    const auto reply = co_await sender->call_method(unique, "/echo", "test.Echo", "Say");
    const char* text = nullptr;
    EXPECT_GE(sd_bus_message_read(reply->get(), "s", &text), 0);
    EXPECT_STREQ(text, "hello");
    sd_bus_slot_unref(slot);
  }());
}

TEST_F(SdBuses, a_hundred_calls_in_flight_and_half_are_cancelled_at_random_points) {
  run([this]() -> Task<> {
    TAMBOUR_TRACE_SEED();
    const auto bus = co_await connected();
    const auto operate = [&] { return call(*bus, "GetId"); };
    const std::size_t count = test::scaled(100);
    const auto all = co_await test::run_in_flight(loop, operate, count);
    EXPECT_EQ(all.done, 100 * count);
    test::Random random;
    const auto half = co_await test::run_in_flight(loop, operate, count, &random);
    EXPECT_EQ(half.done + half.stopped, 100 * count);
    EXPECT_GT(half.done, 0U);
    EXPECT_GT(half.stopped, 0U);
    const auto last = co_await call(*bus, "GetId");
    EXPECT_TRUE(last);
  }());
}

TEST_F(SdBuses, a_restart_of_the_daemon_fails_what_is_in_flight) {
  run([this]() -> Task<> {
    auto bus = co_await connected();
    std::vector<SdBus::Reply> replies;
    for (int i = 0; i < 100; ++i) replies.push_back(call(*bus, "GetId"));
    server->end(SIGKILL);
    for (SdBus::Reply& reply : replies) static_cast<void>(co_await std::move(reply));
    while (bus->is_started()) static_cast<void>(co_await sleep_for(1ms));
    const auto refused = co_await call(*bus, "GetId");
    EXPECT_EQ(refused.error().error, system_error(ENOTCONN));
    start_server();
    bus = co_await connected();
    const auto again = co_await call(*bus, "GetId");
    EXPECT_TRUE(again);
  }());
}

TEST_F(SdBuses, a_restart_in_the_middle_of_a_hundred_calls_in_flight_loses_none) {
  run([this]() -> Task<> {
    auto bus = co_await connected();
    const std::size_t count = test::scaled(100);
    test::Outcomes outcomes;
    const auto operate = [&] { return call(*bus, "GetId"); };
    auto restart = [&]() -> Task<> {
      while (outcomes.done < 20 * count) static_cast<void>(co_await sleep_for(1ms));
      server->end(SIGKILL);
      while (bus->is_started()) static_cast<void>(co_await sleep_for(1ms));
      start_server();
      bus = co_await connected();
    };
    co_await when_all(test::run_until_done(loop, operate, count, outcomes), restart());
    EXPECT_EQ(outcomes.done, 100 * count);
    EXPECT_GT(outcomes.failed, 0U);
  }());
}

TEST_F(SdBuses, destroying_the_bus_cancels_calls_and_is_allowed_anywhere) {
  run([this]() -> Task<> {
    auto bus = co_await connected();
    auto abandoned = call(*bus, "GetId");
    const auto reply = co_await call(*bus, "GetId");
    EXPECT_TRUE(reply);
    auto waiting = call(*bus, "GetId");
    bus.reset();  // Inside the callback of the bus library.
    const auto cancelled = co_await std::move(waiting);
    EXPECT_EQ(cancelled.error().error, system_error(ECANCELED));
    const auto first = co_await std::move(abandoned);
    EXPECT_TRUE(first);
  }());
}

}  // namespace
}  // namespace tambour::sd_bus_test
