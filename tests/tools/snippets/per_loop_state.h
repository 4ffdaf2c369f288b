// Names that docs/per-loop-state.md does not declare.
struct Database {
  static Task<Result<Database>> connect(Endpoint at);
  Task<Result<std::string>> query(std::string text);
};
extern const Endpoint& database_at;
extern PerLoop<Database>& databases;
extern PerLoop<std::vector<std::string>>& caches;
