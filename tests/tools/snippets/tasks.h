// Names that docs/tasks.md does not declare.
// parameter: std::string text
struct Page {};
struct Job {};
struct User {};
struct UnmovableWait {
  UnmovableWait() = default;
  UnmovableWait(UnmovableWait&&) = delete;
  bool await_ready();
  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting);
  int await_resume();
};
struct ForeignClient {
  UnmovableWait unmovable_wait();
};
extern std::vector<std::string>& urls;
extern TaskEvent& shutting_down;
extern ForeignClient& client;
extern TaskMutex& mutex;
extern File& file;
extern std::string head, body, name, url;
extern int id;
void save_state();
Task<Result<Page>> fetch(std::string url);
Task<Result<User>> load_user(int id);
Task<Result<std::vector<User>>> load_friends(int id);
Task<Result<>> send(File& file);
Task<> serve(TcpStream& peer);
Task<int> run();
Task<> run(Job& job);
Task<Result<Job>> next_job();
std::string hash(const std::string& text);
