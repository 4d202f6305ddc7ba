import importlib.resources
import re
import subprocess
import sys

import forerun as fr


def test_version(command_line):
    assert fr.__version__.count(".") == 2
    assert command_line("--version").stdout == f"forerun {fr.__version__}\n"


def test_everything_that_is_public_is_there():
    for name in fr.__all__:
        assert getattr(fr, name) is not None
    assert set(fr.__all__) == {"Comparison", "Forecast", "InputError", "Record", "Unsupported",
                               "__version__", "compare", "predict"}


def test_the_package_is_typed():
    files = importlib.resources.files("forerun")
    assert files.joinpath("py.typed").is_file()
    stub = files.joinpath("_core.pyi").read_text()
    from forerun import _core

    for name in ("predict", "compare", "version", "RunSource", "InputError", "Unsupported"):
        assert re.search(rf"^(def|class) {name}\b", stub, re.MULTILINE)
        assert hasattr(_core, name)


def test_documentation():
    for function in (fr.predict, fr.compare):
        assert "Returns\n    -------" in function.__doc__
    assert "Raises\n    ------" in fr.predict.__doc__
    assert fr.__doc__


def test_numpy_is_not_needed(example):
    """With imports of NumPy refused, the package answers."""
    script = (
        "import sys; sys.modules['numpy'] = None\n"
        "import forerun as fr\n"
        f"print(repr(fr.predict({str(example)!r}).step_time_s))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == fr.predict(example).step_time_s
