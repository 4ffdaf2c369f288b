// Names that docs/awaitables.md does not declare.
struct Database {
  int query(const std::string& text, std::function<void(int error, std::string row)> answer);
  void cancel(int id);
};
struct Transaction {
  Task<Result<>> roll_back();
};
extern Database& database;
extern Transaction& transaction;
Task<Result<std::string>> query(Database& database, std::string text);
