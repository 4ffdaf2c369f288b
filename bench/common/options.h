// The command line of a benchmark program.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace bench {

/// Refers to the variables that it fills. Hides the library that parses, which takes seconds to
/// compile.
class CommandLine {
 public:
  /// Adds the option --iterations, which every program has.
  CommandLine(const char* description, int& iterations);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  /// An option that must be given.
  void add(const char* name, int& value, const char* help, int low, int high);
  /// An option that must be given and whose argument is one of the words; sets its value.
  void add(const char* name, int& value, const char* help, std::map<std::string, int> words);
  /// An option that keeps the value of the variable if it is not given.
  void add_optional(const char* name, int& value, const char* help, int low, int high);
  /// An option whose argument is one of the words, by default the first; sets its value.
  void add_optional(const char* name, bool& value, const char* help,
                    std::map<std::string, bool> words);
  void add_flag(const char* name, bool& value, const char* help);

  /// The following options belong to this command. A program that has commands requires one.
  void add_command(const char* name, const char* description);

  /// `find_error` is called after parsing and returns what is wrong, or an empty string.
  void check(std::function<std::string()> find_error);

  /// Exits with status 2 and a message if the arguments are invalid, with status 0 after --help.
  void parse_or_exit(int argc, char** argv);

  /// Whether this command was given.
  [[nodiscard]] bool has_command(const char* name) const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace bench
