// forerun._core: requests as text in, results as JSON text out; the pure Python package makes
// objects of them. The interpreter is free while a forecast is computed.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/yaml.hpp"
#include "report/report.hpp"
#include "study/compare.hpp"
#include "study/predict.hpp"
#include "workloads/resolve.hpp"

namespace py = pybind11;

namespace forerun {
namespace {

/// A run as Python gives it: a path, or the text of a mapping.
struct RunSource {
  std::string name;
  bool is_path = true;
  std::string text;
};

/// A job; what is wrong in a mapping has no line and column.
Job job_of(const RunSource& source, const std::vector<std::string>& sets, const DataPath& data) {
  if (source.is_path) return resolve(load_run(source.name, sets), data);
  try {
    return resolve(read_run_text(source.text, source.name, sets), data);
  } catch (const InputError& error) {
    if (error.place().source != source.name) throw;
    throw InputError({source.name, 0, 0}, error.key(), error.problem());
  }
}

EngineKind engine_of(const std::string& name) {
  const auto engine = from_text<EngineKind>(name);
  if (!engine) throw InputError({}, "engine", "found '" + name + "', allowed: analytic, des");
  return *engine;
}

std::string predict_run(const RunSource& run, const std::vector<std::string>& sets,
                        const std::string& engine, const std::vector<std::string>& folders) {
  const StudyContext context(DataPath({folders.begin(), folders.end()}));
  PredictRequest request;
  request.engine = engine_of(engine);
  request.job = job_of(run, sets, context.data);
  return forecast_json(predict(request, context).forecast);
}

std::string compare_runs(const std::vector<RunSource>& runs, const std::vector<std::string>& sets,
                         const std::string& engine, const std::vector<std::string>& folders) {
  const StudyContext context(DataPath({folders.begin(), folders.end()}));
  CompareRequest request;
  request.engine = engine_of(engine);
  for (const RunSource& run : runs) {
    request.jobs.push_back(job_of(run, sets, context.data));
    request.names.push_back(run.name);
  }
  return compare_json(compare(request, context));
}

}  // namespace
}  // namespace forerun

PYBIND11_MODULE(_core, m) {
  using namespace forerun;
  py::register_exception<Unsupported>(m, "Unsupported", PyExc_NotImplementedError);
  // The place of an InputError travels as attributes.
  static py::exception<InputError> input_error(m, "InputError", PyExc_ValueError);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const InputError& error) {
      py::object value = py::reinterpret_borrow<py::object>(input_error)(error.what());
      value.attr("source") = error.place().source;
      value.attr("line") = error.place().line;
      value.attr("column") = error.place().column;
      value.attr("key") = error.key();
      value.attr("problem") = error.problem();
      PyErr_SetObject(input_error.ptr(), value.ptr());
    }
  });
  py::class_<RunSource>(m, "RunSource")
      .def(py::init([](std::string name, bool is_path, std::string text) {
             return RunSource{std::move(name), is_path, std::move(text)};
           }),
           py::arg("name"), py::arg("is_path"), py::arg("text"));
  m.def("predict", &predict_run, py::arg("run"), py::arg("sets"), py::arg("engine"),
        py::arg("folders"), py::call_guard<py::gil_scoped_release>());
  m.def("compare", &compare_runs, py::arg("runs"), py::arg("sets"), py::arg("engine"),
        py::arg("folders"), py::call_guard<py::gil_scoped_release>());
  m.def("version", &version_text);
}
