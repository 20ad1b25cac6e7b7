// Counts the libtorch operations of the process that preloads this library, and writes them to the file that
// EBIPLA_OPERATIONS names when the process ends: one line "COUNT NAME" per operation.

#include <ATen/record_function.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

namespace {

class Counter {
 public:
  Counter() {
    at::addGlobalCallback(at::RecordFunctionCallback(count).scopes({at::RecordScope::FUNCTION}));
  }

  ~Counter() {
    if (const char* path = std::getenv("EBIPLA_OPERATIONS")) {
      std::ofstream file(path);
      for (const auto& [name, count] : counts) {
        file << count << ' ' << name << '\n';
      }
    }
  }

 private:
  static std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& operation);

  std::mutex mutex;
  std::map<std::string, long> counts;
};

Counter counter;

std::unique_ptr<at::ObserverContext> Counter::count(const at::RecordFunction& operation) {
  const auto name = operation.operator_name();
  const std::string overload = name && !name->overload_name.empty() ? "." + name->overload_name : "";
  const std::lock_guard<std::mutex> lock(counter.mutex);
  ++counter.counts[operation.name() + overload];
  return nullptr;
}

}  // namespace
