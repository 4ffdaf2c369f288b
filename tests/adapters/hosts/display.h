// A display for tests with windows: an X server without a screen.
#pragma once

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "adapters/server_process.h"
#include "support/temporary_folder.h"

namespace tambour::test {

/// Starts Xvfb, which chooses its number, and sets DISPLAY for this process.
class Display {
 public:
  static Display& shared() {
    static Display display;
    return display;
  }
  /// False if Xvfb is not installed, or has not started within a minute.
  [[nodiscard]] bool is_open() const { return is_open_; }

 private:
  Display() {
    const std::string program = find_program("Xvfb");
    if (program.empty()) return;
    const std::string output = folder_.path() + "/number";
    server_.emplace(std::vector<std::string>{"sh", "-c",
                                             "exec " + program +
                                                 " -displayfd 3 -screen 0 640x480x24 -nolisten tcp "
                                                 "3>" +
                                                 output},
                    folder_.path() + "/log");
    for (int i = 0; i < 12'000 && !is_open_; ++i) {
      std::ifstream file(output);
      std::string number;
      is_open_ = bool(std::getline(file, number)) && !file.eof();
      if (is_open_) ::setenv("DISPLAY", (":" + number).c_str(), 1);
      // No event tells the number of the display.
      if (!is_open_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  TemporaryFolder folder_;
  std::optional<ServerProcess> server_;
  bool is_open_ = false;
};

}  // namespace tambour::test
